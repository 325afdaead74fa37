"""Same or different? Pairs of one group, drawn at random, whose answers say how pure the groups are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookalike.discover.answers import PairAnswer
from lookalike.discover.purity import Checked, draw_pairs
from lookalike.discover.table import GroupedPhoto
from lookalike.errors import check

MOST = 1000  # pairs that can be asked for


@dataclass(frozen=True)
class PairQuestion:
    """Do these two photos show the same kind?"""

    number: int
    left: str
    right: str
    label: str  # of the group they are in


def questions(rows: Sequence[GroupedPhoto]) -> list[PairQuestion]:
    """The pairs of a table, always the same ones in the same order; photos that brought their label are left out."""
    new = [row for row in rows if row.verdict in ("found", "joined")]
    names, groups = np.unique([row.label for row in new], return_inverse=True)
    check(bool(len(names)), "no photo of this table was found in a group: there is nothing to check")
    pairs = draw_pairs(groups.astype(np.int64), MOST)
    return [
        PairQuestion(number, new[left].path, new[right].path, new[left].label)
        for number, (left, right) in enumerate(pairs.tolist(), start=1)
    ]


def answered(asked: Sequence[PairQuestion], answers: Sequence[PairAnswer]) -> list[PairAnswer]:
    """The answers to these questions; those to the pairs of an earlier table of the same name are left out."""
    pairs = {question.number: (question.left, question.right) for question in asked}
    return [answer for answer in answers if pairs.get(answer.number) == (answer.left, answer.right)]


def checked(answers: Sequence[PairAnswer]) -> Checked:
    """What the answers promise; who is not sure counts as a pair of two kinds, so that the promise stays true."""
    return Checked(len(answers), sum(answer.answer == "same" for answer in answers))
