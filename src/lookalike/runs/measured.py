"""What a run measured, query by query, in RUN/measured.json: so that runs can be put together and compared later."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from lookalike.errors import UserError
from lookalike.evaluation import Result
from lookalike.files import write_text
from lookalike.runs.folder import RunFolder


class NamedResult(NamedTuple):
    """One way to embed one set of images, and what it is worth."""

    name: str
    role: str  # model, train or baseline
    optimistic: bool
    result: Result


def save_results(folder: RunFolder, results: Sequence[NamedResult]) -> None:
    rows = [row._asdict() | {"result": json.loads(row.result.to_json())} for row in results]
    write_text(folder.measured, json.dumps(rows, ensure_ascii=False))


def load_results(folder: RunFolder) -> list[NamedResult]:
    """The results of a finished run, the model's own on the main test set first."""
    try:
        rows = json.loads(folder.measured.read_text(encoding="utf-8"))
        return [NamedResult(**row | {"result": Result.from_json(json.dumps(row["result"]))}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"the run in {folder.path} is not complete ({error}): delete that folder and run it again"
        ) from None
