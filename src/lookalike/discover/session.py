"""Groups that a person mends by answers, in a folder: what was found, the answers, and the table that `fit` reads.

`found.csv` and `likeness.npz` are written once, `answers.jsonl` only grows, and `labels.csv` follows from them.
The next question follows from them, too: whoever asks is asked the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.discover import journal, table
from lookalike.discover.gain import Candidates, Judged, Likeness
from lookalike.discover.grouping import APART, Grouping
from lookalike.discover.mending import MendedGroups
from lookalike.discover.photos import Photos
from lookalike.discover.table import NEW, GroupedPhoto
from lookalike.errors import UserError, check
from lookalike.files import lock, whole_folder

FOUND, LIKENESS, ANSWERS, LABELS = "found.csv", "likeness.npz", "answers.jsonl", "labels.csv"
AGAIN = 20  # answers after which another fit is offered


@dataclass(frozen=True)
class GroupQuestion:
    """Do these two photos show the same kind? With this `chance` they do, and `photos` come into their group."""

    number: int
    left: str
    right: str
    chance: float
    photos: int


def begin(place: Path, photos: Photos, whole: Grouping) -> None:
    """Find groups at the suggested level and keep them, with what questions need."""
    check(photos.geometry == "sphere", "questions need vectors that are compared by their angle: take such a model")
    level = whole.suggested()
    rows = table.rows_of(photos, whole.at(level))
    with whole_folder(place) as folder:
        np.savez(
            folder / LIKENESS,
            vectors=whole.vectors,
            nearest=whole.nearest,
            level=level,
            random=np.float64(whole.random),
        )
        table.write(rows, folder / FOUND)
        table.write(rows, folder / LABELS)


class Session:
    """The groups of a folder as its answers leave them."""

    def __init__(self, place: Path) -> None:
        self.place, self.rows = place, table.read(place / FOUND)
        try:
            with np.load(place / LIKENESS, allow_pickle=False) as content:
                self._like = Likeness(
                    content["vectors"], content["nearest"], float(content["level"]), float(content["random"])
                )
        except (OSError, ValueError, KeyError):
            raise UserError(f"'{place / LIKENESS}' is damaged: delete '{place}' and ask again") from None
        check(len(self._like.vectors) == len(self.rows), f"'{place}' is damaged: delete it and ask again")
        labels = sorted({row.label for row in self.rows} - {""})
        self._labels = dict(enumerate(labels))
        number = {label: place for place, label in self._labels.items()}
        groups = np.array([number.get(row.label, APART) for row in self.rows], np.int64)
        known = {row.label for row in self.rows if row.verdict in ("known", "joined")}
        self.mended = MendedGroups(groups, {number[label]: label for label in known})
        self.judged: list[Judged] = []
        self.answers = self.merges = 0
        for entry in journal.entries(place / ANSWERS):
            self._apply(entry)

    def question(self) -> GroupQuestion | None:
        """The one whose answer is expected to bring most; None where nothing is left to ask."""
        found = self._candidates()
        if not len(found.pairs):
            return None
        best = int(found.gain.argmax())
        left, right = (self.rows[row].path for row in found.pairs[best].tolist())
        chance, photos = float(found.chance[best]), int(found.settled[best])
        return GroupQuestion(self.answers + 1, left, right, chance, photos)

    def answer(self, number: int, word: str) -> None:
        """Keep the answer to the question of this number, which must be the next one; groups follow at once."""
        with lock(self.place / ".lock"):
            for entry in journal.entries(self.place / ANSWERS)[self.answers :]:
                self._apply(entry)
            message = f"question {number} is not the next one, which is {self.answers + 1}: ask again"
            check(number == self.answers + 1, message)
            found = self._candidates()
            check(bool(len(found.pairs)), "there is nothing left to ask about these groups")
            best = int(found.gain.argmax())
            left, right = found.pairs[best].tolist()
            entry = {"do": word, "left": left, "right": right, "seen": found.seen[best].tolist()}
            journal.append(self.place / ANSWERS, entry)
            self._apply(entry)
            table.write(self.labelled(), self.place / LABELS)

    def labelled(self) -> list[GroupedPhoto]:
        """The rows of the table; a merged group has the name of the one that was there first."""
        result = []
        for row, group in zip(self.rows, self.mended.groups.tolist(), strict=True):
            if row.verdict == "known":
                result.append(row)
                continue
            name = self.mended.names.get(group, self._labels.get(group, f"{NEW} {group}"))
            verdict = "unknown" if group == APART else "joined" if group in self.mended.names else "found"
            result.append(replace(row, label="" if group == APART else name, verdict=verdict))
        return result

    def _candidates(self) -> Candidates:
        return self._like.candidates(self.mended, self.judged)

    def _apply(self, entry: Mapping[str, Any]) -> None:
        try:
            self.mended.apply(entry)
            seen = float(entry["seen"][0]), float(entry["seen"][1])
        except (KeyError, TypeError, ValueError, IndexError):
            raise UserError(f"'{self.place / ANSWERS}' has a line that is no answer: {dict(entry)}") from None
        self.answers += 1
        self.merges += entry["do"] == "same"
        if entry["do"] != "unsure":
            self.judged.append(Judged(seen, entry["do"] == "same"))


def folder_of(source: str) -> Path:
    """Where the answers about photos or an index are kept: NAME.review, beside them."""
    place = Path(source).expanduser()
    return place if place.suffix == ".review" else place.with_name(f"{place.name}.review")
