"""The last step of `make demo` searches for what is not in the index, and counts what it shows."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lookalike.data.formats.arrays import arrays
from lookalike.search import Answer, Hit, Item

DEMO = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "scripts" / "demo.py")))  # tests import no script


def test_no_query_is_in_the_index():
    names = [f"class {number // 5:02}" for number in range(60)]
    indexed, present, absent = DEMO.divided(arrays(np.zeros((60, 8, 8, 3), np.uint8), names))
    assert not set(indexed) & {*present, *absent}
    known = {names[row] for row in indexed}
    assert {names[row] for row in present} == known
    assert not {names[row] for row in absent} & known
    assert len(absent) == DEMO.HELD_OUT * 12 // DEMO.ABSENT


def query(label: str, answer: str, present: bool, verdict: str, chance: float, first: str = "z") -> Any:
    hits = [Hit(Item("one", label=first), 0.9)]
    return DEMO.Query(0, label, present, Answer(hits, verdict, chance, label=answer))


RIGHT, WRONG = query("a", "a", True, "sure", 0.9), query("a", "b", True, "maybe", 0.4)
ABSENT, REFUSED = query("c", "b", False, "maybe", 0.6), query("c", "b", False, "unknown", 0.0)


def test_what_the_answer_says_is_counted_and_not_its_first_hit():
    assert DEMO.table([RIGHT, WRONG, ABSENT, REFUSED])[1:] == [
        ["sure", "1", "1 (100%)", "0"],
        ["maybe", "1", "0 (0%)", "1"],
        ["unknown", "0", "0", "1"],
    ]
    a, b, c = (f"{letter} (latin small letter {letter})" for letter in "abc")
    titles = [each.title for each in (RIGHT, WRONG, ABSENT, REFUSED)]
    assert titles == [a, f"{a}, taken for {b}", f"{c}, taken for {b}", c]


def test_the_mistakes_it_believed_most_come_first():
    sections = DEMO.shown([RIGHT, WRONG, ABSENT, REFUSED])
    assert sections["Fooled"] == [ABSENT, WRONG]
    assert sections["Sure"] == [RIGHT]
    assert sections["Maybe"] == [WRONG]
