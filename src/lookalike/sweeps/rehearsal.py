"""A rehearsal of a study: one real step and one evaluation of every row, with its own network, batches and flags, on a
few images of the data it will run on. What would fail after a night fails after a minute."""

import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike.cache import in_memory
from lookalike.data import Dataset
from lookalike.errors import UserError
from lookalike.fit.choose import check_possible
from lookalike.recipe import Recipe, protocol
from lookalike.runs import RunFolder
from lookalike.runs.log import Watcher
from lookalike.sweeps.grid import Cell, Study
from lookalike.sweeps.trial import until_proved
from lookalike.training import StoppedError
from lookalike.training.train import Stop

CLASSES = {0: 256, 1: 24, 2: 24}  # that are kept of a split; batches have up to 200
EACH = {0: 8, 1: 4, 2: 4}  # images of a class


def rehearse(study: Study, dataset: Dataset, tell: Watcher, stop: Stop) -> dict[str, str]:
    """Why each row of the study cannot run, in words; empty for those that can."""
    outcome = dict(study.refused)
    few = thinned(dataset)
    with in_memory(), tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        for number, row in enumerate(study.rows):
            tell({"event": "stage", "name": f"{number + 1} of {len(study.rows)}: {row}"})
            cell = next(cell for cell in study.cells if cell.row == row)
            outcome[row] = _tried(cell, dataset, few, RunFolder(Path(folder) / str(number)), tell, stop)
    return outcome


def _tried(cell: Cell, dataset: Dataset, few: Dataset, folder: RunFolder, tell: Watcher, stop: Stop) -> str:
    try:
        check_possible(cell.recipe, dataset)
        protocol.parts(cell.recipe, dataset)
        with folder.claimed():
            until_proved(few, in_short(cell.recipe), folder, tell, stop)
    except (StoppedError, KeyboardInterrupt):
        raise
    except UserError as mistake:
        return str(mistake)
    except Exception as error:  # whatever stops one row, such as a GPU that is too small, must not hide the others
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def in_short(recipe: Recipe) -> Recipe:
    """One step of one fold, with everything that would begin later begun; the lists of VehicleID as one split."""
    table = recipe.protocol
    crossed = table.name == protocol.CROSS
    lists = table.name == "vehicle_id"
    return replace(
        recipe,
        protocol=replace(
            table,
            seeds=1,
            models=None,
            fold=(table.fold or 1) if crossed else None,
            name="class_disjoint" if lists else table.name,
            gallery="all" if lists else table.gallery,
        ),
        memory=replace(recipe.memory, start=0),
        train=replace(
            recipe.train,
            steps=1,
            epochs=None,
            minutes=None,
            validate_epochs=None,
            plan=replace(recipe.train.plan, validate_every=1),
        ),
    )


def thinned(dataset: Dataset) -> Dataset:
    """Some images of some classes, both spread evenly, so that categories and roles are all there."""
    splits = torch.zeros(len(dataset), dtype=torch.int64) if dataset.splits is None else dataset.splits
    keep = [
        rows[_evenly(dataset.labels[rows], CLASSES[split], EACH[split])]
        for split in CLASSES
        if len(rows := (splits == split).nonzero().flatten())
    ]
    return dataset.subset(torch.cat(keep).sort().values)


def _evenly(labels: Int64[Tensor, " n"], classes: int, each: int) -> Tensor:
    """Places of at most `each` images of at most `classes` classes."""
    present = labels.unique()  # type: ignore[no-untyped-call]
    chosen = present[torch.linspace(0, len(present) - 1, min(classes, len(present))).round().long()]
    places = []
    for label in chosen.tolist():
        own = (labels == label).nonzero().flatten()
        places.append(own[torch.linspace(0, len(own) - 1, min(each, len(own))).round().long()])
    return torch.cat(places)
