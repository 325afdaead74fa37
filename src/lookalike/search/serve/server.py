"""Processes: one that answers, or several workers and one that starts them again when they die."""

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from lookalike.errors import EXIT_CODE, UserError
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.settings import Settings

GRACE = 30  # seconds for what has begun, when the server is told to stop
PAUSE = 1.0  # before a worker that died at once is started again
ENDS = 3  # of workers in a row before any was ready: the next would not be either
BACKLOG = 2048
FILES = 256  # that a worker opens beside its connections
READY = ""  # what a worker says when it can answer; anything else is why it never will


def bound(settings: Settings) -> socket.socket:
    """The socket that all workers accept from."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # TCP by name: asyncio switches off the delay of small packets only where the socket says that it is TCP
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot listen on {settings.host} port {settings.port} ({reason}): choose another with --port"
        raise UserError(message) from None
    listener.listen(BACKLOG)
    listener.set_inheritable(True)
    return listener


def run(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until told to stop (Ctrl-C, or a terminate signal); what has begun is answered first."""
    listener = bound(settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    announce(f"http://{host}:{listener.getsockname()[1]}")
    if settings.workers == 1:
        answer(settings, listener, None, 0)
        return
    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        meters = Path(folder) / "meters"
        Meters.make(meters, settings.workers)
        Workers(settings, listener, meters).keep()


def answer(
    settings: Settings,
    listener: socket.socket,
    meters: Path | None,
    worker: int,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """One process that answers."""
    import torch
    import uvicorn

    from lookalike.search.serve.app import create_app
    from lookalike.search.serve.connections import Patient

    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # uvicorn repeats the signal when all is answered: that is no failure
        signal.signal(number, lambda *_: sys.exit(0))
    _allow_files(2 * settings.connections + FILES)
    torch.set_num_threads(1)  # each stage is a thread already
    failures: list[Exception] = []

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            end_in_time()
            await super().shutdown(sockets)

    def stop(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    app = create_app(settings, Meters(meters, worker), ready, stop)
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(Patient, settings)),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        proxy_headers=False,
        ws="none",
    )
    server = Server(config)
    server.run([listener])
    if failures:
        raise failures[0]


def end_in_time() -> None:
    """End this process when the time for what has begun is over, even if a thread of it hangs."""
    timer = threading.Timer(GRACE + 5, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _allow_files(number: int) -> None:
    """As many open files as there may be: where connections use them up, the index cannot be opened either."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _worker(settings: Settings, listener: socket.socket, meters: Path, worker: int, parent: Connection) -> None:
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
        answer(settings, listener, meters, worker, lambda: say(READY))
    except Exception as error:
        say(str(error) or type(error).__name__)
        if isinstance(error, UserError):  # what the parent says when it gives up; anything else shows where it broke
            sys.exit(EXIT_CODE)
        raise


@dataclass
class _Running:
    """A worker as its parent sees it."""

    process: Any
    pipe: Connection
    began: float
    ready: bool = False
    reason: str = ""

    def hear(self) -> None:
        with suppress(EOFError, OSError):
            while self.pipe.poll():
                word = self.pipe.recv()
                self.ready, self.reason = self.ready or word == READY, word


class Workers:
    """Several processes that answer; one that dies is replaced, unless none of them can ever be ready."""

    def __init__(self, settings: Settings, listener: socket.socket, meters: Path) -> None:
        self.settings, self.listener, self.meters = settings, listener, meters
        self._context = multiprocessing.get_context("spawn")
        self._running: list[_Running] = []
        self._ends = 0  # in a row, before anyone was ready
        self._stop = threading.Event()

    def keep(self) -> None:
        before = {
            number: signal.signal(number, lambda *_: self._stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self._running = [self._started(number) for number in range(self.settings.workers)]
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
        if time.monotonic() - worker.began < PAUSE:
            self._stop.wait(PAUSE)
        self._running[number] = self._started(number)

    def _started(self, number: int) -> _Running:
        theirs, own = self._context.Pipe()
        process = self._context.Process(
            target=_worker, args=(self.settings, self.listener, self.meters, number, theirs), daemon=False
        )
        process.start()
        theirs.close()
        return _Running(process, own, time.monotonic())

    def _end(self) -> None:
        for worker in self._running:
            worker.pipe.close()
            if worker.process.is_alive():
                worker.process.terminate()
        until = time.monotonic() + GRACE + 5
        for worker in self._running:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
