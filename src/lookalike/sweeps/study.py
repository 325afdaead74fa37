"""The cells of a study, run by whoever works. A cell that was begun continues from its last checkpoint, whoever has it
now; the lock on its folder keeps out a second command.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from lookalike import data
from lookalike.cache import Memory, in_memory
from lookalike.data import Dataset
from lookalike.data.reach import absolute, check_reach
from lookalike.errors import UserError, check
from lookalike.files import make_folder, write_text
from lookalike.fit.choose import check_possible
from lookalike.runs import RunFolder
from lookalike.runs.log import Watcher, ignore
from lookalike.sweeps.grid import Cell, Study, without
from lookalike.sweeps.trial import until_proved
from lookalike.training.train import Stop
from lookalike.workers import Part, Workers


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


def work(
    study: Study,
    dataset: Dataset,
    out: Path,
    tell: Watcher,
    stop: Stop,
    retry: bool = False,
    *,
    workers: Workers = Workers(),  # noqa: B008  # it is frozen
    part: Part = Part(),  # noqa: B008
) -> None:
    """Run every cell, or those of a `part`, that is neither done nor failed nor in the hands of another command.

    `retry`: those that failed before are tried again. Other `workers` than this process see `out` and the images under
    the same names; they tell of nothing but their results, and know of no `stop`: a cell goes on from its checkpoint.
    """
    out = out.absolute()
    make_folder(out / "cells")
    if retry:
        for cell in study.cells:
            _failed(out, cell).unlink(missing_ok=True)
    left = [cell for cell in part.chosen(study.cells) if not _ended(out, cell)]
    runner = CellWork(absolute(dataset), out) if workers.elsewhere else CellWork(dataset, out, tell, stop)
    for number, outcome in enumerate(workers.map(runner, left), start=1):
        if outcome:
            tell({"event": "note", "text": f"{number} of {len(left)}: {outcome}"})


def _ended(out: Path, cell: Cell) -> bool:
    return done(out, cell) or failure(out, cell) is not None


def _never() -> bool:
    return False


@dataclass(frozen=True)
class CellWork:
    """What a process needs to run any of the cells; called, it is ready for them."""

    dataset: Dataset
    out: Path
    tell: Watcher = ignore
    stop: Stop = _never

    def __call__(self) -> Callable[[Cell], str]:
        check_reach(self.dataset)
        memory: Memory = {}  # the cells share the images and their features
        return lambda cell: self._run(cell, memory)

    def _run(self, cell: Cell, memory: Memory) -> str:
        """Run a cell; how it ended, nothing where it belongs to another command."""
        folder = folder_of(self.out, cell)
        with folder.locked() as held, in_memory(memory):
            if not held or _ended(self.out, cell):
                return ""
            self.tell({"event": "stage", "name": cell.name})
            start = time.monotonic()
            try:
                run = until_proved(self.dataset, cell.recipe, folder, self.tell, self.stop)
                outcome = "  ".join(f"{name} {value:.3f}" for name, value in run.result.items())
            except (UserError, torch.OutOfMemoryError) as mistake:
                why = " ".join(str(mistake).split())
                write_text(_failed(self.out, cell), f"{why}\n")
                outcome = f"failed: {why}"
            return f"{cell.name}: {outcome} ({time.monotonic() - start:.0f} s)"
