"""Are the tests able to fail? `scripts/mutate [ROOM …]` breaks one thing in a function and runs the room's tests.

A mutant is one small change of the syntax tree: a comparison, an operation, a number, a condition, a branch, a call
left out. It is killed by a test that fails (or takes too long); one that survives shows what no test looks at, or that
the change does not matter. Tests whose names hold the module's name run first, then all of the room. Every result is a
line of a file, so that a run that is stopped goes on where it was.
"""

import argparse
import ast
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TESTS = {
    "losses": ("tests/losses", "tests/contracts"),
    "miners": ("tests/miners", "tests/contracts"),
    "evaluation": ("tests/evaluation",),
    "runs": ("tests/runs", "tests/training/test_train.py"),
    "search": ("tests/search",),
}
LEFT_OUT = ("tests/contracts/test_compile.py", "tests/contracts/test_hops.py", "tests/evaluation/test_peers.py")
SWAPS = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[str, str, object]


class Mutant(NamedTuple):
    """One change in one function."""

    room: str
    file: str  # below src/lookalike
    function: str
    change: str
    source: str  # of the whole file

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.file} {self.function} {self.change} {self.source}".encode()).hexdigest()[:16]


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def places(function: Function) -> Iterator[ast.AST]:
    """Whatever can be changed in the body; annotations, defaults and the docstring are not looked at."""
    for statement in function.body:
        documented = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not documented and not isinstance(statement, ast.Import | ast.ImportFrom):
            yield from (node for node in ast.walk(statement) if change_of(node) is not None)


def change_of(node: ast.AST) -> Change | None:
    """How a node can be changed: in words, the field, its new value."""
    return _operator(node) or _value(node)


def _operator(node: ast.AST) -> Change | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        new = SWAPS[type(node.ops[0])]()
        return f"{type(node.ops[0]).__name__} → {type(new).__name__}", "ops", [new, *node.ops[1:]]
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        swapped = SWAPS[type(node.op)]()
        return f"{type(node.op).__name__} → {type(swapped).__name__}", "op", swapped
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return "minus left out", "op", ast.UAdd()
    return None


def _value(node: ast.AST) -> Change | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        return f"{node.value} → {new}", "value", new
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return "condition turned round", "test", ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return f"left out: {ast.unparse(node.value)[:60]}", "value", ast.Constant(None)
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return "nothing is returned", "value", ast.Constant(None)
    return None


def mutants(room: str, each: int, seed: int) -> Iterator[Mutant]:
    """`each` mutants of every function of a room, always the same ones."""
    for path in sorted((ROOT / "src" / "lookalike" / room).rglob("*.py")):
        text, file = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT / "src" / "lookalike"))
        for name, function in functions(ast.parse(text)):
            count = len(list(places(function)))
            chance = random.Random(f"{seed} {file} {name}")
            for number in chance.sample(range(count), min(each, count)):
                tree = ast.parse(text)
                twin = dict(functions(tree))[name]
                node = list(places(twin))[number]
                words, field, value = change_of(node) or ("", "", None)
                setattr(node, field, value)
                line = f"line {getattr(node, 'lineno', twin.lineno)}: {words}"
                yield Mutant(room, file, name, line, ast.unparse(ast.fix_missing_locations(tree)))


def run_tests(source: Path, paths: list[str], words: list[str], patience: float) -> str:
    """In a child that imports the library from `source`: passed, failed, nothing (no test chosen) or too slow."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.chdir(ROOT)
            silent = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(silent, number)
            sys.path.insert(0, str(source))
            os.environ |= {"PYTHONPATH": str(source), "LOOKALIKE_SHAPES": "off"}
            import pytest

            options = ["-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider", *words]
            left_out = [f"--ignore={name}" for name in LEFT_OUT]
            os._exit(int(pytest.main([*options, *left_out, *paths])))
        finally:
            os._exit(1)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return {0: "passed", 5: "nothing"}.get(code, "failed")
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "too slow"


def judge(mutant: Mutant, source: Path, patience: float) -> str:
    """killed or survived."""
    place = source / "lookalike" / mutant.file
    whole = place.read_bytes()
    place.write_text(mutant.source, encoding="utf-8")
    try:
        paths, stem = list(TESTS[mutant.room]), Path(mutant.file).stem
        first = run_tests(source, paths, ["-k", stem], patience) if stem != "__init__" else "nothing"
        outcome = run_tests(source, paths, [], patience) if first in ("passed", "nothing") else first
    finally:
        place.write_bytes(whole)
    return "survived" if outcome == "passed" else "killed"


def main() -> None:
    reader = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    reader.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(TESTS)}; all of them by default")
    reader.add_argument("--each", type=int, default=1, help="mutants of every function")
    reader.add_argument("--sample", type=int, help="so many mutants of each room, drawn at random")
    reader.add_argument("--minutes", type=float, default=60.0, help="stop after so many")
    reader.add_argument("--patience", type=float, default=300.0, help="seconds for the tests of one mutant")
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument(
        "--out", type=Path, default=Path("mutants.jsonl"), help="results; what is there is not repeated"
    )
    given = reader.parse_args()
    done = (
        {line["key"]: line for line in map(json.loads, given.out.read_text().splitlines())}
        if given.out.exists()
        else {}
    )
    chosen: list[Mutant] = []
    for room in given.rooms or TESTS:
        everyone = list(mutants(room, given.each, given.seed))
        few = random.Random(given.seed).sample(everyone, min(given.sample or len(everyone), len(everyone)))
        chosen += few
    until = time.monotonic() + 60 * given.minutes
    try_all(chosen, done, until, given)
    report(chosen, done)


def try_all(chosen: list[Mutant], done: dict[str, dict[str, str]], until: float, given: argparse.Namespace) -> None:
    import_once()
    source = Path(tempfile.gettempdir()) / f"lookalike-mutants-{os.getpid()}"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        for room in dict.fromkeys(mutant.room for mutant in chosen):
            whole = run_tests(source, list(TESTS[room]), [], 20 * given.patience)
            if whole != "passed":
                sys.exit(f"the tests of {room} do not pass without any mutant: {whole}")
            for mutant in (mutant for mutant in chosen if mutant.room == room and mutant.key not in done):
                if time.monotonic() > until:
                    return
                line = mutant._asdict() | {"key": mutant.key, "outcome": judge(mutant, source, given.patience)}
                del line["source"]
                done[mutant.key] = line
                with given.out.open("a") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(line["outcome"], mutant.file, mutant.function, mutant.change, file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(source, ignore_errors=True)


def import_once() -> None:
    """What every child needs and no mutant changes; the children are forks of this process."""
    os.environ |= {"OMP_NUM_THREADS": "1"}
    import numba  # and not pytest's plugins, whose assertions are rewritten on import
    import PIL.Image
    import scipy.stats
    import sklearn.metrics
    import torch

    torch.set_num_threads(1)
    assert "lookalike" not in sys.modules, (numba, PIL, scipy, sklearn)


def report(chosen: list[Mutant], done: dict[str, dict[str, str]]) -> None:
    tried = [done[mutant.key] for mutant in chosen if mutant.key in done]
    print(f"{'room':<12}{'mutants':>9}{'tried':>7}{'killed':>8}{'survived':>10}{'score':>8}")
    for room in (*dict.fromkeys(mutant.room for mutant in chosen), "all"):
        every = sum(room in (mutant.room, "all") for mutant in chosen)
        counts = Counter(line["outcome"] for line in tried if room in (line["room"], "all"))
        total = counts.total()
        score = f"{counts['killed'] / total:.0%}" if total else "-"
        print(f"{room:<12}{every:>9}{total:>7}{counts['killed']:>8}{counts['survived']:>10}{score:>8}")
    for line in tried:
        if line["outcome"] == "survived":
            print(f"survived: {line['file']} {line['function']} {line['change']}")


if __name__ == "__main__":
    main()
