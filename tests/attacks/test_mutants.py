"""Mutants: every one is a change, is put in place while the library lives, and is found out by tests."""

import ast
import json
import subprocess
import sys
import textwrap

import pytest

from lookalike.runs import log
from tests.attacks import mutate, trials
from tests.attacks.mutants import SOURCE, change_of, functions, mutants, places

pytestmark = pytest.mark.plain  # the code of a function is looked for, not that of its shape checker


def python(*words, **more):
    return subprocess.run(
        [sys.executable, *words], cwd=mutate.ROOT, capture_output=True, text=True, timeout=300, **more
    )


def test_mutants_are_always_the_same_and_differ_from_the_source():
    first, again = (list(mutants("miners", each=1, seed=0)) for _ in range(2))
    assert [mutant.key for mutant in first] == [mutant.key for mutant in again]
    assert len({(mutant.file, mutant.function) for mutant in first}) == len(first) > 15
    for mutant in first:
        source = (SOURCE / mutant.file).read_text()
        assert ast.unparse(mutant.tree) != ast.unparse(ast.parse(source)), mutant.change


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("a < b", {"Lt → GtE"}),
        ("a and -b", {"And → Or", "minus left out"}),
        ("f(a, 2)", {"left out: f(a, 2)", "arguments swapped", "2 → 3"}),
        ("f(a, *b)", {"left out: f(a, *b)"}),
        ("a = max(a, b)", set()),
        ("return a if b else True", {"nothing is returned", "condition turned round", "True → False"}),
        ("import a", set()),
        ("a: int | None = -b", {"minus left out"}),
    ],
)
def test_what_can_be_changed(line, changes):
    ((_, function),) = functions(ast.parse(f"def f(a: 1 = 2):\n    'text'\n    {line}"))
    assert {(change_of(node) or ("",))[0] for node in places(function)} == changes


def test_a_mutant_takes_the_place_of_a_living_function():
    (mutant,) = (
        each for each in mutants("runs", each=1, seed=0) if (each.file, each.function) == ("runs/log.py", "_line")
    )
    code = log._line.__code__
    assert log._line({"a": 1}) is not None
    try:
        trials.swap(mutant)
        assert mutant.change.endswith("nothing is returned")
        assert log._line({"a": 1}) is None
    finally:
        log._line.__code__ = code


def test_quick_tests_and_those_of_the_same_name_come_first():
    (mutant, *_) = mutants("runs", each=1, seed=0)
    line = [f"{mutant.file} {mutant.function}"]
    stem = mutant.file.removeprefix("runs/").removesuffix(".py")
    known = {
        "slow": {"seconds": 9.0, "shared": {}, "functions": line},
        "quick": {"seconds": 1.0, "shared": {}, "functions": line},
        f"test_{stem}": {"seconds": 5.0, "shared": {}, "functions": line},
        "other": {"seconds": 0.0, "shared": {}, "functions": ["runs/log.py f"]},
    }
    assert trials.choose(mutant, known, 60.0) == ([f"test_{stem}", "quick", "slow"], 15.0)
    assert trials.choose(mutant, known, 7.0) == ([f"test_{stem}", "quick"], 6.0)
    assert trials.choose(mutant, {"other": known["other"]}, 7.0) == ([], 0.0)


def test_the_wait_for_a_shared_fixture_counts_once():
    (mutant, *_) = mutants("runs", each=1, seed=0)
    test = {"seconds": 1.0, "shared": {"server": 3.0}, "functions": [f"{mutant.file} {mutant.function}"]}
    assert trials.choose(mutant, dict.fromkeys("abc", test), 5.5) == (["a", "b"], 5.0)


FORKS = """
    import os, subprocess, sys, time
    from tests.attacks.forks import in_fork

    def daemon():
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        open(sys.argv[1], "w").write(str(sleeper.pid))
        return True

    def loop():
        while True:
            pass

    outcomes = [in_fork(work, 1) for work in (daemon, lambda: False, lambda: 1 / 0, loop, lambda: time.sleep(1000))]
    assert outcomes == [True, False, False, None, None], outcomes
    assert not os.path.exists("/proc/" + open(sys.argv[1]).read())
"""


def test_a_fork_ends_and_leaves_nothing_behind(tmp_path):
    ended = python("-c", textwrap.dedent(FORKS), str(tmp_path / "pid"))
    assert ended.returncode == 0, ended.stderr


def test_tests_kill_mutants_and_what_is_done_is_not_repeated(tmp_path):
    known, _ = (mutant for mutant in mutants("runs", each=1, seed=0) if mutant.function.startswith("JsonLines"))
    done = {"key": known.key, "room": "runs", "file": known.file, "function": known.function, "change": known.change}
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps(done | {"outcome": "survived"}) + '\n{"key": "cut o')
    words = ["--room", "runs", "--only", "runs/log.py JsonLines", "--tests", "tests/runs/test_log.py"]
    ended = python("-m", "tests.attacks.mutate", *words, "--folder", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "[1/1] killed runs runs/log.py JsonLines.rewind" in ended.stderr
    assert "50.0%\nsurvived: runs/log.py JsonLines.__call__" in ended.stdout
    result = json.loads(results.read_text().splitlines()[-1])
    assert result["by"].startswith("tests/runs/test_log.py::")
