"""A data set, wherever it comes from: a source of images, and one column per fact about them.

Columns, not objects: a million rows are a few tensors. Labels are 0 … C − 1 with their names beside them; categories,
splits, roles and groups are optional; −1 in them means that a row has none. Where images have several labels, or none,
a label is the number of a set of labels, and `sets` has the sets [architecture supervision].
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, Integer
from torch import Tensor

from lookalike.data.images.source import Source
from lookalike.errors import check, unknown
from lookalike.label_sets import EMPTY, LabelSets

SPLITS = ("train", "validation", "test")
ROLES = ("query", "gallery")
ORIGINS = ("found", "confirmed")  # of a label: grouped by a machine, or looked at by a person; else it was given


@dataclass(frozen=True)
class Problem:
    """One fault of one file, or of the whole data set: then `path` is its root; its `kind`, and `detail` in words."""

    path: str
    kind: str
    detail: str


@dataclass(frozen=True)
class Dataset:
    """Images with labels; rows are never Python objects. In a column, −1 means that a row has none.

    name: what people call it.
    images: where the pixels come from, one row per image.
    labels: the class of every row, a number from 0.
    label_names: the names of the classes, by number.
    categories: the super-category of every row.
    category_names: their names, by number.
    splits: of every row: train, val or test, by number.
    roles: of every row: query or gallery, by number.
    groups: which rows belong together and must not be separated, or find each other.
    origins: of every row's label: found by a machine or confirmed by a person, by number.
    chances: of every row's label, that it is right, where they weigh in training.
    root: the folder or table it was read from.
    problems: what is wrong with its files.
    sets: the labels that each class stands for, where images have several; None: a class is one label.
    denied: pairs of classes: images of the first are not of the second; itself where that class is not here.

    >>> from lookalike.data.formats.arrays import arrays
    >>> birds = arrays(np.zeros((3, 8, 8, 3), np.uint8), ["owl", "hen", "owl"], splits=["train", "train", "test"])
    >>> birds.labels, birds.label_names, len(birds.where(split="train"))
    (tensor([1, 0, 1]), ('hen', 'owl'), 2)
    """

    name: str
    images: Source
    labels: Int64[Tensor, " n"]
    label_names: tuple[str, ...]
    categories: Int64[Tensor, " n"] | None = None
    category_names: tuple[str, ...] = ()
    splits: Int64[Tensor, " n"] | None = None
    roles: Int64[Tensor, " n"] | None = None
    groups: Int64[Tensor, " n"] | None = None
    origins: Int64[Tensor, " n"] | None = None
    chances: Float[Tensor, " n"] | None = None
    root: Path | None = None
    problems: tuple[Problem, ...] = ()
    sets: LabelSets | None = None
    denied: Int64[Tensor, "p 2"] | None = None

    def __post_init__(self) -> None:
        for name in ("images", *self.columns()):
            rows = len(getattr(self, name))
            check(
                rows == len(self.labels),
                f"{self.name} has {rows} {name} for {len(self.labels)} labels: give one for every image",
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """The number of classes, including those without images in this part of the data."""
        return len(self.label_names)

    @property
    def present(self) -> int:
        """The number of classes that have images here; of labels that two images share, where images have several."""
        if self.sets is not None:
            return self.with_pairs
        return int((self.label_sizes() > 0).sum())

    @property
    def with_pairs(self) -> int:
        """The number of classes, or labels, that two or more images have."""
        return int((self.label_sizes() >= 2).sum())

    @property
    def supervision(self) -> Int64[Tensor, " n"] | LabelSets:
        """What says which images are alike: the column of labels, or a set of labels for every image."""
        return self.labels if self.sets is None else self.sets[self.labels]

    @property
    def judged_pairs(self) -> LabelSets | None:
        """What class numbers say of pairs, where that is more than whether they are equal."""
        if self.sets is not None or self.denied is None:
            return self.sets
        own, (undecided, other) = torch.arange(self.classes)[:, None], self.denied.unbind(1)
        known = self.denied[undecided != other]
        return LabelSets(own, self.label_names, known, undecided.unique())  # type: ignore[no-untyped-call]

    @property
    def drawn_with(self) -> Int64[Tensor, " n"] | LabelSets:
        """What a sampler draws batches by: an image that does not belong to a class is drawn together with it."""
        if self.sets is not None or self.denied is None:
            return self.supervision
        number = torch.arange(self.classes)
        own, other = self.denied[self.denied[:, 0] != self.denied[:, 1]].unbind(1)
        number[own] = other
        return number[self.labels]

    def undecided(self) -> Bool[Tensor, " n"]:
        """The images of which it is known only which classes they do not belong to."""
        if self.denied is None:
            return torch.zeros(len(self), dtype=torch.bool)
        return torch.isin(self.labels, self.denied[:, 0])

    def of_origin(self, origin: str) -> Bool[Tensor, " n"]:
        """The images whose label is of this `origin`, by its name."""
        number = _number("origin", origin, ORIGINS)
        return torch.zeros(len(self), dtype=torch.bool) if self.origins is None else self.origins == number

    def label_sizes(self) -> Int64[Tensor, " numbers"]:
        """How many images each class, or each label of those with several, has here; undecided ones have none."""
        if self.sets is None:
            return torch.bincount(self.labels[~self.undecided()], minlength=self.classes)
        numbers = self.sets[self.labels].numbers
        return torch.bincount(numbers[numbers != EMPTY], minlength=int(self.sets.numbers.max()) + 1)

    def columns(self) -> tuple[str, ...]:
        """The names of the columns that this data set has."""
        possible = ("labels", "categories", "splits", "roles", "groups", "origins", "chances")
        return tuple(name for name in possible if getattr(self, name) is not None)

    def label_id(self, name: str) -> int:
        """The number of the class called `name`."""
        if name not in self.label_names:
            raise unknown("class", name, self.label_names[:1000])
        return self.label_names.index(name)

    def class_sizes(self) -> Int64[Tensor, " classes"]:
        """How many images each class has here."""
        return torch.bincount(self.labels, minlength=self.classes)

    def subset(self, rows: Integer[Tensor, " k"] | Bool[Tensor, " n"] | Sequence[int] | np.ndarray) -> "Dataset":
        """Some `rows`, by number or by mask; classes keep their numbers (`dense` renumbers them)."""
        numbers = torch.as_tensor(rows)
        if numbers.dtype == torch.bool:
            check(len(numbers) == len(self), f"the mask has {len(numbers)} entries for {len(self)} rows")
            numbers = numbers.nonzero().squeeze(1)
        numbers = numbers.to(torch.int64)
        columns = {name: getattr(self, name)[numbers] for name in self.columns()}
        return replace(self, images=self.images.take(numbers.numpy()), **columns)

    def where(self, *, split: str | None = None, role: str | None = None, category: str | None = None) -> "Dataset":
        """The rows of one `split`, `role` or `category`, by name; several of them: the rows of all at once."""
        mask = torch.ones(len(self), dtype=torch.bool)
        for kind, value, names in (
            ("split", split, SPLITS),
            ("role", role, ROLES),
            ("category", category, self.category_names),
        ):
            if value is not None:
                mask &= self._column(kind) == _number(kind, value, names)
        return self.subset(mask)

    def _column(self, kind: str) -> Tensor:
        column = getattr(self, {"split": "splits", "role": "roles", "category": "categories"}[kind])
        check(column is not None, f"{self.name} has no {kind} column")
        assert isinstance(column, Tensor)
        return column

    def dense(self) -> "Dataset":
        """The same rows with the classes that occur numbered 0 … C − 1, for losses with a weight per class."""
        present = self.class_sizes() > 0
        names = tuple(self.label_names[index] for index in present.nonzero().flatten().tolist())
        sets = None if self.sets is None else self.sets[present]
        number, denied = present.cumsum(0) - 1, self.denied
        if denied is not None:
            own, other = denied[present[denied[:, 0]]].unbind(1)
            denied = number[torch.stack((own, torch.where(present[other], other, own)), 1)]
        return replace(self, labels=number[self.labels], label_names=names, sets=sets, denied=denied)

    def summary(self) -> str:
        """One line: rows, classes, categories, splits."""
        parts = [f"{len(self):,} images", f"{self.present:,} {'classes' if self.sets is None else 'shared labels'}"]
        if self.categories is not None:
            parts.append(f"{len(self.category_names)} categories")
        if self.splits is not None:
            parts += [f"{name} {int((self.splits == number).sum()):,}" for number, name in enumerate(SPLITS)]
        return f"{self.name}: " + ", ".join(parts)


def _number(kind: str, value: str, names: tuple[str, ...]) -> int:
    if value not in names:
        raise unknown(kind, value, names)
    return names.index(value)
