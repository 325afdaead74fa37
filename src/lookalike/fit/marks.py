"""What people marked, in a run: the labels join the images, and the index moves to the new model if that is better.

The model in use and the new one are compared on test classes that neither of them was taught, neither by the run that
made the one in use nor by the marks.
"""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookalike import data
from lookalike.data import Dataset
from lookalike.data.dataset import ORIGINS, SPLITS
from lookalike.data.images.source import Files
from lookalike.data.joining import joined
from lookalike.data.splits import class_blocks
from lookalike.data.vocabulary import UNKNOWN
from lookalike.errors import check
from lookalike.evaluation import compare
from lookalike.features import embed
from lookalike.fit.judge_network import as_files
from lookalike.fit.sample import turns
from lookalike.models import Model
from lookalike.protocols.class_disjoint import LEAST, has, usable
from lookalike.protocols.unseen import Judged, Measure
from lookalike.recipe import Recipe
from lookalike.recipe.protocol import tasks
from lookalike.recipe.validity import takes_sets
from lookalike.runs import OpenRun
from lookalike.search.adding.generation import renew
from lookalike.search.calibration import kept
from lookalike.search.feedback import labels
from lookalike.search.index import Index

DECISION, TABLE = "marks", "marked.csv"
IN_USE = "the model in use"
PAYS = 0.005  # recall@1 that a better model may not give away


@dataclass(frozen=True)
class TaughtMarks:
    """The marks of a run: those of an `index`, or of a table; `seen`: classes that the model in use was taught."""

    table: Path
    index: str | None
    seen: tuple[str, ...]


def read(recipe: Recipe, run: OpenRun) -> TaughtMarks | None:
    """The marks that the recipe names. A resumed run has those that it began with."""
    place = recipe.data.marks
    if place is None:
        return None
    check(
        recipe.protocol.name == "class_disjoint" and len(tasks(recipe)) == 1,
        "marks are for one run with disjoint classes: leave out --with, or seeds and folds",
    )
    made = run.decisions.get(DECISION)
    if made is None:
        made = _taken(place, run)
        run.decisions.make(DECISION, made)
    return TaughtMarks(Path(made["table"]), made["index"], tuple(made["seen"]))


def _taken(place: str, run: OpenRun) -> dict[str, Any]:
    if not Index.exists(place):
        check(
            Path(place).is_file(),
            f"there is no index and no table '{place}': give one with marks, as --with shop.index",
        )
        return {"table": str(Path(place).absolute()), "index": None, "seen": []}
    table = run.folder.path.absolute() / TABLE
    with closing(Index.open(place)) as index:
        found, seen = labels(index.store, table.with_suffix(".pictures")), list(index.model.classes)
    shown = index.shown
    check(bool(found.rows or found.denied), f"nobody has marked anything in '{shown}' yet: leave out --with")
    found.write(table)
    right = sum(pair.right for pair in found.pairs)
    run.note(f"marks of {shown}: {right:,} right, {len(found.pairs) - right:,} wrong, kept in {table}")
    for conflict in found.contradicted:
        run.note(f"conflict, left out: {conflict}")
    return {"table": str(table), "index": place, "seen": seen}


def add(dataset: Dataset, marks: TaughtMarks, recipe: Recipe, run: OpenRun) -> tuple[Dataset, set[str]]:
    """The images together with the marked ones, and the names of the latter; `settle` later looks for copies."""
    marked = _confirmed(data.table(marks.table))
    if marked.denied is not None and not takes_sets(recipe):
        run.note(f"{recipe.loss.name} learns weights per class: {int(marked.undecided().sum()):,} images are not used")
        marked = replace(marked.subset(~marked.undecided()), denied=None)
    dataset = _agreeing(dataset, marked)
    whole = joined(dataset, marked.subset(~_same_files(marked, dataset)))
    return whole, {whole.images.name(row) for row in range(len(dataset), len(whole))}


def _confirmed(marked: Dataset) -> Dataset:
    """Labels that people marked are never in doubt."""
    return replace(marked, origins=torch.full((len(marked),), ORIGINS.index("confirmed")))


def _agreeing(dataset: Dataset, marked: Dataset) -> Dataset:
    """The data set, whose own images are confirmed where a mark of the same file has the same label."""
    here, there = dataset.images, marked.images
    if not isinstance(here, Files) or not isinstance(there, Files):
        return dataset
    said = {there.path(row).absolute(): marked.label_names[label] for row, label in enumerate(marked.labels.tolist())}
    origins = torch.full((len(dataset),), UNKNOWN) if dataset.origins is None else dataset.origins.clone()
    for row, label in enumerate(dataset.labels.tolist()):
        if said.get(here.path(row).absolute()) == dataset.label_names[label]:
            origins[row] = ORIGINS.index("confirmed")
    return replace(dataset, origins=origins)


def _same_files(marked: Dataset, dataset: Dataset) -> Tensor:
    """Which marked images are files of the data set."""
    here, there = dataset.images, marked.images
    if not isinstance(here, Files) or not isinstance(there, Files):
        return torch.zeros(len(marked), dtype=torch.bool)
    known = {here.path(row).absolute() for row in range(len(here))}
    return torch.tensor([there.path(row).absolute() in known for row in range(len(there))], dtype=torch.bool)


def settle(dataset: Dataset, marked: set[str], marks: TaughtMarks, run: OpenRun) -> Dataset:
    """The decoded images without marked copies of others, and with test classes that nobody has taught."""
    ours = torch.tensor([dataset.images.name(row) in marked for row in range(len(dataset))])
    copies = _copies(dataset, ours, run)
    crowd = _crowd(dataset, copies)
    kept, added = dataset.subset(~copies & ~crowd), ours[~copies & ~crowd]
    negative = kept.undecided()
    run.note(
        f"{int((added & ~negative).sum()):,} marked images join {int((~ours).sum()):,} with their labels, "
        f"{int(negative.sum()):,} as negatives; {int(copies.sum()):,} are copies of images that are here, "
        f"{int(crowd.sum()):,} negatives are left out: their class has fewer than twice as many images"
    )
    if has(kept, "train") and has(kept, "test"):
        return _within_splits(kept, added)
    taught = set(marks.seen) | {kept.label_names[label] for label in kept.labels[added].tolist()}
    return kept if marks.index is None else _with_fresh_tests(kept, taught, run)


def _copies(dataset: Dataset, marked: Tensor, run: OpenRun) -> Tensor:
    """Which marked images are copies, to the eye, of others; where those have another label, that is a conflict."""
    result = torch.zeros(len(dataset), dtype=torch.bool)
    if dataset.groups is None:
        return result
    denied = [] if dataset.denied is None else dataset.denied.tolist()
    undecided, first = dataset.undecided(), dict[int, int]()
    for row in (~marked & (dataset.groups >= 0)).nonzero().flatten().tolist():
        first.setdefault(int(dataset.groups[row]), row)
    for row in (marked & (dataset.groups >= 0)).nonzero().flatten().tolist():
        own, other = row, first.setdefault(int(dataset.groups[row]), row)
        if own == other:
            continue
        result[row] = True
        said, known = int(dataset.labels[own]), int(dataset.labels[other])
        if [said, known] in denied if undecided[row] else said != known:
            words = f"{dataset.images.name(own)} is marked as {dataset.label_names[said]}"
            run.note(
                f"conflict, left out: {words}, its copy {dataset.images.name(other)} is {dataset.label_names[known]}"
            )
    return result


def _crowd(dataset: Dataset, copies: Tensor) -> Tensor:
    """Negatives beyond half as many as their class has images: batches draw them in place of those images."""
    undecided = dataset.undecided() & ~copies
    result = torch.zeros(len(dataset), dtype=torch.bool)
    if undecided.any():
        drawn = torch.as_tensor(dataset.drawn_with)[undecided]
        sizes = dataset.subset(~copies).label_sizes()[drawn]
        result[undecided] = turns(drawn) >= (sizes + 1) // 2
    return result


def _within_splits(dataset: Dataset, added: Tensor) -> Dataset:
    """Marked images of classes that the data set keeps for tests are left out; all others train."""
    assert dataset.splits is not None
    held = dataset.labels[(dataset.splits > 0) & ~added]
    splits = torch.where(added, SPLITS.index("train"), dataset.splits)
    return replace(dataset, splits=splits).subset(~(added & torch.isin(dataset.labels, held)))


def _with_fresh_tests(dataset: Dataset, taught: set[str], run: OpenRun) -> Dataset:
    """Test on classes that neither the model in use nor the marks have taught, and that share no photo with those."""
    named = torch.tensor([name in taught for name in dataset.label_names])
    block = class_blocks(dataset)
    known = torch.zeros(dataset.classes, dtype=torch.bool).scatter_(0, block[named], True)[block]
    train = known[dataset.labels] | dataset.undecided()
    fresh = dataset.subset(~train)
    if usable(fresh) < LEAST:
        run.note(
            f"only {usable(fresh)} classes are new to the model in use and to the marks: the two models cannot be "
            "compared, so the index stays as it is; add photos of classes that neither knows"
        )
        return dataset
    return replace(dataset, splits=torch.where(train, SPLITS.index("train"), SPLITS.index("test")))


def in_use(marks: TaughtMarks | None, test: Dataset, measure: Measure, metrics: Any) -> Judged | None:
    """The model of the index on the test classes of a run; None where it was taught one of them."""
    taught = set() if marks is None else set(marks.seen)
    if marks is None or marks.index is None or taught & {test.label_names[label] for label in test.labels.tolist()}:
        return None
    with closing(Index.open(marks.index)) as index:
        model = index.model
    how = model.preprocessing
    own = data.decoded(as_files(test), how.resize or how.crop)  # in its own size: that of the new model may be smaller
    return measure(IN_USE, "baseline", embed(model, own), own, model.geometry, metrics)


def comparison(main: Judged, used: Judged, index: str) -> dict[str, Any]:
    """Whether the index should move: map@r is better beyond the noise, in pairs over classes, and recall@1 no worse."""
    pair = {used.name: used.result, main.name: main.result}
    gain, recall = (compare(pair, [name], over="classes").differences[1] for name in ("map@r", "recall@1"))
    better = gain.low > 0 and recall.difference > -PAYS
    figures = f"map@r {gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}] on the same {_classes(main)} classes"
    sentence = f"Better than the model in use, {figures}: {index} moves to this model."
    if not better:
        sentence = f"Not surely better than the model in use, {figures}: {index} stays with it."
    return {"index": index, "better": better, "sentence": sentence}


def _classes(judged: Judged) -> int:
    return len(set(judged.result.labels))


def move(place: str, folder: Path, model: Model, run: OpenRun) -> None:
    """Let the index answer by the new model, with the calibration of its run."""
    with closing(Index.open(place)) as index:
        if index.identity.fingerprint != model.fingerprint:
            renew(index, model, progress=run.stage(f"embedding the items of {index.shown} again"))
        kept.adopt(index.store, folder, model)
        run.note(f"{index.shown} answers by the new model: generation {index.identity.generation}")
