"""Groups that a person mends, in a folder: what was found, a person's changes, and the table that `fit` reads.

`answers.jsonl` only grows. It names photos (by ids in an index, else by paths from where the folder is), so that it
outlives the groups in `found.npz`, which are found again by another model, or when photos come and go. `labels.csv` and
marks in an index follow from both. So does the next question, which is the same on the command line and on the page.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.discover import journal, kept, marking, table
from lookalike.discover.gain import JudgedGroups, Likeness, OpenQuestions
from lookalike.discover.grouping import APART
from lookalike.discover.kept import ANSWERS, LABELS, LOCK
from lookalike.discover.lines import Brought, Entry, check_line
from lookalike.discover.marking import REVIEW
from lookalike.discover.mending import WORDS, Answer, MendedGroups, standing
from lookalike.discover.table import NEW, GroupedPhoto
from lookalike.errors import UserError, check
from lookalike.files import lock, printable
from lookalike.search.stores import Store

AGAIN = 20  # answers and changes after which another fit is offered
UNLIKELY = 0.1  # chance that two groups are one, below which nobody needs to be asked


@dataclass(frozen=True)
class GroupQuestion:
    """Do these two photos show the same kind? With this `chance` they do, and then `photos` join their group."""

    number: int
    left: str
    right: str
    chance: float
    photos: int


class ReviewSession:
    """The groups of a folder as its answers leave them; `store`: of the index whose items the photos are.

    version: the lines of the journal that are in it.
    lines: the answers and changes that were not taken back.
    entries: those of them that are about photos which are still there, by their rows.
    found: the lines about groups that were found again.
    since: the number of answers and changes after the last of them.
    mended: the groups.
    fineness: the level that was chosen, from 0 to 1; None as suggested.
    level: the same as the mean similarity down to which groups were merged.
    """

    def __init__(self, place: Path, store: Store | None = None) -> None:
        self.place, self.store, self.version = place, store, 0
        self._questions: OpenQuestions | None = None  # of this version
        self._load()
        self._rebuild([])
        self.refresh()

    def _load(self) -> None:
        self.kept = kept.load(self.place)
        beside = f"{self.place.absolute().parent}/"
        self._names = self.kept.photos.ids or [name.removeprefix(beside) for name in self.kept.photos.names]
        self._row = {name: row for row, name in enumerate(self._names)}

    def refresh(self) -> bool:
        """Take in the changes of others; whether there were any."""
        numbered = journal.numbered(self.place / ANSWERS)
        for number, line in numbered[self.version :]:
            _check(line, f"line {number} of '{self.place.name}/{ANSWERS}' cannot be used")
        lines = [line for _, line in numbered]
        fresh = {line["do"] for line in lines[self.version :]}
        if "found" in fresh:
            self._load()
        if len(lines) < self.version or fresh & {"undo", "level", "found"}:
            self._rebuild(standing(lines))
        else:
            for line in lines[self.version :]:
                self._apply(line)
        places = [place for place, line in enumerate(lines) if line["do"] == "found"]
        self.found = [lines[place] for place in places]
        self.since = len(standing(lines[places[-1] :] if places else lines))
        changed, self.version = len(lines) != self.version, len(lines)
        if changed:
            self._questions = None
        return changed

    def _rebuild(self, lines: list[Entry]) -> None:
        levels = [line for line in lines if line["do"] == "level"]
        self.fineness = float(levels[-1]["fineness"]) if levels else None
        photos, whole, found = self.kept.photos, self.kept.whole, self.kept.at(self.fineness)
        self.rows, self.level = table.rows_of(photos, found), found.level
        self._like = Likeness(whole.vectors, whole.nearest, self.level, whole.random)
        self._labels = table.names_of(photos, found)
        taken = (re.fullmatch(rf"{NEW} (\d+)", label) for label in self._labels.values())
        self._numbered = max((int(each[1]) for each in taken if each), default=0)
        classes = set(photos.classes)
        known = {group: label for group, label in self._labels.items() if label in classes}
        fixed = np.array([label is not None for label in photos.labels], bool)
        self.mended = MendedGroups(found.groups, known, fixed)
        self.judged: list[JudgedGroups] = []
        self.lines: list[Entry] = []
        self.entries: list[Entry] = []
        for line in lines:
            self._apply(line)

    def _apply(self, line: Entry) -> None:
        entry = self._by_rows(line)
        if entry is not None and entry["do"] != "level":
            self.mended.apply(entry)
            self.entries.append(entry)
        if "seen" in line and line["do"] != "unsure":
            self.judged.append(JudgedGroups((float(line["seen"][0]), float(line["seen"][1])), line["do"] == "same"))
        self.lines.append(line)

    def _by_rows(self, line: Entry) -> dict[str, Any] | None:
        """A line with rows in place of names; None if no photo that it names is left."""
        entry = {name: value for name, value in line.items() if name not in ("photos", "left", "right")}
        if line["do"] in ("name", "split", "out", "aside"):
            entry["rows"] = [self._row[name] for name in line["photos"] if name in self._row]
            if not entry["rows"]:
                return None
        if "left" in line:
            sides = {side: self._row.get(line[side]) for side in ("left", "right")}
            if None not in sides.values():
                entry |= sides
            elif line["do"] in WORDS:
                return None
        return entry

    def _by_names(self, entry: Entry) -> dict[str, Any]:
        """A line of the journal."""
        line = {name: value for name, value in entry.items() if name != "rows"}
        if "rows" in entry:
            line["photos"] = [self._names[row] for row in entry["rows"]]
        return line | {side: self._names[entry[side]] for side in ("left", "right") if side in entry}

    @property
    def commands(self) -> Sequence[str]:
        """The command by which a model learns from the groups, and the one that then finds groups by it."""
        source = shlex.quote(printable(str(self.place).removesuffix(".review")))
        table, run = shlex.quote(printable(str(self.place / LABELS))), f"run-{len(self.found) + 1}"
        use = f"review {source} --model" if self.store is None else f"upgrade {source}"
        return f"lookalike fit {table} --out {run}", f"lookalike {use} {run}/model"

    @property
    def answered(self) -> list[Entry]:
        """Answers to questions."""
        return [line for line in self.lines if "seen" in line]

    @property
    def merges(self) -> int:
        return sum(line["do"] == "same" for line in self.lines)

    @property
    def brought(self) -> str:
        """How much the last new model improved, in words; nothing if there was none."""
        last = self.found[-1] if self.found else {}
        return str(Brought(**last["brought"])) if "brought" in last else ""

    def question(self) -> GroupQuestion | None:
        """The question whose answer is expected to settle most photos; None if nothing is left to ask."""
        best = self.best()
        if best is None:
            return None
        left, right = self.rows[best["left"]].path, self.rows[best["right"]].path
        return GroupQuestion(self.version + 1, left, right, best["chance"], best["settles"])

    @property
    def _open(self) -> OpenQuestions:
        """What may be asked about, computed once for each version."""
        if self._questions is None:
            self._questions = self._like.open_questions(self.mended, self.judged)
        return self._questions

    @property
    def stop(self) -> str:
        """Why further answers bring little, in words; nothing while they bring more."""
        if self._open.chance.max(initial=0.0) < UNLIKELY:
            return "What is left to ask about is probably different: you can stop here."
        if self._open.gain.max(initial=0.0) < 1:
            return "Another answer is expected to move less than one photo: you can stop here."
        return ""

    def best(self) -> dict[str, Any] | None:
        """The same question as the journal keeps it, without the answer."""
        found = self._open
        if not len(found.pairs):
            return None
        place = int(found.gain.argmax())
        left, right = found.pairs[place].tolist()
        worth = {"chance": float(found.chance[place]), "settles": int(found.settled[place])}
        return {"left": left, "right": right, "seen": found.seen[place].tolist(), **worth}

    def answer(self, number: int, word: Answer, who: str = REVIEW) -> None:
        """Save the answer to the question of this number, which must be the next one; groups change at once."""
        with lock(self.place / LOCK):
            self.refresh()
            message = f"question {number} is not the next one, which is {self.version + 1}: ask again"
            check(number == self.version + 1, message)
            best = self.best()
            check(best is not None, "there is nothing left to ask about these groups")
            self._keep({"do": word, **(best or {})}, who)

    def say(self, version: int, entry: Entry, who: str = REVIEW) -> None:
        """Save a change of the groups of this `version`; it is on disk when this returns."""
        with lock(self.place / LOCK):
            self.refresh()
            check(version == self.version, "somebody else has changed these groups meanwhile: look again")
            if entry["do"] == "undo":
                check(bool(self.lines), "there is nothing to take back")
            elif entry["do"] == "level":
                self.kept.whole.level_of(entry["fineness"])
            else:
                self.mended.check(entry)
            self._keep(entry, who)

    def _keep(self, entry: Entry, who: str) -> None:
        line = self._by_names(entry)
        check_line(line)
        journal.append(self.place / ANSWERS, line)
        self.refresh()
        self._follow(who)

    def follow(self) -> None:
        """Bring the table and the marks up to the journal, which a process that was killed may have left behind."""
        with lock(self.place / LOCK):
            self.refresh()
            self._follow(REVIEW)

    def _follow(self, who: str) -> None:
        table.write(self.labelled(), self.place / LABELS)
        if self.store is not None:
            marking.keep(self.store, self.kept.photos.ids, self.entries, who)

    def label(self, group: int) -> str:
        """The name of a group; without one, that with which it was found, or a number that no other group has."""
        new = self._numbered + 1 + group - len(self._labels)
        return self.mended.names.get(group, self._labels.get(group, f"{NEW} {new}"))

    def labelled(self) -> list[GroupedPhoto]:
        """The rows of the table; what nobody could identify has no label."""
        mended = self.mended
        result = []
        for row, photo in enumerate(self.rows):
            group = int(mended.groups[row])
            if mended.fixed[row]:
                result.append(photo)
            elif group == APART or mended.aside[row]:
                result.append(replace(photo, label="", verdict="unknown"))
            else:
                verdict = "named" if mended.named[row] else "joined" if group in mended.names else "found"
                result.append(replace(photo, label=self.label(group), verdict=verdict))
        return result


def _check(line: Entry, what: str) -> None:
    try:
        check_line(line)
    except UserError as mistake:
        raise UserError(f"{what} ({mistake}): remove this line, the others stay") from None
