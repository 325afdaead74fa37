"""The classes of an index over the API: found by a part of their names, in the order in which people count."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lookalike.data.vocabulary import by_number

PART = re.compile(r"(\d+)")


def natural(name: str) -> list[tuple[int, tuple[int, str, str]]]:
    """A key by which "mug 9" comes before "mug 10".

    >>> sorted(["mug 10", "Mug 9", "9", "10", "mug"], key=natural)
    ['9', '10', 'mug', 'Mug 9', 'mug 10']
    """
    parts = PART.split(name.casefold())
    return [(0, by_number(part)) if part.isdecimal() else (1, (0, part, part)) for part in parts if part]


@dataclass(frozen=True)
class ClassList:
    """The names of all classes with the number of their items, in natural order."""

    counts: Sequence[tuple[str, int]] = ()

    @staticmethod
    def of(counts: Sequence[tuple[object, int]]) -> "ClassList":
        return ClassList(sorted(((str(name), number) for name, number in counts), key=lambda each: natural(each[0])))

    def found(self, text: str) -> Sequence[tuple[str, int]]:
        """Those whose names hold a text, in whatever case; one that is called exactly so comes first."""
        if not text:
            return self.counts
        part = text.casefold()
        found = [each for each in self.counts if part in each[0].casefold()]
        return sorted(found, key=lambda each: each[0] != text)
