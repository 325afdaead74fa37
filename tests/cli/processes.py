"""Real but cheap processes: a server imports the library once, and every run is a child of it.

A child can kill itself (SIGKILL, as `kill -9`) at the n-th call of a function, before or after the call, or send itself
another signal there.
"""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.cli.preloaded"])


@dataclass(frozen=True)
class Death:
    """Die of a signal at the n-th call of `owner.name` ("module" or "module:Class")."""

    owner: str
    name: str
    call: int = 1
    after: bool = False
    number: int = signal.SIGKILL


def arm(death: Death) -> None:
    """Let this process die as told."""
    module, _, inner = death.owner.partition(":")
    owner = importlib.import_module(module)
    owner = getattr(owner, inner) if inner else owner
    real, calls = getattr(owner, death.name), [0]

    def deadly(*arguments, **settings):
        calls[0] += 1
        own = calls[0]
        if own == death.call and not death.after:
            os.kill(os.getpid(), death.number)
        result = real(*arguments, **settings)
        if own == death.call and death.after:
            os.kill(os.getpid(), death.number)
        return result

    setattr(owner, death.name, deadly)


def _child(words: list[str], out: str, error: str, environment: dict[str, str], death: Death | None) -> None:
    for name, number in ((out, 1), (error, 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests are a shell's background job
    os.environ |= environment
    sys.argv = ["lookalike", *words]
    if death is not None:
        arm(death)
    from lookalike.cli import main

    main()


class Forked:
    """A child of the server that calls a function, used as one of `subprocess.Popen`."""

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        self._process = SERVER.Process(target=target, args=arguments)
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


class Python(Forked):
    """`python -c PROGRAM WORDS…` as a child of the server; what it prints are the lines of `output`."""

    def __init__(self, program: str, *words: object, **environment: object) -> None:
        reading, writing = SERVER.Pipe(duplex=False)
        with reading, writing:
            texts = {name: str(value) for name, value in environment.items()}
            super().__init__(_run, program, [str(word) for word in words], texts, writing)
            self.output = os.fdopen(os.dup(reading.fileno()))

    def ended(self) -> tuple[int, str]:
        """The exit code, and what it printed that has not been read: little enough for a pipe."""
        try:
            code = self.wait(600)
        finally:
            self.kill()
            with self.output:
                printed = self.output.read()
        return code, printed

    def killed(self) -> None:
        self.kill()
        self.ended()


def _run(program: str, words: list[str], environment: dict[str, str], output: Connection) -> None:
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    os.environ |= environment
    sys.argv = ["-c", *words]
    exec(program, {"__name__": "__main__"})


@dataclass
class Completed:
    """The exit code and output of a process."""

    code: int
    out: str
    error: str

    def refused(self, *words: str) -> str:
        """The one line that reports a mistake."""
        lines = self.error.splitlines()
        assert self.code == 2, self
        assert self.out == "", self
        assert len([line for line in lines if line.startswith("lookalike: ")]) == 1, self
        assert lines[-1].startswith("lookalike: "), self
        assert "Traceback" not in self.error, self
        assert all(word in lines[-1] for word in words), self
        return lines[-1]


class Lookalike:
    """`lookalike VERB …` as a process; outputs live in `folder`, and so do caches unless they have a place."""

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        self.folder, self.number = folder, 0
        cache = cache or folder / "cache"
        self.environment = {"LOOKALIKE_CACHE": str(cache), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}

    def start(self, *words: object, death: Death | None = None) -> "Running":
        self.number += 1
        out, error = (str(self.folder / f"{kind}.{self.number}") for kind in ("out", "error"))
        arguments = ([str(word) for word in words], out, error, self.environment, death)
        process = SERVER.Process(target=_child, args=arguments)
        process.start()
        return Running(process, Path(out), Path(error))

    def __call__(self, *words: object, death: Death | None = None) -> Completed:
        return self.start(*words, death=death).end()


@dataclass
class Running:
    process: multiprocessing.process.BaseProcess
    out: Path
    error: Path

    def end(self, timeout: float = 600) -> Completed:
        self.process.join(timeout)
        assert self.process.exitcode is not None, "the process does not end"
        return Completed(self.process.exitcode, self.out.read_text(), self.error.read_text())

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def wait_for(self, condition, timeout: float = 300) -> bool:
        """Wait until `condition()` is true; returns whether the process is still running."""
        until = time.monotonic() + timeout
        while self.process.is_alive() and not condition():
            assert time.monotonic() < until, "timed out"
            time.sleep(0.01)
        return self.process.is_alive()
