"""Work for the `WorkerProcesses` of tests: called with a number, and with what says that the worker is ready.

Every one notes its process as a line of a file: number, process id, seconds.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from lookalike.errors import UserError
from lookalike.search.serve.workers import WorkerProcesses


def note(file: Path, number: int) -> None:
    with file.open("a") as lines:
        lines.write(f"{number} {os.getpid()} {time.monotonic()}\n")


def steady(file: Path, number: int, ready: Callable[[], None]) -> None:
    ready()
    note(file, number)
    time.sleep(600)


def stubborn(file: Path, number: int, ready: Callable[[], None]) -> None:
    if number == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    steady(file, number, ready)


def brief(file: Path, number: int, ready: Callable[[], None]) -> None:
    ready()
    note(file, number)


def one_is_steady(file: Path, number: int, ready: Callable[[], None]) -> None:
    if number == 0:
        steady(file, number, ready)
    while not file.exists():
        time.sleep(0.01)
    note(file, number)


def mistaken(file: Path, number: int, _: Callable[[], None]) -> None:
    note(file, number)
    raise UserError("the model is lost")


def broken(file: Path, number: int, _: Callable[[], None]) -> None:
    note(file, number)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # its traceback is of no interest
    raise ZeroDivisionError


def silent(file: Path, number: int, _: Callable[[], None]) -> None:
    note(file, number)
    os._exit(3)


def parent(work: Callable[[int, Callable[[], None]], None]) -> None:
    """A parent of one worker, in a process of its own."""
    WorkerProcesses(1, work, grace=20).keep()
