"""Names to numbers: labels, categories and groups come as strings, losses and samplers take integers."""

from array import array

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike.files import printable

UNKNOWN = -1  # the number of a row without category, group or split


class Vocabulary:
    """Collects one name per row; `finish` numbers the names in sorted order, independent of the order of rows.

    >>> names = Vocabulary()
    >>> for name in ["10", "9", "", "10"]:
    ...     names.add(name)
    >>> names.finish()
    (tensor([ 1,  0, -1,  1]), ('9', '10'))
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.rows = array("q")

    def add(self, name: str) -> None:
        """The name of the next row; the empty name means that the row has none."""
        self.rows.append(self.numbers.setdefault(name, len(self.numbers)) if name else UNKNOWN)

    def know(self, name: str) -> None:
        """A name that no row need have."""
        self.numbers.setdefault(name, len(self.numbers))

    def finish(self) -> tuple[Int64[Tensor, " n"], tuple[str, ...]]:
        names = _sorted(list(self.numbers))
        ranks = np.full(len(names) + 1, UNKNOWN, np.int64)  # the last entry serves the rows without a name
        ranks[[self.numbers[name] for name in names]] = np.arange(len(names))
        return torch.from_numpy(ranks[np.frombuffer(self.rows, np.int64)]), tuple(map(printable, names))


def _sorted(names: list[str]) -> list[str]:
    """In numeric order if all names are whole numbers (class ids of the official sets), else by spelling."""
    if all(name.isdecimal() for name in names):
        return sorted(names, key=by_number)
    return sorted(names)


def by_number(digits: str) -> tuple[int, str, str]:
    """A key by which 9 comes before 10, however many digits there are: Python reads no number of thousands.

    >>> sorted(["10", "9", "009"], key=by_number)
    ['009', '9', '10']
    """
    written = digits.lstrip("0")
    return len(written), written, digits


def numbered(names: list[str]) -> tuple[Int64[Tensor, " n"], tuple[str, ...]]:
    """Ids and sorted names of a short column.

    >>> numbered(["owl", "hen", "owl"])
    (tensor([1, 0, 1]), ('hen', 'owl'))
    """
    vocabulary = Vocabulary()
    for name in names:
        vocabulary.add(name)
    return vocabulary.finish()
