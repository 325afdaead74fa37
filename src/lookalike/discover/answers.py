"""Answers of a person about a table of groups, beside it in a file that only grows."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from lookalike.discover import journal
from lookalike.errors import UserError, check

Word = Literal["same", "different", "unsure"]
WORDS: tuple[Word, ...] = ("same", "different", "unsure")


@dataclass(frozen=True)
class PairAnswer:
    """A person's word on two photos; `number`: of the question."""

    number: int
    left: str
    right: str
    answer: Word


def file_of(table: Path) -> Path:
    return table.with_suffix(".answers.jsonl")


def append(table: Path, answer: PairAnswer) -> None:
    """Keep an answer: it is on disk when this returns."""
    journal.append(file_of(table), asdict(answer))


def read(table: Path) -> list[PairAnswer]:
    """All answers so far; of several to one question the last."""
    result = dict[int, PairAnswer]()
    for entry in journal.entries(file_of(table)):
        with suppress(TypeError):
            answer = PairAnswer(**entry)
            result[answer.number] = answer
    return [result[number] for number in sorted(result)]


def parsed(text: str) -> tuple[int, Word]:
    """The number and the word of NUMBER=WORD.

    >>> parsed("3=same")
    (3, 'same')
    """
    number, _, word = text.partition("=")
    check(number.isdecimal() and word in WORDS, f"'{text}' is no answer: give one as NUMBER={'|'.join(WORDS)}")
    for known in WORDS:
        if known == word:
            return int(number), known
    raise UserError(f"'{word}' is not one of {', '.join(WORDS)}")
