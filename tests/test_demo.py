"""The last step of `make demo` asks for what is not in the index, and counts what it shows."""

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


def asked(label: str, answer: str, present: bool, verdict: str, chance: float) -> Any:
    return DEMO.Asked(0, label, present, Answer([Hit(Item("one", label=answer), 0.9)], verdict, chance))


def test_counts_by_verdict_whatever_it_is_called():
    some = [asked("a", "b", True, "doubtful", 0.4), asked("c", "b", False, "doubtful", 0.3),
            asked("a", "a", True, "certain", 0.9)]  # fmt: skip
    assert DEMO.table(some)[1:] == [["certain", "1", "1 (100%)", "0"], ["doubtful", "1", "0 (0%)", "1"]]
    assert list(DEMO.shown(some)) == ["certain", "doubtful", "not in the index"]
    assert [each.outcome for each in some] == ["a, taken for b", "c, which the index does not have", "a, found"]
