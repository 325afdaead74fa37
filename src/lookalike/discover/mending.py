"""Groups while a person compares photos of them: merged, or known to be apart.

The same words in the same order on the same groups give the same result, so that the file of them is all
there is to keep.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int64

from lookalike.discover.answers import WORDS
from lookalike.discover.grouping import APART
from lookalike.errors import check


class MendedGroups:
    """The group of every photo, the `names` of known ones, and what was said about pairs of photos."""

    def __init__(self, groups: Int64[np.ndarray, " n"], names: Mapping[int, str]) -> None:
        self.groups, self.names = groups.copy(), dict(names)
        self.judged: list[tuple[int, int, str]] = []  # pairs of photos with a word

    @property
    def apart(self) -> set[tuple[int, int]]:
        """Two groups that are known to be different, or of which nobody could tell, the lower number first."""
        pairs = {
            (min(one, other), max(one, other))
            for left, right, word in self.judged
            if word != "same" and (one := int(self.groups[left])) != (other := int(self.groups[right]))
        }
        named = sorted(self.names)
        return pairs | {(one, other) for place, one in enumerate(named) for other in named[place + 1 :]}

    def apply(self, answer: Mapping[str, Any]) -> None:
        """{"do": "same" | "different" | "unsure", "left": row, "right": row}: "same" merges the groups of both."""
        left, right, word = int(answer["left"]), int(answer["right"]), str(answer["do"])
        known = range(len(self.groups))
        check(word in WORDS and left in known and right in known and left != right, f"{dict(answer)} is no answer")
        one, other = int(self.groups[left]), int(self.groups[right])
        if word == "same" and one != other:
            self._merge(left, right, one, other)
        self.judged.append((left, right, word))

    def _merge(self, left: int, right: int, one: int, other: int) -> None:
        check(one not in self.names or other not in self.names, "two known classes are never one")
        if APART in (one, other):
            self.groups[[left, right]] = max(one, other)
            return
        kept, joined = (other, one) if other in self.names else (one, other)
        self.groups[self.groups == joined] = kept
