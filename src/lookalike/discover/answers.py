"""Answers of a person about a table of groups, beside it in a file that only grows.

A line is on disk before its answer counts; the last line of a process that was killed may be torn, and is left out.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from lookalike.errors import UserError, check
from lookalike.files import cannot_write

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
    place = file_of(table)
    try:
        with place.open("ab+") as file:
            torn = file.tell() > 0 and place.read_bytes()[-1:] != b"\n"
            file.write((b"\n" if torn else b"") + json.dumps(asdict(answer)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(place, error) from error


def read(table: Path) -> list[PairAnswer]:
    """All answers so far; of several to one question the last."""
    place, result = file_of(table), dict[int, PairAnswer]()
    for line in place.read_bytes().splitlines() if place.is_file() else []:
        try:
            answer = PairAnswer(**json.loads(line))
        except (TypeError, ValueError):
            continue
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
