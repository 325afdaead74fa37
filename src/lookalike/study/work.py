"""A worker: takes one free cell after the other until none is left. Any number of them may share a study's folder."""

import time
from pathlib import Path

from lookalike import data
from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.fit import run_recipe
from lookalike.fit.choose import check_possible
from lookalike.fit.stages import Stages
from lookalike.fit.summary import header
from lookalike.recipe import of_tree, to_toml, tree
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Event, Watcher
from lookalike.study.grid import Cell, Study
from lookalike.training.run import Stop

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
    return RunFolder(place_of(out, cell)).finished


def failure(out: Path, cell: Cell) -> str | None:
    """Why a cell could not be finished."""
    file = out / "cells" / f"{cell.key}.failed"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def work(study: Study, dataset: Dataset, out: Path, tell: Watcher, stop: Stop, retry: bool = False) -> None:
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


def _try(study: Study, cell: Cell, dataset: Dataset, out: Path, tell: Watcher, stop: Stop) -> bool:
    """Run one cell if it is free; whether it was."""
    if done(out, cell) or failure(out, cell) is not None:
        return False
    with RunFolder(place_of(out, cell)).locked() as held:
        if not held or done(out, cell) or failure(out, cell) is not None:
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


def _run(cell: Cell, dataset: Dataset, place: Path, tell: Watcher, stop: Stop) -> str:
    """Begin a cell, or go on with it; keep its numbers and forget its weights."""

    def quietly(event: Event) -> None:
        if event["event"] in FORWARDED:
            tell(event)

    folder = RunFolder(place)
    opened = folder.begin("either", to_toml(cell.recipe, header()), quietly)
    run = run_recipe(dataset, Stages(of_tree(tree(folder.recipe)), folder, opened.tell), quietly, stop, full=False)
    folder.drop_weights()
    return "  ".join(f"{name} {value:.3f}" for name, value in run.result.items())
