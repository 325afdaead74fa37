"""The page for people who come from pytorch-metric-learning: its blocks run, and what should agree agrees."""

import difflib
import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parents[1] / "docs" / "migration.md"
PYTHON = r"```python\n(.*?)```"
BOTH = re.compile(rf"## ([^\n]+)\n\npytorch-metric-learning:\n\n{PYTHON}\n\nlookalike:\n\n{PYTHON}", re.S)
TEXT = PAGE.read_text()
SETUP = re.search(PYTHON, TEXT, re.S)[1]
PATTERNS = {title: (theirs, ours) for title, theirs, ours in BOTH.findall(TEXT)}
SAME = ("value", "active", "accuracies")

pytestmark = pytest.mark.filterwarnings("ignore")


def run(block):
    names = {}
    exec(compile(SETUP + block, PAGE.name, "exec"), names)
    return names


def test_every_block_belongs_to_a_pattern():
    assert len(PATTERNS) == 16
    assert len(re.findall(PYTHON, TEXT, re.S)) == 2 * len(PATTERNS) + 1, "a block stands outside its pattern"


@pytest.mark.parametrize("title", PATTERNS)
def test_both_run_and_agree(title):
    pytest.importorskip("pytorch_metric_learning", exc_type=ImportError)
    theirs, ours = (run(block) for block in PATTERNS[title])
    for name in SAME:
        assert (name in theirs) == (name in ours)
        if name in ours:
            mine, other = (torch.as_tensor(names[name]).double() for names in (ours, theirs))
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def test_most_patterns_are_compared():
    assert sum("value =" in ours or "accuracies =" in ours for _, ours in PATTERNS.values()) >= 7


def test_every_difference_is_tested():
    named = re.findall(r"\| `(test_\w+)` \|$", TEXT, re.M)
    tests = (Path(__file__).parent / "losses" / "test_peer.py").read_text()
    assert len(named) == len(re.findall(r"^\| .+? \| .+? \| .+? \| .+? \|$", TEXT, re.M)) - 1 > 10
    assert all(f"def {name}(" in tests for name in named)


def test_a_loop_changes_in_at_most_twelve_lines():
    theirs, ours = (block.splitlines() for block in PATTERNS["A whole loop"])
    changes = [line for line in difflib.ndiff(theirs, ours) if line.startswith("+ ")]
    assert 0 < len(changes) <= 12
