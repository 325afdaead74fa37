"""Several processes that do the same work, and their parent, which replaces one that dies."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess

from lookalike.errors import EXIT_CODE, UserError

PAUSE = 1.0  # seconds before a worker that died at once is started again
ENDS = 3  # workers that end in a row before any was ready: the next would not be ready either
READY = ""  # the message of a worker that can answer; any other is the reason why it never will
SPAWN = multiprocessing.get_context("spawn")
Context = SpawnContext | ForkServerContext
Work = Callable[[int, Callable[[], None]], None]  # called with the worker's number, and what to call when it is ready


def _worker(work: Work, number: int, parent: Connection) -> None:
    """A worker that tells its parent when it is ready, or why it never will be.

    It stops when its parent is gone, however that ended: an orphan would keep the port.
    """

    def watch() -> None:
        with suppress(EOFError, OSError):
            parent.recv()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()

    def say(word: str) -> None:
        with suppress(OSError):  # it is gone, and the worker about to stop
            parent.send(word)

    try:
        work(number, lambda: say(READY))
    except Exception as error:
        say(str(error) or type(error).__name__)
        if isinstance(error, UserError):  # the parent reports it when it gives up; any other shows where it broke
            sys.exit(EXIT_CODE)
        raise


@dataclass
class _Running:
    """A worker as its parent sees it."""

    process: BaseProcess
    pipe: Connection
    began: float
    ready: bool = False
    reason: str = ""

    def hear(self) -> None:
        with suppress(EOFError, OSError):
            while self.pipe.poll():
                word = self.pipe.recv()
                self.ready, self.reason = self.ready or word == READY, word


class WorkerProcesses:
    """`count` processes that do one `work`; one that dies is replaced, unless none of them can ever be ready.

    `grace`: seconds that a worker has to end when it is told to; `pause`: seconds before one that died at once is
    started again; `context`: how processes begin.
    """

    def __init__(self, count: int, work: Work, grace: float, pause: float = PAUSE, context: Context = SPAWN) -> None:
        self.count, self.work, self.grace, self.pause = count, work, grace, pause
        self._context = context
        self._running: list[_Running] = []
        self._ends = 0  # in a row, before any was ready
        self._stop = threading.Event()

    def keep(self) -> None:
        """Keep them running until a signal to stop (Ctrl-C, or a terminate signal)."""
        before = {
            number: signal.signal(number, lambda *_: self._stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self._running = [self._started(number) for number in range(self.count)]
            while not self._stop.wait(0.2):
                for number, worker in enumerate(self._running):
                    alive = worker.process.is_alive()
                    worker.hear()
                    if not alive:
                        self._replace(number, worker)
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _replace(self, number: int, worker: _Running) -> None:
        worker.process.join()
        worker.pipe.close()
        code = worker.process.exitcode
        self._ends = 0 if any(each.ready for each in self._running) else self._ends + 1
        if self._ends >= ENDS:
            reason = worker.reason or f"the last one ended with code {code}"
            raise UserError(f"{ENDS} workers in a row ended before they were ready: {reason}")
        sys.stderr.write(f"worker {number} ended with code {code} and is started again\n")
        if time.monotonic() - worker.began < self.pause:
            self._stop.wait(self.pause)
        self._running[number] = self._started(number)

    def _started(self, number: int) -> _Running:
        theirs, own = self._context.Pipe()
        process = self._context.Process(target=_worker, args=(self.work, number, theirs), daemon=False)
        process.start()
        theirs.close()
        return _Running(process, own, time.monotonic())

    def _end(self) -> None:
        for worker in self._running:
            worker.pipe.close()
            if worker.process.is_alive():
                worker.process.terminate()
        until = time.monotonic() + self.grace
        for worker in self._running:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
