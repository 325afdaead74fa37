"""The worker of a study: it takes one free cell after the other until none is left. Any number of them may share the
study's folder; the lock on a cell's own folder is the claim.
"""

import time
from pathlib import Path

import torch

from lookalike import data
from lookalike.cache import in_memory
from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.files import write_text
from lookalike.fit.choose import check_possible
from lookalike.runs import RunFolder
from lookalike.runs.log import Watcher
from lookalike.sweeps.grid import Cell, Study, without
from lookalike.sweeps.trial import until_proved
from lookalike.training.train import Stop


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


def possible(study: Study, dataset: Dataset) -> Study:
    """The study without its impossible rows, each of which is `refused` by its name before the first cell begins."""
    refused = dict(study.refused)
    for row in study.rows:
        cell = next(cell for cell in study.cells if cell.row == row)
        try:
            check_possible(cell.recipe, dataset)
        except UserError as mistake:
            refused[row] = str(mistake)
    return without(study, refused)


def folder_of(out: Path, cell: Cell) -> RunFolder:
    return RunFolder(out / "cells" / cell.key)


def done(out: Path, cell: Cell) -> bool:
    return folder_of(out, cell).finished


def failure(out: Path, cell: Cell) -> str | None:
    """Why a cell could not be finished."""
    file = _failed(out, cell)
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def _failed(out: Path, cell: Cell) -> Path:
    return out / "cells" / f"{cell.key}.failed"


def work(study: Study, dataset: Dataset, out: Path, tell: Watcher, stop: Stop, retry: bool = False) -> None:
    """Run every free cell, until all are done, have failed, or are claimed by other processes.

    `retry`: those that failed before are tried again.
    """
    try:
        (out / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {out} ({error.strerror}): choose another --out") from None
    if retry:
        for cell in study.cells:
            _failed(out, cell).unlink(missing_ok=True)
    with in_memory():  # the cells share the images and their features
        while sum(_try(study, cell, dataset, out, tell, stop) for cell in study.cells):
            pass  # look again: a process may have died and left its cell


def _try(study: Study, cell: Cell, dataset: Dataset, out: Path, tell: Watcher, stop: Stop) -> bool:
    """Run one cell if it is free; whether it was."""
    if done(out, cell) or failure(out, cell) is not None:
        return False
    folder = folder_of(out, cell)
    with folder.locked() as held:
        if not held or done(out, cell) or failure(out, cell) is not None:
            return False
        finished = sum(done(out, other) for other in study.cells)
        tell({"event": "stage", "name": f"{finished + 1} of {len(study.cells)}: {cell.name}"})
        start = time.monotonic()
        try:
            run = until_proved(dataset, cell.recipe, folder, tell, stop)
            outcome = "  ".join(f"{name} {value:.3f}" for name, value in run.result.items())
        except (UserError, torch.OutOfMemoryError) as mistake:
            why = " ".join(str(mistake).split())
            write_text(_failed(out, cell), f"{why}\n")
            outcome = f"failed: {why}"
        tell({"event": "note", "text": f"{cell.name}: {outcome} ({time.monotonic() - start:.0f} s)"})
    return True
