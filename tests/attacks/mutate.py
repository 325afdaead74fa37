"""Are the tests able to fail? `scripts/mutate` breaks one thing in every function and runs the tests that execute it.

A mutant is killed by a test that fails or does not end; one that survives shows what no test looks at, or that the
change does not matter. Every result is a line of a file: a run that is stopped goes on where it was.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from tests.attacks.mutants import SOURCE, Mutant, mutants

ROOT = Path(__file__).parents[2]
TESTS = {
    "losses": ("tests/losses", "tests/contracts"),
    "miners": ("tests/miners", "tests/contracts"),
    "evaluation": ("tests/evaluation",),
    "runs": (
        *("tests/runs", "tests/training/test_train.py", "tests/report/test_compare.py", "tests/report/test_page.py"),
        *("tests/cli/test_embed.py", "tests/cli/test_evaluate_model.py", "tests/fit/test_supervision.py"),
    ),
    "search": ("tests/search",),
}
LARGE = (
    "numba",
    "onnxruntime",
    "onnxscript",
    "psycopg",
    "scipy.stats",
    "sympy",
)  # libraries, loaded once for all forks
LEFT_OUT = ("tests/contracts/test_compile.py", "tests/contracts/test_hops.py")
Results = dict[str, dict[str, str]]


def main(words: list[str] | None = None) -> None:
    reader = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    reader.add_argument("--room", nargs="+", choices=TESTS, default=list(TESTS), help="all of them by default")
    reader.add_argument(
        "--only", nargs="+", default=[""], metavar="WORD", help="functions whose file and name hold one of these words"
    )
    reader.add_argument("--per-function", type=int, default=1, help="mutants of every function")
    reader.add_argument("--limit", type=int, help="stop after this many")
    reader.add_argument("--seconds", type=float, default=20.0, help="tests for one mutant, by their processor time")
    reader.add_argument("--tests", nargs="+", metavar="PATH", help="in the place of all tests of the room")
    reader.add_argument("--again", action="store_true", help="try those once more that were not killed")
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "mutants", help="results, and what tests execute"
    )
    given = reader.parse_args(words)
    chosen = [mutant for room in given.room for mutant in mutants(room, given.per_function, given.seed)]
    chosen = [mutant for mutant in chosen if any(word in f"{mutant.file} {mutant.function}" for word in given.only)]
    done = read(given.folder / "results.jsonl")
    waiting = [
        mutant
        for mutant in chosen
        if mutant.key not in done or (given.again and done[mutant.key]["outcome"] != "killed")
    ]
    if waiting[: given.limit]:
        try_all(waiting[: given.limit], given)
    report(chosen, read(given.folder / "results.jsonl"))


def read(path: Path) -> Results:
    """The last result of every mutant; a line that was cut off counts as none."""
    done: Results = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(ValueError):
            done |= {(line := json.loads(text))["key"]: line}
    return done


def try_all(chosen: list[Mutant], given: argparse.Namespace) -> None:
    scratch = Path(tempfile.gettempdir()) / f"mutants-{os.getpid()}"
    shutil.copytree(SOURCE.parent, scratch / "source")
    shutil.copy(ROOT / "tests" / "attacks" / "reach.py", scratch / "source" / "sitecustomize.py")
    os.environ |= {"PYTHONPATH": str(scratch / "source"), "LOOKALIKE_SHAPES": "off", "OMP_NUM_THREADS": "1"}
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE.parent))
    import pytest

    from tests.attacks.trials import Reach, Trials, living, module_of

    def work(trials: Trials) -> None:
        known: dict[str, Reach] = {}
        for mutant in chosen:  # every fork has them loaded
            module_of(mutant)
        load_libraries()
        living()
        if "search" in rooms:
            make_empty_database(scratch / "database")
        for number, mutant in enumerate(chosen, 1):
            if mutant.room not in known:
                known[mutant.room] = trials.learn(tests[mutant.room])
            result = trials.judge(mutant, known[mutant.room], given.seconds)
            line = {name: value for name, value in mutant._asdict().items() if name != "tree"}
            with (given.folder / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"key": mutant.key, **line, **result}, ensure_ascii=False))
            words = (f"[{number}/{len(chosen)}]", result["outcome"], *line.values())
            print(*words, file=sys.stderr, flush=True)

    rooms = dict.fromkeys(mutant.room for mutant in chosen)
    tests = {room: tuple(given.tests or (*TESTS[room], f"src/lookalike/{room}")) for room in rooms}
    options = [
        "-q",
        "-m",
        "not slow and not long",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"--basetemp={scratch}/tests",
    ]
    options += [f"--ignore={name}" for name in LEFT_OUT]
    try:
        plugin = Trials(given.folder / "reach", scratch, work)
        code = pytest.main([*options, *dict.fromkeys(sum(tests.values(), ()))], [plugin])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if code:
        sys.exit("The trials did not come to an end.")


def load_libraries() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LARGE:
            with suppress(ImportError):
                import_module(name)


def make_empty_database(folder: Path) -> None:
    """One that all servers of tests begin with: making it takes longer than many tests."""
    from tests.fixtures import postgres_server

    with suppress(ImportError):
        postgres_server.programs()
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, postgres_server.USER)
        made = postgres_server.Server(folder)
        made.make()
        os.environ[postgres_server.EMPTY] = str(made.data)


def report(chosen: list[Mutant], done: Results) -> None:
    tried = [done[mutant.key] for mutant in chosen if mutant.key in done]
    outcomes = ("killed", "survived", "unreached", "undecided")
    print(f"{'room':<12}{'mutants':>9}{'tried':>7}{''.join(f'{outcome:>11}' for outcome in outcomes)}{'score':>8}")
    for room in (*dict.fromkeys(mutant.room for mutant in chosen), "all"):
        every = sum(room in (mutant.room, "all") for mutant in chosen)
        counts = Counter(line["outcome"] for line in tried if room in (line["room"], "all"))
        score = f"{counts['killed'] / counts.total():.1%}" if counts else "-"
        columns = "".join(f"{counts[outcome]:>11}" for outcome in outcomes)
        print(f"{room:<12}{every:>9}{counts.total():>7}{columns}{score:>8}")
    for line in tried:
        if line["outcome"] != "killed":
            print(f"{line['outcome']}: {line['file']} {line['function']} {line['change']}")


if __name__ == "__main__":
    main()
