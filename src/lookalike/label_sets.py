"""Items with several labels, or with none [architecture supervision]: those that share a label are alike."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Int64, Integer
from torch import Tensor

EMPTY = -1  # in a row of numbers: no more labels


@dataclass(frozen=True)
class LabelSets:
    """Any number of labels per item: row i of `numbers` holds those of item i, padded with −1.

    `names` are the labels by number. An item without one has a number of its own, from `len(names)` on. Where `opposed`
    is given, only those pairs are known to be different, by the first numbers of both; the other pairs that share
    nothing are unknown.

    >>> toys = LabelSets.of([{"red", "round"}, {"red"}, None])
    >>> toys.shared(toys)
    tensor([[2, 1, 0],
            [1, 1, 0],
            [0, 0, 1]])
    """

    numbers: Int64[Tensor, "n w"]
    names: tuple[Hashable, ...] = ()
    opposed: Int64[Tensor, "p 2"] | None = None

    @staticmethod
    def of(labels: Any) -> "LabelSets":
        """From `labels`: sets or lists (None, or nothing in it: unlabelled), or a boolean matrix items × labels."""
        from lookalike.labels import joint_sets  # which reads labels of all forms, these among them

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
        return replace(self, numbers=self.numbers.to(device), opposed=opposed)

    def shared(self, other: "LabelSets") -> Int64[Tensor, "n m"]:
        """How many labels each item shares with each item of the `other` sets."""
        columns = [
            ((self.numbers[:, :, None] == column) & (column != EMPTY)).sum(1) for column in other.numbers.unbind(1)
        ]
        return torch.stack(columns).sum(0) if columns else self.numbers.new_zeros(len(self), len(other))

    def opposes(self, other: "LabelSets") -> Bool[Tensor, "n m"]:
        """Which pairs with `other` sets are known to differ: those in `opposed`; without it, all that share nothing."""
        if self.opposed is None:
            return self.shared(other) == 0
        low, high = self.opposed.unbind(1)
        base = 1 + max(int(numbers.max()) if numbers.numel() else 0 for numbers in (high, low, other.numbers))
        keys = torch.cat((low * base + high, high * base + low))
        return torch.isin(self.numbers[:, :1] * base + other.numbers[:, 0], keys)

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
