"""Train, validation and test share no class: what is proven on test was never seen in training."""

from dataclasses import replace
from typing import NamedTuple

from lookalike.data import Dataset, class_disjoint
from lookalike.data.dataset import SPLITS
from lookalike.errors import UserError, check

LEAST = 2  # classes with two images each: fewer and there is nothing to tell apart


class Parts(NamedTuple):
    """Who trains, validates and tests; `train` with its classes numbered 0 … C − 1. Without enough classes `validation`
    is None. `others` are further test sets by name, where a protocol has several."""

    train: Dataset
    validation: Dataset | None
    test: Dataset
    others: tuple[tuple[str, Dataset], ...] = ()


def parts(dataset: Dataset, test: float, validation: float, seed: int = 0) -> Parts:
    """The dataset by its own train and test splits, or by drawn ones; validation classes are drawn from train's.

    >>> import torch
    >>> from lookalike.data import arrays
    >>> ten = arrays(torch.zeros(20, 4, 4, dtype=torch.uint8), torch.arange(20) // 2)
    >>> [part.present for part in parts(ten, test=0.3, validation=0.2)[:3]]
    [5, 2, 3]
    """
    divided = dataset if has(dataset, "train") and has(dataset, "test") else _tested(dataset, test, seed)
    if validation > 0 and not has(divided, "validation"):
        divided = _validated(divided, validation, seed)
    return of_splits(divided)


def of_splits(divided: Dataset) -> Parts:
    """The parts that the split column names, with enough classes in train and test."""
    named = {name: divided.where(split=name) for name in SPLITS}
    for name in ("train", "test"):
        few = usable(named[name])
        check(few >= LEAST, f"{divided.name}: {few} {name} classes have two images, {LEAST} are needed: add classes")
    held = named["validation"]
    return Parts(named["train"].dense(), held if usable(held) >= LEAST else None, named["test"])


def has(dataset: Dataset, split: str) -> bool:
    return dataset.splits is not None and bool((dataset.splits == SPLITS.index(split)).any())


def usable(dataset: Dataset) -> int:
    """Classes with at least two images."""
    return int((dataset.class_sizes() >= 2).sum())


def _tested(dataset: Dataset, share: float, seed: int) -> Dataset:
    classes = dataset.present
    least = 2 * LEAST
    if usable(dataset) < least:
        raise UserError(
            f"{dataset.name}: {usable(dataset)} classes have two images; training on some and testing on others needs "
            f"at least {least}: add classes"
        )
    count = min(max(LEAST, round(share * classes)), classes - LEAST)
    return class_disjoint(dataset, {"train": 1 - count / classes, "test": count / classes}, seed=seed)


def _validated(dataset: Dataset, share: float, seed: int) -> Dataset:
    """Some of the train classes validate, if enough are left."""
    assert dataset.splits is not None
    train = dataset.splits == 0
    part = dataset.subset(train).dense()
    count = max(LEAST, round(share * part.present))
    if part.present - count < LEAST:
        return dataset
    chosen = class_disjoint(part, {"train": 1 - count / part.present, "validation": count / part.present}, seed=seed)
    assert chosen.splits is not None
    splits = dataset.splits.clone()
    splits[train] = chosen.splits
    return replace(dataset, splits=splits)
