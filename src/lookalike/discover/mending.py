"""Groups while a person mends them: named, merged, divided, taken out.

A person's changes name photos, not groups: the same changes in the same order give the same result on the same groups,
and a sensible one on those of another level. So the file of changes is all there is to keep.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Int64

from lookalike.discover.grouping import APART
from lookalike.discover.table import NEW
from lookalike.errors import check

LONGEST = 100  # characters of a name
Answer = Literal["same", "different", "unsure"]  # about two photos
WORDS: tuple[Answer, ...] = get_args(Answer)


class MendedGroups:
    """Photos in groups, with a person's changes.

    groups: the number of each photo's group, −1 for those in none.
    names: of known classes, and of groups that a person has named.
    known: the numbers of known classes; two of them are never one.
    fixed: photos that brought their label with them.
    aside: photos of groups that a person could not identify.
    out: photos that were taken out.
    named: photos that a person named, alone or with their group; others joined it by a comparison.
    origin: of a group that a person made the one it was made from.
    judged: pairs of photos with the answer about them.
    """

    def __init__(
        self, groups: Int64[np.ndarray, " n"], names: Mapping[int, str], fixed: Bool[np.ndarray, " n"] | None = None
    ) -> None:
        self.groups, self.names, self.known = groups.copy(), dict(names), frozenset(names)
        self.fixed = np.zeros(len(groups), bool) if fixed is None else fixed
        self.aside, self.out, self.named = (np.zeros(len(groups), bool) for _ in range(3))
        self.origin: dict[int, int] = {}
        self.judged: list[tuple[int, int, str]] = []
        self._next = int(groups.max(initial=APART)) + 1

    def check(self, entry: Mapping[str, Any]) -> None:
        """Refuse what contradicts known classes, or changes nothing."""
        if entry["do"] == "same":
            one, other = (int(self.groups[entry[side]]) for side in ("left", "right"))
            check(one != other or one == APART, "these photos are in one group already: choose another group")
            check(not {one, other} <= self.known, "two known classes are never one")
        if "rows" in entry:
            rows = entry["rows"]
            check(bool(rows), "there is nothing chosen: choose a group, or photos of one")
            message = "photos that came with a label keep it: choose only others"
            check(not self.fixed[rows].any(), message)
        if entry["do"] == "split":
            whole = np.isin(self.groups, np.unique(self.groups[rows]))
            check(len(rows) < int(whole.sum()), "choose some photos of the group, not all: the others stay")

    def apply(self, entry: Mapping[str, Any]) -> None:
        """One line of the journal, as `lines` has it."""
        word = entry["do"]
        if word not in WORDS:
            self._place(word, np.array(entry["rows"], np.int64), entry)
        if word in WORDS or (word == "split" and "left" in entry):
            left, right = entry["left"], entry["right"]
            if word == "same":
                self._merge(left, right)
            self.judged.append((left, right, "different" if word == "split" else word))

    def _place(self, word: str, rows: Int64[np.ndarray, " m"], entry: Mapping[str, Any]) -> None:
        rows = rows[~self.fixed[rows]]
        if not len(rows):
            return
        self.aside[rows], self.out[rows], self.named[rows] = (word == each for each in ("aside", "out", "name"))
        if word == "out":
            self.groups[rows] = APART
        elif word == "split":
            self.groups[rows] = self._new(int(self.groups[rows[0]]))
        elif word == "name":
            name = entry["name"]
            number = self.number_of(name)
            self.groups[rows] = number = self._new(int(self.groups[rows[0]])) if number is None else number
            self.names[number] = name

    def number_of(self, name: str) -> int | None:
        """The group of this name."""
        return next((number for number, known in self.names.items() if known == name), None)

    def _new(self, origin: int) -> int:
        self._next += 1
        self.origin[self._next - 1] = self.origin.get(origin, origin)
        return self._next - 1

    def _merge(self, left: int, right: int) -> None:
        one, other = int(self.groups[left]), int(self.groups[right])
        if {one, other} <= self.known or (one == other != APART):
            return  # at another level they may be
        rows = [
            np.flatnonzero(self.groups == group) if group != APART else np.array([row])
            for group, row in ((one, left), (other, right))
        ]
        both = np.concatenate(rows)
        self.groups[both] = self._kept(one, other)
        self.aside[both] = self.out[both] = False

    def _kept(self, one: int, other: int) -> int:
        """The group that stays: a known one, else one with a name, else the first."""
        if one == other:
            return self._new(APART)
        if APART in (one, other):
            return max(one, other)
        ranks: Sequence[tuple[bool, bool]] = [(group in self.known, group in self.names) for group in (one, other)]
        return other if ranks[1] > ranks[0] else one


def standing(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The answers and changes that were not taken back.

    >>> standing([{"do": "out", "photos": ["a"]}, {"do": "undo"}, {"do": "found"}, {"do": "out", "photos": ["b"]}])
    [{'do': 'out', 'photos': ['b']}]
    """
    result: list[Mapping[str, Any]] = []
    for line in lines:
        if line.get("do") not in ("undo", "found"):
            result.append(line)
        elif line.get("do") == "undo" and result:
            result.pop()
    return result


def checked_name(text: str) -> str:
    """A name as a person typed it, without surrounding blanks.

    >>> checked_name(" blue cup ")
    'blue cup'
    """
    name = " ".join(text.split())
    check(0 < len(name) <= LONGEST, f"a name has from 1 to {LONGEST} characters, not {len(name)}")
    check(name.isprintable(), "a name has no control characters: type it again")
    message = f"'{name}' is what groups without a name are called: choose another"
    check(re.fullmatch(rf"{NEW} \d+", name) is None, message)
    return name
