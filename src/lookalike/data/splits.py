"""Train, validation and test of disjoint classes: what is tested was never seen in training.

Three ways: random shares, stratified by category; k contiguous ranges of classes (Musgrave et al., ECCV 2020); the
first classes and the rest (the fixed halves of the papers). Classes that share a group (the same photo session,
near-duplicate images) can be kept in one split.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike.cluster import connected
from lookalike.data.dataset import SPLITS, Dataset
from lookalike.errors import check, unknown
from lookalike.label_sets import EMPTY


def class_disjoint(
    dataset: Dataset, shares: Mapping[str, float], *, seed: int = 0, together: Int64[Tensor, " n"] | None = None
) -> Dataset:
    """The data set with its classes split at random, from `seed`, into these `shares`, alike in every category.

    Classes that have images in one group of `together` (−1: none) go to the same split: with the groups of
    `near_duplicate_groups` no near duplicate straddles two splits. Without it the data set's own groups are used.

    >>> from lookalike.data.formats.arrays import arrays
    >>> digits = arrays(torch.zeros(6, 4, 4, dtype=torch.uint8), [0, 0, 1, 1, 2, 2])
    >>> class_disjoint(digits, {"train": 2 / 3, "test": 1 / 3}).splits
    tensor([2, 2, 0, 0, 0, 0])
    """
    blocks = class_blocks(dataset, together)
    categories = torch.full((dataset.classes,), -1)
    if dataset.categories is not None:
        categories[dataset.labels] = dataset.categories
    first = torch.full((dataset.classes,), -1).scatter_(0, blocks.flip(0), torch.arange(dataset.classes).flip(0))
    heads = first[first >= 0]  # one class per block represents it
    assigned = torch.full((dataset.classes,), -1)
    assigned[blocks[heads]] = assign_classes(categories[heads], shares, torch.Generator().manual_seed(seed))
    return replace(dataset, splits=assigned[blocks[dataset.labels]])


def assign_classes(
    categories: Int64[Tensor, " classes"], shares: Mapping[str, float], generator: torch.Generator
) -> Int64[Tensor, " classes"]:
    """A split per class, in these shares over all classes and, up to one class, in every category."""
    for name in shares:
        if name not in SPLITS:
            raise unknown("split", name, SPLITS)
    total = sum(shares.values())
    check(
        min(shares.values(), default=-1) >= 0 and abs(total - 1) < 1e-6,
        f"shares must not be negative and must add up to 1, not {total}",
    )
    count = len(categories)
    shuffled = torch.randperm(count, generator=generator)
    order = shuffled[categories[shuffled].argsort(stable=True)]  # random within a category, category after category
    # every class in this order goes to the split that is furthest behind its share
    targets = torch.tensor([shares[name] for name in shares], dtype=torch.float64)
    numbers = torch.tensor([SPLITS.index(name) for name in shares])
    filled = torch.zeros(len(targets), dtype=torch.float64)
    result = torch.empty(count, dtype=torch.int64)
    for step, row in enumerate(order.tolist(), start=1):
        behind = int((targets * step - filled).argmax())
        filled[behind] += 1
        result[row] = numbers[behind]
    return result


def class_blocks(dataset: Dataset, together: Int64[Tensor, " n"] | None = None) -> Int64[Tensor, " classes"]:
    """The number of the block of every class: classes linked by a common group of `together`, or a label, are one.

    Without `together` the groups of the `dataset` count.
    """
    links = _links(dataset, dataset.groups if together is None else together)
    return torch.tensor(connected(dataset.classes, links), dtype=torch.int64)


def _links(dataset: Dataset, together: Tensor | None) -> Iterator[tuple[int, int]]:
    """Pairs of classes that stay together: by the groups of images, and by the labels of sets."""
    if together is not None:
        known = together >= 0
        yield from _to_first(together[known], dataset.labels[known])
    if dataset.sets is not None:
        numbers = dataset.sets[dataset.labels].numbers
        row, slot = (numbers != EMPTY).nonzero(as_tuple=True)
        yield from _to_first(numbers[row, slot], dataset.labels[row])


def _to_first(groups: Tensor, classes: Tensor) -> Iterator[tuple[int, int]]:
    """Every class of a group with the first one of it."""
    first: dict[int, int] = {}
    for group, label in zip(groups.tolist(), classes.tolist(), strict=True):
        yield label, first.setdefault(group, label)


def halves(dataset: Dataset, train_classes: int | None = None) -> Dataset:
    """The papers' fixed split: the first `train_classes` (by number; by default half) train, the rest test."""
    check_one_label(dataset, "a split by the order of classes")
    first = dataset.classes // 2 if train_classes is None else train_classes
    check(
        0 < first < dataset.classes,
        f"{first} train classes of {dataset.classes} leave one split empty: give 1 to {dataset.classes - 1}",
    )
    return replace(dataset, splits=torch.where(dataset.labels < first, 0, 2))


def last_classes_validate(dataset: Dataset, share: float = 0.2) -> Dataset:
    """Of the train classes the last `share`, in every category, become validation (Roth et al., ICML 2020)."""
    check(0 < share < 1, f"share must lie between 0 and 1, not {share}")
    check_one_label(dataset, "a split by the order of classes")
    check(dataset.splits is not None, f"{dataset.name} has no splits: call halves or class_disjoint first")
    assert dataset.splits is not None
    category = torch.zeros_like(dataset.labels) if dataset.categories is None else dataset.categories
    splits = dataset.splits.clone()
    for value in category.unique(sorted=True).tolist():  # type: ignore[no-untyped-call]
        rows = (dataset.splits == 0) & (category == value)
        present = _present(dataset.labels[rows])
        late = present[int(len(present) * (1 - share) + 1e-9) :]
        splits[rows & torch.isin(dataset.labels, late)] = 1
    return replace(dataset, splits=splits)


def class_folds(dataset: Dataset, folds: int = 4) -> list[Dataset]:
    """The data set `folds` times, its train classes cut into as many contiguous ranges, one of which is validation.

    As in the released code of chance constraints, the last range is the validation of the first fold [math G.2].
    """
    check_one_label(dataset, "cross-validation over classes")
    check(dataset.splits is not None, f"{dataset.name} has no splits: call halves or class_disjoint first")
    assert dataset.splits is not None
    train = dataset.splits == 0
    present = _present(dataset.labels[train])
    check(2 <= folds <= len(present), f"{folds} folds of {len(present)} train classes: give 2 to {len(present)}")
    ranges = [present[len(present) * fold // folds : len(present) * (fold + 1) // folds] for fold in range(folds)]
    return [
        replace(dataset, splits=torch.where(train & torch.isin(dataset.labels, late), 1, dataset.splits))
        for late in reversed(ranges)
    ]


def check_one_label(dataset: Dataset, what: str) -> None:
    """Refuse images with several labels, or with none, where classes are divided up."""
    check(dataset.sets is None, f"{what} needs one label per image, and images of {dataset.name} have several or none")


def _present(labels: Tensor) -> Tensor:
    return torch.bincount(labels).nonzero().squeeze(1)
