"""One review that threads share: what it shows, changes that are saved, and pictures."""

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.discover.grouping import APART
from lookalike.discover.marking import REVIEW
from lookalike.discover.mending import WORDS, checked_name
from lookalike.discover.review.strips import Strips, halves, middle
from lookalike.discover.review.view import ReviewForm, Word, review_form
from lookalike.discover.session import ReviewSession
from lookalike.errors import UserError, check
from lookalike.image_files import UnreadableError, read
from lookalike.search.adding.sources import listing
from lookalike.search.index import Index
from lookalike.search.pictures import SIDE, small, thumbnail


class Desk:
    """The session of the folder `place`, and where its photos are: in an index, or in the `source` that names them.

    The folder may come from anywhere: no other file is shown, whatever it says.
    """

    def __init__(
        self, place: Path, index: Index | None = None, source: str | None = None, read_only: bool = False
    ) -> None:
        self.session, self.read_only = ReviewSession(place, None if index is None else index.store), read_only
        self._index, self._source = index, source
        of_index = "are no items of an index" if index else "are items of an index"
        check(bool(self.session.kept.photos.ids) == bool(index), f"the photos of '{place}' {of_index}: delete it")
        self._lock = threading.Lock()
        self._look()
        if not read_only:
            self.session.follow()

    def _look(self) -> None:
        whole = self.session.kept.whole
        halfway = (whole.random + self.session.level) / 2  # from random pairs to those of one group
        self._strips = Strips(whole.vectors, self.session.mended, halfway)
        self._best = self.session.best()

    def show(self, count: int) -> ReviewForm:
        """The first `count` groups as they are now."""
        with self._lock:
            if self.session.refresh():
                self._look()
            return review_form(self.session, self._strips, self._best, count, self.read_only)

    def say(self, word: Word, who: str = REVIEW) -> None:
        """Save someone's change: it is on disk when this returns."""
        with self._lock:
            if self.session.refresh():
                self._look()
            if word.do in WORDS:
                self.session.answer(word.version + 1, word.do, who)
            else:
                self.session.say(word.version, _entry_of(word, self._strips), who)
            self._look()

    @cached_property
    def _files(self) -> frozenset[str]:
        """The photos of the source."""
        entries = () if self._source is None else listing(self._source).entries
        return frozenset(str(entry.item.path) for entry in entries)

    def picture(self, row: int, side: int = SIDE) -> bytes | None:
        """A photo as a JPEG of this longer `side`; None where it cannot be read."""
        photos = self.session.kept.photos
        check(
            0 <= row < len(photos.names),
            f"there is no photo {row}: they are numbered from 0 to {len(photos.names) - 1:,}",
        )
        if self._index is not None:
            items = self._index.store.items([photos.ids[row]])
            return thumbnail(self._index.store, items[0], side) if items else None
        try:
            return small(read(Path(photos.names[row])), side) if photos.names[row] in self._files else None
        except UnreadableError:
            return None


def _entry_of(word: Word, strips: Strips) -> dict[str, Any]:
    """The line for a change that answers no question; it names photos, not groups, to mean the same at every level."""
    if word.do == "undo":
        return {"do": "undo"}
    if word.do == "level":
        if word.fineness is None:
            raise UserError("a level is a number from 0 (coarse) to 1 (fine): give one")
        return {"do": "level", "fineness": word.fineness}
    if word.do == "merge":
        return {"do": "same", "left": _middle(strips, word.group), "right": _middle(strips, word.other)}
    rows = _chosen(word, strips)
    if word.do == "split" and not word.photos:
        check(len(rows) > 1, "this is one photo only: there is nothing to divide")
        rows = rows[halves(strips.vectors[rows])]
    if word.do == "name":
        return _named(word, strips, rows)
    return {"do": word.do, "rows": rows.tolist(), **_others(word, strips, rows)}


def _middle(strips: Strips, group: int | None) -> int:
    rows = strips.rows(APART if group is None else group)
    check(group is not None and len(rows) > 0, "there is no such group any more: look again")
    return middle(strips.vectors, rows)


def _chosen(word: Word, strips: Strips) -> np.ndarray:
    """The chosen photos, or else those of the group that came without a label."""
    count = len(strips.vectors)
    if word.photos:
        check(
            all(0 <= row < count for row in word.photos),
            f"there is no such photo: they are numbered from 0 to {count - 1:,}",
        )
        return np.unique(word.photos)
    check(word.group is not None, "photos that are in no group are chosen one by one")
    rows = strips.rows(word.group or 0)
    check(len(rows) > 0, "there is no such group any more: look again")
    check(word.group not in strips.mended.known, "a known class stays as it is: choose photos that do not belong to it")
    return rows


def _named(word: Word, strips: Strips, rows: np.ndarray) -> dict[str, Any]:
    name = checked_name(word.name)
    entry = {"do": "name", "rows": rows.tolist(), "name": name}
    number = strips.mended.number_of(name)
    present = np.empty(0, np.int64) if number is None else np.setdiff1d(strips.rows(number), rows)
    if len(present):
        entry |= {"left": middle(strips.vectors, rows), "right": middle(strips.vectors, present)}
    return entry


def _others(word: Word, strips: Strips, rows: np.ndarray) -> dict[str, Any]:
    """For photos that leave their group: one of them, and one that stays, if any does."""
    group = int(strips.mended.groups[rows[0]])
    rest = np.setdiff1d(strips.rows(group), rows)
    if word.do == "aside" or group == APART or not len(rest):
        return {}
    return {"left": middle(strips.vectors, rows), "right": middle(strips.vectors, rest)}
