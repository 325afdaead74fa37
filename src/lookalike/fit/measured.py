"""What a run measured, query by query, in RUN/measured.json: so that runs can be put together and compared later."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lookalike.errors import UserError
from lookalike.evaluation import Result
from lookalike.protocols.unseen import Judged
from lookalike.training.folder import RunFolder

FILE = "measured.json"


class Row(NamedTuple):
    """One way to embed one set of test images, and what it is worth."""

    name: str
    role: str  # model, train or baseline
    optimistic: bool
    result: Result


def save_rows(folder: RunFolder, entries: Sequence[Judged]) -> None:
    rows = [
        {
            "name": entry.title,
            "role": entry.role,
            "optimistic": entry.optimistic,
            "result": json.loads(entry.result.to_json()),
        }
        for entry in entries
    ]
    folder.write(folder.path / FILE, json.dumps(rows, ensure_ascii=False))


def load_rows(folder: Path) -> list[Row]:
    """The rows of a finished run, the model's own on the main test set first."""
    try:
        rows = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"the run in {folder} is not complete ({error}): delete that folder and go on") from None
    return [
        Row(row["name"], row["role"], row["optimistic"], Result.from_json(json.dumps(row["result"]))) for row in rows
    ]
