"""A worker: takes one free cell after the other until none is left. Any number of them may share a study's folder."""

import shutil
import time
from pathlib import Path

from lookalike import data
from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.fit import fit
from lookalike.fit.choose import check_possible
from lookalike.fit.measured import FILE
from lookalike.recipe import as_tree
from lookalike.study.claim import claimed
from lookalike.study.grid import Cell, Study
from lookalike.training.log import Event, Tell
from lookalike.training.run import Stop

LARGE = ("checkpoint", "model", "test.npz", "figures")  # what a finished cell does not need any more
FORWARDED = ("progress", "step", "health")


def load(study: Study) -> Dataset:
    """The data of all cells, loaded once."""
    expected = study.cells[0].recipe.data.name
    where = study.source or ("" if expected else "glyphs")
    check(bool(where), f"this study is for {expected}: say where its images are, as {expected}=FOLDER")
    dataset = data.load(where)
    check(
        expected is None or dataset.name == expected,
        f"the recipe of this study is for {expected}, these data are {dataset.name}: name another recipe",
    )
    return dataset


def check_all(study: Study, dataset: Dataset) -> None:
    """Refuse an impossible cell before the first one begins."""
    for row in study.rows:
        cell = next(cell for cell in study.cells if cell.row == row)
        try:
            check_possible(cell.recipe, dataset)
        except UserError as mistake:
            raise UserError(f"the row '{row}' cannot be: {mistake}") from None


def place_of(out: Path, cell: Cell) -> Path:
    return out / "cells" / cell.key


def done(out: Path, cell: Cell) -> bool:
    """Both files of a finished run: a killed one may have the first alone."""
    return all((place_of(out, cell) / name).is_file() for name in (FILE, "result.json"))


def failure(out: Path, cell: Cell) -> str | None:
    """Why a cell could not be finished."""
    file = out / "cells" / f"{cell.key}.failed"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def work(study: Study, dataset: Dataset, out: Path, tell: Tell, stop: Stop, retry: bool = False) -> None:
    """Run whatever is free, until every cell is done, has failed, or is in the hands of another process."""
    try:
        (out / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {out} ({error.strerror}): give another --out") from None
    if retry:
        for cell in study.cells:
            (out / "cells" / f"{cell.key}.failed").unlink(missing_ok=True)
    while sum(_try(study, cell, dataset, out, tell, stop) for cell in study.cells):
        pass  # once more round: a process may have died and left its cell


def _try(study: Study, cell: Cell, dataset: Dataset, out: Path, tell: Tell, stop: Stop) -> bool:
    """Run one cell if it is free; whether it was."""
    if done(out, cell) or failure(out, cell) is not None:
        return False
    with claimed(out / "cells" / f"{cell.key}.claim") as mine:
        if not mine or done(out, cell) or failure(out, cell) is not None:
            return False
        finished = sum(done(out, other) for other in study.cells)
        tell({"event": "stage", "name": f"{finished + 1} of {len(study.cells)}: {cell.name}"})
        start = time.monotonic()
        try:
            told = _run(cell, dataset, place_of(out, cell), tell, stop)
        except UserError as mistake:
            (out / "cells" / f"{cell.key}.failed").write_text(f"{mistake}\n", encoding="utf-8")
            told = f"failed: {mistake}"
        tell({"event": "note", "text": f"{cell.name}: {told} ({time.monotonic() - start:.0f} s)"})
    return True


def _run(cell: Cell, dataset: Dataset, place: Path, tell: Tell, stop: Stop) -> str:
    """Begin a cell, or go on with it; keep its numbers and forget its weights."""

    def quietly(event: Event) -> None:
        if event["event"] in FORWARDED:
            tell(event)

    begun = (place / "recipe.toml").is_file()
    if not begun:
        shutil.rmtree(place, ignore_errors=True)
    values = None if begun else as_tree(cell.recipe)
    run = fit(dataset, place, recipe=values, audit=False, resume=begun, full=False, tell=quietly, stop=stop)
    for name in LARGE:
        for large in list(place.rglob(name)):
            shutil.rmtree(large) if large.is_dir() else large.unlink()
    return "  ".join(f"{name} {value:.3f}" for name, value in run.result.items())
