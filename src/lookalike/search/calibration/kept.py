"""What calibration keeps with an index: three documents about the vectors that answer, which go when these do.

A run measures its own test classes, and an index made from its model begins with that. An index may come from anywhere,
so every value that is read has its type, and the reference its shape.
"""

import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from lookalike.errors import UserError
from lookalike.models import Model
from lookalike.runs import RunFolder
from lookalike.runs.finished import read_json
from lookalike.search.calibration.foreign import Familiar, pictures
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import among_themselves, spread
from lookalike.search.items import Vectors
from lookalike.search.quality import Quality
from lookalike.search.stores import Store
from lookalike.search.watching.reference import Reference
from lookalike.values import checked

KINDS = {"calibration": Calibration, "quality": Quality, "reference": Reference}
Measured = TypeVar("Measured", Calibration, Quality, Reference)
MOST = 1000  # images that are asked


def read(store: Store, kind: type[Measured]) -> Measured | None:
    """One of the three, if that was measured."""
    text = store.documents.read(_name(kind))
    return None if text is None else _measured(_name(kind), text)


def write(store: Store, measured: Measured) -> None:
    store.documents.write(_name(type(measured)), json.dumps(measured.as_json()))


def drop(store: Store, *kinds: type[Measured]) -> None:
    """Forget some of it; without `kinds` all of it, because other vectors or other things are about to answer."""
    for name in map(_name, kinds) if kinds else KINDS:
        store.documents.write(name, None)


def adopt(store: Store, folder: Path, model: Model) -> None:
    """Begin with the calibration of the run that made the model, unless there is one."""
    known = calibration_of_run(folder, model)
    if known is not None and store.documents.read(_name(Calibration)) is None:
        known |= {"generation": store.identity.generation}
        store.documents.write(_name(Calibration), json.dumps(known))


def calibration_of_run(folder: Path, model: Model) -> dict[str, Any] | None:
    """What the run that made a model measured on its own test classes, if the folder is still within that run."""
    run = RunFolder(folder.resolve().parent)
    if run.model != folder.resolve() or not run.result.is_file():
        return None
    result = read_json(run.result)
    content = result.get("calibration") if isinstance(result, dict) else None
    return content if isinstance(content, dict) and content.pop("fingerprint", None) == model.fingerprint else None


def _name(kind: type) -> str:
    return kind.__name__.lower()


@lru_cache(maxsize=16)
def _measured(name: str, text: str) -> Any:
    try:
        result = KINDS[name].from_json(json.loads(text))  # type: ignore[attr-defined]
        _check_types(result)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        what = f"the {name} of this index is damaged, or was tampered with"
        raise UserError(f"{what}: measure it again with lookalike calibrate") from None
    return result


def _check_types(content: Any) -> None:
    """Every field of a dataclass, and of those within it, is as its annotation says."""
    for name, hint in get_type_hints(type(content)).items():
        value = getattr(content, name)
        if is_dataclass(value):
            _check_types(value)
        else:
            checked(hint, value, name)


def calibrate_run(model: Model, vectors: Vectors, labels: Sequence[str]) -> dict[str, Any] | None:
    """As JSON, with the fingerprint of the model; None where the test classes cannot tell, or there are no cosines."""
    if model.geometry != "sphere":
        return None
    today = datetime.now(UTC).date().isoformat()
    try:
        trials, some = among_themselves(vectors, labels, MOST), spread(len(vectors), MOST)
        names = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)[1]
        outside = model.encode(pictures()).numpy()
        familiar = Familiar.of(vectors[some], names[some], outside)
        calibration = calibrate(trials, familiar=familiar, items=len(vectors), generation=1, date=today, source="run")
    except UserError:
        return None
    return calibration.as_json() | {"fingerprint": model.fingerprint}


def promise_of_run(content: dict[str, Any]) -> str:
    """What an index made from the run promises."""
    return Calibration.from_json({name: value for name, value in content.items() if name != "fingerprint"}).promise
