"""Processes that are killed, end at once, never get ready or do not end: real ones, which do next to nothing."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from lookalike.errors import EXIT_CODE, UserError
from lookalike.search.serve.workers import ENDS, WorkerProcesses
from tests.cli.processes import SERVER, Forked
from tests.search.serve import work


@pytest.fixture
def file(tmp_path):
    return tmp_path / "processes"


def seen(file: Path) -> list[tuple[int, int, float]]:
    """Number, process and beginning of every worker so far."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    words = [line.split() for line in lines if line.endswith("\n")]
    return [(int(number), int(process), float(began)) for number, process, began in words]


def alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "timed out"
        time.sleep(0.01)


@contextmanager
def meanwhile(act, number=signal.SIGTERM):
    """Act in a thread, and then tell this process to stop."""

    def run():
        try:
            act()
        except BaseException as error:
            failures.append(error)
        if not over.is_set():
            os.kill(os.getpid(), number)

    failures, over, thread = [], threading.Event(), threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failures == []


def kept(count, job, file, **settings):
    return WorkerProcesses(count, partial(job, file), **{"grace": 20, "context": SERVER} | settings)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_dies_is_replaced_and_a_signal_ends_all(file, capsys, number):
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def act():
        wait_for(lambda: len(seen(file)) == 2)
        (victim,) = (process for place, process, _ in seen(file) if place == 1)
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: len(seen(file)) == 3)

    with meanwhile(act, number):
        kept(2, work.steady, file, pause=0.01).keep()
    assert capsys.readouterr().err == "worker 1 ended with code -9 and is started again\n"
    assert sorted(place for place, _, _ in seen(file)) == [0, 1, 1]
    assert not any(alive(process) for _, process, _ in seen(file))
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_worker_that_ends_at_once_is_started_again_after_a_pause(file):
    with meanwhile(lambda: wait_for(lambda: len(seen(file)) == ENDS + 2)):  # it was ready: never given up
        kept(1, work.brief, file, pause=0.3).keep()
    begun = [began for _, _, began in seen(file)]
    assert min(later - earlier for earlier, later in pairwise(begun)) >= 0.3


@pytest.mark.parametrize(
    ("job", "reason", "code"),
    [
        (work.mistaken, "the model is lost", EXIT_CODE),
        (work.broken, "ZeroDivisionError", 1),
        (work.silent, "the last one ended with code 3", 3),
    ],
)
def test_workers_of_which_none_was_ever_ready_are_given_up(file, capsys, job, reason, code):
    with pytest.raises(UserError, match=f"{ENDS} workers in a row ended before they were ready: {reason}"):
        kept(1, job, file, pause=0.0).keep()
    assert len(seen(file)) == ENDS
    assert capsys.readouterr().err == (ENDS - 1) * f"worker 0 ended with code {code} and is started again\n"


def test_while_one_worker_is_ready_the_next_may_be_too(file):
    with meanwhile(lambda: wait_for(lambda: len(seen(file)) == ENDS + 3)):
        kept(2, work.one_is_steady, file, pause=0.0).keep()
    assert [place for place, _, _ in seen(file)].count(0) == 1


def test_a_worker_that_does_not_end_is_killed(file):
    with meanwhile(lambda: wait_for(lambda: len(seen(file)) == 2)):
        kept(2, work.stubborn, file, grace=0.3).keep()
    assert not any(alive(process) for _, process, _ in seen(file))


def test_a_worker_ends_with_its_parent(file):
    parent = Forked(work.parent, partial(work.steady, file))
    wait_for(lambda: seen(file))
    assert alive(seen(file)[0][1])
    parent.kill()
    wait_for(lambda: not alive(seen(file)[0][1]))
    parent.wait(20)
