"""A column of strings as one buffer of bytes.

A million Python strings are a million objects: slow to send to a worker process, and copied page by page after a fork
because reading them changes their reference counts. One buffer and one array of offsets avoid both.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64, UInt8


@dataclass(frozen=True)
class StringColumn:
    """Strings, one after the other; string i is `buffer[ends[i]:ends[i + 1]]`.

    >>> column = StringColumn.of(["red", "", "grün"])
    >>> column[2], len(column), list(column.take([1, 0]))
    ('grün', 3, ['', 'red'])
    """

    buffer: UInt8[np.ndarray, " bytes"]
    ends: Int64[np.ndarray, " strings_and_one"]

    @staticmethod
    def of(strings: Iterable[str]) -> "StringColumn":
        """A column from any strings; file names that are not valid UTF-8 survive the round trip."""
        buffer, ends = bytearray(), array("q", [0])
        for string in strings:
            buffer += string.encode("utf-8", "surrogateescape")
            ends.append(len(buffer))
        return StringColumn(np.frombuffer(bytes(buffer), np.uint8), np.frombuffer(ends, np.int64))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, row: int) -> str:
        row = range(len(self))[row]
        return self.buffer[self.ends[row] : self.ends[row + 1]].tobytes().decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def take(self, rows: Sequence[int] | np.ndarray) -> "StringColumn":
        """The strings of these rows, in this order."""
        numbers = np.asarray(rows, np.int64)
        starts, sizes = self.ends[numbers], self.ends[numbers + 1] - self.ends[numbers]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        positions = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)
        return StringColumn(self.buffer[positions], ends)
