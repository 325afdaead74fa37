"""Same or different? Random pairs of a table of groups, and a person's answers beside it in a file that only grows."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lookalike.discover import journal
from lookalike.discover.mending import Answer
from lookalike.discover.purity import Checked, draw_pairs
from lookalike.discover.table import GroupedPhoto, read
from lookalike.errors import UserError, check
from lookalike.values import dataclass_of

MOST = 1000  # pairs that can be asked for


@dataclass(frozen=True)
class PairQuestion:
    """Do these two photos show the same kind?"""

    number: int
    left: str
    right: str
    label: str  # of the group they are in


@dataclass(frozen=True)
class PairAnswer:
    """A person's answer about two photos; `number`: of the question."""

    number: int
    left: str
    right: str
    answer: Answer


@dataclass(frozen=True)
class TableCheck:
    """How pure are the groups of the table `place`?"""

    place: Path

    @property
    def file(self) -> Path:
        return self.place.with_suffix(".answers.jsonl")

    @cached_property
    def questions(self) -> Sequence[PairQuestion]:
        """Always the same pairs in the same order; photos that brought their label are left out."""
        new = [row for row in read(self.place) if row.verdict in ("found", "joined")]
        names, groups = np.unique([row.label for row in new], return_inverse=True)
        check(bool(len(names)), "no photo of this table was found in a group: there is nothing to check")
        pairs = draw_pairs(groups.astype(np.int64), MOST).tolist()
        return [_question(number, new[left], new[right]) for number, (left, right) in enumerate(pairs, start=1)]

    @property
    def answers(self) -> Sequence[PairAnswer]:
        """The last answer to each question; those to the pairs of an earlier table of the same name do not count."""
        pairs = {question.number: (question.left, question.right) for question in self.questions}
        result = dict[int, PairAnswer]()
        for entry in journal.entries(self.file):
            with suppress(UserError):
                answer = dataclass_of(PairAnswer, entry, "an answer")
                if pairs.get(answer.number) == (answer.left, answer.right):
                    result[answer.number] = answer
        return list(result.values())

    def answer(self, number: int, word: Answer) -> None:
        """Keep an answer: it is on disk when this returns."""
        known = 0 < number <= len(self.questions)
        check(known, f"there is no question {number}: they go from 1 to {len(self.questions):,}")
        question = self.questions[number - 1]
        journal.append(self.file, asdict(PairAnswer(number, question.left, question.right, word)))

    @property
    def following(self) -> PairQuestion | None:
        """The first question without an answer."""
        done = {answer.number for answer in self.answers}
        return next((question for question in self.questions if question.number not in done), None)

    @property
    def checked(self) -> Checked:
        """What the answers promise; an unsure answer counts as different, so that the promise stays true."""
        answers = self.answers
        return Checked(len(answers), sum(answer.answer == "same" for answer in answers))


def _question(number: int, left: GroupedPhoto, right: GroupedPhoto) -> PairQuestion:
    return PairQuestion(number, left.path, right.path, left.label)
