"""Train, validation and test share no class: the test classes were never seen in training."""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from lookalike.data import Dataset, class_disjoint
from lookalike.data.dataset import SPLITS
from lookalike.data.vocabulary import UNKNOWN
from lookalike.errors import UserError, check

LEAST = 2  # classes with two images each: with fewer there is nothing to distinguish
ENOUGH = 4 * LEAST  # of given labels, where groups were found beside them: half of them test, and the others in folds


class Parts(NamedTuple):
    """The images that train, validate and test.

    train: its classes are numbered 0 … C − 1.
    validation: None without enough classes for it.
    test: classes that are in neither.
    others: further test sets by name, where a protocol has several.
    """

    train: Dataset
    validation: Dataset | None
    test: Dataset
    others: tuple[tuple[str, Dataset], ...] = ()

    @property
    def judged(self) -> bool:
        """Whether somebody gave the labels that judge; groups that a machine found only agree with themselves."""
        return not bool(self.test.of_origin("found").any())


def parts(dataset: Dataset, test: float, validation: float, seed: int = 0) -> Parts:
    """The dataset by its own train and test splits, or by random ones; some train classes are drawn to validate.

    Images with only ruled-out labels train together with the class that they do not belong to. Groups
    that a machine found train, and do not judge, where there are classes with given labels to judge by.

    >>> import torch
    >>> from lookalike.data import arrays
    >>> ten = arrays(torch.zeros(20, 4, 4, dtype=torch.uint8), torch.arange(20) // 2)
    >>> [part.present for part in parts(ten, test=0.3, validation=0.2)[:3]]
    [5, 2, 3]
    """
    judges = judging(dataset)
    named = dataset.subset(judges) if not judges.all() else dataset
    check_classes(named)
    divided = named if has(named, "train") and has(named, "test") else _with_test(named, test, seed)
    if validation > 0 and not has(divided, "validation"):
        divided = _with_validation(divided, validation, seed)
    return of_splits(divided if judges.all() else _with_others(dataset, divided))


def judging(dataset: Dataset) -> Bool[Tensor, " n"]:
    """The images that may validate and test: those that somebody named, as far as they make enough classes."""
    named = ~dataset.undecided()
    given = named & ~dataset.of_origin("found")
    if dataset.origins is None or usable(dataset.subset(given)) < ENOUGH:
        return named
    return given


def _with_others(dataset: Dataset, named: Dataset) -> Dataset:
    """The dataset by the splits of its images that judge.

    Others train if the class that they are drawn with does, or has no image that judges; copies of held images do not.
    """
    assert named.splits is not None
    assert isinstance(dataset.drawn_with, Tensor)
    judges, train = judging(dataset), SPLITS.index("train")
    splits = torch.full((len(dataset),), UNKNOWN)
    splits[judges] = named.splits
    held = torch.isin(dataset.drawn_with, named.labels[named.splits != train])
    known = torch.isin(dataset.drawn_with, named.labels) | dataset.of_origin("found")
    if dataset.groups is not None:
        held |= (dataset.groups >= 0) & torch.isin(dataset.groups, dataset.groups[judges & (splits != train)])
    splits[~judges & known & ~held] = train
    return replace(dataset, splits=splits)


def check_classes(dataset: Dataset) -> None:
    """Refuse a dataset whose classes cannot be split into some that train and some that test; no image is read."""
    if has(dataset, "train") and has(dataset, "test"):
        for name in ("train", "test"):
            _check_side(dataset.where(split=name), name)
        return
    if dataset.sets is not None:
        _check_apart(_with_test(dataset, 0.5, seed=0))
        return
    least = 2 * LEAST
    if usable(dataset) < least:
        raise UserError(
            f"{dataset.name}: only {usable(dataset)} classes have two or more images; training on some and testing on "
            f"others needs at least {least}: add classes"
        )


def _check_apart(divided: Dataset) -> None:
    """Labels that occur together stay together; what is left must make two sides."""
    for name in ("train", "test"):
        if usable(divided.where(split=name)) < LEAST:
            raise UserError(
                f"{divided.name}: labels occur together so often that no class can be held out of training: add a "
                "column split to the table, with train and test"
            )


def _check_side(part: Dataset, name: str) -> None:
    if part.sets is not None and name == "train":  # which may be unlabelled altogether
        check(len(part) >= 2 * LEAST, f"{part.name}: {len(part)} images are too few to train on: add images")
        return
    count = usable(part)
    check(
        count >= LEAST,
        f"{part.name}: only {count} {name} classes have two or more images, {LEAST} are needed: add classes",
    )


def of_splits(divided: Dataset) -> Parts:
    """The parts that the column of splits names; train and test must have enough classes."""
    named = {name: divided.where(split=name) for name in SPLITS}
    for name in ("train", "test"):
        _check_side(named[name], name)
    held = named["validation"]
    return Parts(named["train"].dense(), held if usable(held) >= LEAST else None, named["test"])


def has(dataset: Dataset, split: str) -> bool:
    return dataset.splits is not None and bool((dataset.splits == SPLITS.index(split)).any())


def usable(dataset: Dataset) -> int:
    """Classes with at least two images."""
    return dataset.with_pairs


def _with_test(dataset: Dataset, share: float, seed: int) -> Dataset:
    classes = dataset.present
    count = min(max(LEAST, round(share * classes)), classes - LEAST)
    return class_disjoint(dataset, {"train": 1 - count / classes, "test": count / classes}, seed=seed)


def _with_validation(dataset: Dataset, share: float, seed: int) -> Dataset:
    """Some train classes become validation classes, if enough are left."""
    assert dataset.splits is not None
    train = dataset.splits == 0
    part = dataset.subset(train).dense()
    count = max(LEAST, round(share * part.present))
    if part.present - count < LEAST:
        return dataset
    split = class_disjoint(part, {"train": 1 - count / part.present, "validation": count / part.present}, seed=seed)
    assert split.splits is not None
    if part.sets is not None and not _is_fair(split, share):
        split = replace(part, splits=_some_images(len(part), share, seed))
    assert split.splits is not None
    splits = dataset.splits.clone()
    splits[train] = split.splits
    return replace(dataset, splits=splits)


def _is_fair(divided: Dataset, share: float) -> bool:
    """Whether labels that stay together left enough on both sides, and not most images to validate."""
    held = divided.where(split="validation")
    return usable(held) >= LEAST and len(held) <= max(0.5, 2 * share) * len(divided)


def _some_images(count: int, share: float, seed: int) -> Tensor:
    """Where labels cannot be kept apart, images are: some of them validate."""
    splits = torch.zeros(count, dtype=torch.int64)
    held = torch.randperm(count, generator=torch.Generator().manual_seed(seed))[: round(share * count)]
    splits[held] = SPLITS.index("validation")
    return splits
