"""Trials of mutants inside one pytest: collected once, every trial is a fork.

Which tests execute a function is learnt once (`reach`) and kept for each file of tests. A trial replaces the code of
the function in the fork, and its file in a copy of the source, for the processes that tests start. It runs the tests
that execute the function: those of the module's own name first, then those of its room, then the quickest, as many as
fit into the seconds.
"""

import ast
import gc
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tests.attacks import reach
from tests.attacks.forks import in_fork
from tests.attacks.mutants import SOURCE, Mutant

Reach = dict[str, dict[str, Any]]  # by test: its seconds, those of fixtures it shares, the functions it executes


class Trials:
    """A pytest plugin that hands the collected tests to `work` instead of running them."""

    def __init__(self, folder: Path, scratch: Path, work: Callable[["Trials"], None]) -> None:
        self.folder, self.scratch, self.work = folder, scratch, work
        self.items: dict[str, pytest.Item] = {}
        self.failed: list[str] = []
        self.passed: set[str] = set()
        self.waits: dict[str, float] = {}  # seconds of fixtures that tests share

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings  # conftest.py has chosen its profile by now; a failure is not shrunk

        settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise pytest.UsageError("Some tests cannot be collected.")
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        if not reach.place or fixturedef.scope == "function":
            return (yield)
        before = sum(os.times()[:4])
        with reach.noted(str(self.scratch / "notes" / fixturedef.argname)):
            value = yield
        self.waits[fixturedef.argname] = sum(os.times()[:4]) - before
        return value

    def run(self, names: list[str]) -> Iterator[str]:
        for name, following in zip(names, [*names[1:], None], strict=True):
            item, after = self.items[name], self.items[following] if following else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            yield name

    def learn(self, paths: tuple[str, ...]) -> Reach:
        """What every test below these paths executes, from the folder or by running it."""
        by_file: dict[Path, list[str]] = defaultdict(list)
        for name, item in self.items.items():
            if name.startswith(paths):
                by_file[item.path].append(name)
        known: Reach = {}
        for number, (file, names) in enumerate(by_file.items(), 1):
            digest = hashlib.sha256(file.read_bytes() + repr(sorted(names)).encode()).hexdigest()[:12]
            kept = self.folder / f"{file.stem}-{digest}.json"
            if not kept.exists():
                print(f"[{number}/{len(by_file)}] learning what {file.name} executes", file=sys.stderr, flush=True)
                in_fork(lambda kept=kept, names=names: self.watch(kept, names), 1800)
            known |= json.loads(kept.read_text()) if kept.exists() else {}
        return known

    def watch(self, kept: Path, names: list[str]) -> bool:
        """Run these tests and keep what they execute, and their seconds of processor time."""
        self.settle()
        run, found, seconds = self.run(names), Reach(), dict[str, float]()
        for number, name in enumerate(names):
            before = sum(os.times()[:4]) - sum(self.waits.values())
            with reach.noted(str(self.scratch / "notes" / f"{number}.test")):
                next(run)
            seconds[name] = sum(os.times()[:4]) - sum(self.waits.values()) - before
        for number, name in enumerate(names):
            shared = [fixture for fixture in getattr(self.items[name], "fixturenames", ()) if fixture in self.waits]
            files = [self.scratch / "notes" / text for text in (f"{number}.test", *shared)]
            reached = {line for file in files if file.exists() for line in file.read_text().splitlines()}
            if name in self.passed and name not in self.failed:
                waits = {fixture: round(self.waits[fixture], 3) for fixture in shared}
                found[name] = {"seconds": round(seconds[name], 3), "shared": waits, "functions": sorted(reached)}
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(found))
        part.rename(kept)
        return True

    def settle(self) -> None:
        """Temporary files of tests go below `scratch`, and what is printed goes nowhere."""
        next(iter(self.items.values())).config.pluginmanager.unregister(name="terminalreporter")
        for name in ("notes", "tmp"):
            shutil.rmtree(self.scratch / name, ignore_errors=True)
            (self.scratch / name).mkdir()
        place = self.scratch / "tmp"
        place.chmod(0o1777)
        os.environ["TMPDIR"] = tempfile.tempdir = str(place)
        silent = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(silent, number)

    def judge(self, mutant: Mutant, known: Reach, seconds: float) -> dict[str, object]:
        """killed (and by which test), survived, unreached, not tried because it could not be put in place, or
        undecided: the tests did not end, and without the mutant they do not end in that time either."""
        names, total = choose(mutant, known, seconds)
        if not names:
            return {"outcome": "unreached"}
        copy, limit = self.scratch / "source" / "lookalike" / mutant.file, int(60 + 10 * total)
        self.last.unlink(missing_ok=True)
        copy.write_text(ast.unparse(mutant.tree), encoding="utf-8")
        passed = in_fork(lambda: self._pass(names, mutant), limit)
        shutil.copy2(SOURCE / mutant.file, copy)
        if passed:
            return {"outcome": "survived", "tests": len(names)}
        if not self.last.exists():
            return {"outcome": "not tried"}
        result = {"outcome": "killed", "by": self.last.read_text(), "ended": passed is not None}
        if passed is None and in_fork(lambda: self._pass(names), limit) is None:
            result["outcome"] = "undecided"
        return result

    def _pass(self, names: Sequence[str], mutant: Mutant | None = None) -> bool:
        """Whether the tests pass, with the mutant in the place of its function; `last` holds the name of the latest."""
        self.settle()
        if mutant is not None:
            swap(mutant)
        self.last.write_text(names[0])
        for name in self.run(names):
            self.last.write_text(name)
            if self.failed:
                self.items[name].session._setupstate.teardown_exact(None)
                return False
        return True

    @property
    def last(self) -> Path:
        return self.scratch / "last"


def choose(mutant: Mutant, known: Reach, seconds: float) -> tuple[list[str], float]:
    """The tests for a mutant, and how long they take; a fixture that several of them share is built once."""
    line, stem = f"{mutant.file} {mutant.function}", Path(mutant.file).stem.replace("_", "")
    lines = callers(mutant) if mutant.jitted else (line + "\n",)
    reaching = [
        name for name, test in known.items() if any(f"{each}\n".startswith(lines) for each in test["functions"])
    ]

    def order(name: str) -> tuple[bool, bool, float, str]:
        namesake, test = stem in name.lower().replace("_", ""), known[name]
        return not namesake, f"tests/{mutant.room}/" not in name, test["seconds"] + sum(test["shared"].values()), name

    reaching.sort(key=order)
    names: list[str] = []
    shared: dict[str, float] = {}
    total = 0.0
    for name in reaching:
        new = {fixture: wait for fixture, wait in known[name]["shared"].items() if fixture not in shared}
        cost = known[name]["seconds"] + sum(new.values())
        if not names or total + cost < seconds:
            names.append(name)
            shared |= new
            total += cost
    return names, total


def callers(mutant: Mutant) -> tuple[str, ...]:
    """The files of the room that import the module of a compiled function: its own calls cannot be seen."""
    word = re.compile(rf"import .*\b{Path(mutant.file).stem}\b")
    files = (path for path in (SOURCE / mutant.room).rglob("*.py") if word.search(path.read_text(encoding="utf-8")))
    return tuple(f"{path.relative_to(SOURCE)} " for path in files)


def swap(mutant: Mutant) -> None:
    """In this process the function is the mutant from now on, whoever refers to it."""
    module = module_of(mutant)
    code = compile(mutant.tree, str(SOURCE / mutant.file), "exec", dont_inherit=True)
    if mutant.jitted:  # compiled as a whole, and not taken from the cache of the original
        import numba.core.dispatcher

        numba.core.dispatcher.Dispatcher.enable_caching = lambda _: None
        exec(code, module.__dict__)
        return
    *_, new = (each for each in codes(code) if each.co_qualname == mutant.function)
    for function in living()[identity(new)]:
        function.__code__ = new


def module_of(mutant: Mutant) -> ModuleType:
    return import_module(".".join(("lookalike", *Path(mutant.file).with_suffix("").parts)).removesuffix(".__init__"))


@cache
def living() -> dict[tuple[str, str, int], list[FunctionType]]:
    """All functions, by what their code is called and where it is from: they outlive a change of their code."""
    found = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType:  # isinstance() would wake lazy objects
            found[identity(thing.__code__)].append(thing)
    return dict(found)


def identity(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)
