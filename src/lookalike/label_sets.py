"""Labels in every form, those of items with several of them, or with none, included [architecture supervision].

An item with several labels is like every item that shares one of them, an item without any is like nothing but its own
other views.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64, Integer
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import check
from lookalike.labels import distinct, encode, values_of

EMPTY = -1  # in a row of numbers: no more labels
SEVERAL = (set, frozenset, list)  # a tuple is one label, as it always was


@dataclass(frozen=True)
class LabelSets:
    """Any number of labels per item: row i of `numbers` holds those of item i, padded with −1.

    `names` are the labels by number. An item without one has a number of its own, from `len(names)` on. Where `opposed`
    is given, only those pairs are known to be different, by the first numbers of both; the other pairs that share
    nothing are unknown. With `unsure` that holds for pairs with these first numbers alone: all others are different
    where they share nothing.

    >>> toys = LabelSets.of([{"red", "round"}, {"red"}, None])
    >>> toys.shared(toys)
    tensor([[2, 1, 0],
            [1, 1, 0],
            [0, 0, 1]])
    """

    numbers: Int64[Tensor, "n w"]
    names: tuple[Hashable, ...] = ()
    opposed: Int64[Tensor, "p 2"] | None = None
    unsure: Int64[Tensor, " u"] | None = None

    @staticmethod
    def of(labels: Any) -> "LabelSets":
        """From `labels`: sets or lists (None, or nothing in it: unlabelled), or a boolean matrix items × labels."""
        return joint_sets(labels)[0]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Integer[Tensor, " k"] | Bool[Tensor, " n"] | slice | Sequence[int]) -> "LabelSets":
        """The labels of some items, such as those of a batch."""
        place = rows.to(self.numbers.device) if isinstance(rows, Tensor) else rows
        return replace(self, numbers=self.numbers[place])

    def to(self, device: torch.device | str) -> "LabelSets":
        """The same on another `device`."""
        opposed = None if self.opposed is None else self.opposed.to(device)
        unsure = None if self.unsure is None else self.unsure.to(device)
        return replace(self, numbers=self.numbers.to(device), opposed=opposed, unsure=unsure)

    def shared(self, other: "LabelSets") -> Int64[Tensor, "n m"]:
        """How many labels each item shares with each item of the `other` sets."""
        shared = self.numbers.new_zeros(len(self), len(other))
        for label in self.numbers.unbind(1):
            for another in other.numbers.unbind(1):
                shared += (label[:, None] == another) & (another != EMPTY)
        return shared

    def opposes(self, other: "LabelSets") -> Bool[Tensor, "n m"]:
        """Which pairs with `other` sets are known to differ: those in `opposed`; without it, all that share nothing."""
        if self.opposed is None:
            return self.shared(other) == 0
        low, high = self.opposed.unbind(1)
        base = 1 + max(int(numbers.max()) if numbers.numel() else 0 for numbers in (high, low, other.numbers))
        keys = torch.cat((low * base + high, high * base + low))
        judged = torch.isin(self.numbers[:, :1] * base + other.numbers[:, 0], keys)
        if self.unsure is None:
            return judged
        sure = ~(torch.isin(self.numbers[:, :1], self.unsure) | torch.isin(other.numbers[:, 0], self.unsure))
        return judged | (sure & (self.shared(other) == 0))

    def kinds(self) -> "tuple[Int64[Tensor, ' n'], LabelSets]":
        """The number of every item's set among the different sets, and those sets.

        >>> LabelSets.of([{"red"}, {"red", "round"}, {"red"}]).kinds()[0]
        tensor([0, 1, 0])
        """
        sets, kind = torch.unique(self.numbers, dim=0, return_inverse=True)
        return kind, replace(self, numbers=sets)

    def texts(self) -> list[str]:
        """Every item's labels in one word, as a table has them; nothing for an unlabelled item.

        >>> LabelSets.of([{"round", "red"}, None]).texts()
        ['red|round', '']
        """
        return ["|".join(str(label) for label in own) for own in self.lists()]

    def lists(self) -> list[list[Hashable]]:
        """Every item's labels; none for an unlabelled item."""
        known = len(self.names)
        return [[self.names[k] for k in sorted(row) if 0 <= k < known] for row in self.numbers.tolist()]


Labels = Tensor | NDArray[Any] | Sequence[Any] | LabelSets


def several(*columns: Labels) -> bool:
    """Whether labels come as sets, or are missing for some items: then they are `LabelSets`.

    >>> several([{"red", "round"}, {"red"}]), several(["red", ("red", "round")])
    (True, False)
    """
    return any(_several(column) for column in columns)


def _several(labels: Labels) -> bool:
    if isinstance(labels, LabelSets):
        return True
    if isinstance(labels, Tensor):
        return labels.dim() == 2 and labels.dtype == torch.bool
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return labels.ndim == 2 and labels.dtype == np.bool_
    return isinstance(labels, Iterable) and any(value is None or isinstance(value, SEVERAL) for value in labels)


def joint_sets(*columns: Labels, name: str = "labels") -> list[LabelSets]:
    """Columns of labels as sets with the same numbers; an item without a label shares its number with no other.

    >>> [sets.numbers.tolist() for sets in joint_sets([{"red", "round"}], ["red", None])]
    [[[0, 1]], [[0], [2]]]
    """
    ready = [column for column in columns if isinstance(column, LabelSets)]
    if ready:  # rows of one LabelSets keep its very names; two of different origin would number unlabelled items alike
        one = len(ready) == len(columns) and all(column.names is ready[0].names for column in ready)
        check(one, f"{name} of which one is LabelSets must all be rows of the same LabelSets, such as sets[rows]")
        return ready
    read = [[_labels_of(value) for value in _rows(column, name)] for column in columns]
    codes, names = encode(*([label for row in rows for label in row] for rows in read))
    own = len(names)
    sets = []
    for rows, flat in zip(read, codes, strict=True):
        numbers = torch.full((len(rows), max(map(len, rows), default=0) or 1), EMPTY)
        ends = np.cumsum([0, *map(len, rows)])
        for row, values in enumerate(rows):
            if values:
                numbers[row, : len(values)] = torch.from_numpy(np.sort(flat[ends[row] : ends[row + 1]]))
            else:
                numbers[row, 0], own = own, own + 1
        sets.append(LabelSets(numbers, tuple(names)))
    return sets


def _rows(labels: Labels, name: str) -> Iterable[Any]:
    if isinstance(labels, Tensor | np.ndarray) and labels.ndim == 2 and _several(labels):
        return [row.nonzero().flatten().tolist() for row in torch.as_tensor(labels).cpu()]
    return values_of(labels, name)


def _labels_of(value: Any) -> list[Hashable]:
    if value is None:
        return []
    return distinct(value) if isinstance(value, SEVERAL) else [value]
