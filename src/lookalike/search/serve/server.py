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
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from lookalike.errors import UserError
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.settings import Settings

GRACE = 30  # seconds for what has begun, when the server is told to stop
PAUSE = 1.0  # before a worker that died at once is started again
BACKLOG = 2048


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


def answer(settings: Settings, listener: socket.socket, meters: Path | None, worker: int) -> None:
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
    torch.set_num_threads(1)  # each stage is a thread already
    failures: list[Exception] = []

    def stop(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    app = create_app(settings, Meters(meters, worker), stop)
    config = uvicorn.Config(
        app, http=cast(Any, partial(Patient, settings.silence)), log_level="warning", access_log=False,
        server_header=False, lifespan="on",
        timeout_graceful_shutdown=GRACE, timeout_keep_alive=30,
        limit_concurrency=4 * settings.uploads, proxy_headers=False, ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.run([listener])
    if failures:
        raise failures[0]


def _worker(settings: Settings, listener: socket.socket, meters: Path, worker: int, parent: Connection) -> None:
    """A worker stops when its parent is gone, however that ended: an orphan would keep the port."""

    def watch() -> None:
        with suppress(EOFError, OSError):
            parent.recv()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    answer(settings, listener, meters, worker)


class Workers:
    """Several processes that answer; one that dies is replaced."""

    def __init__(self, settings: Settings, listener: socket.socket, meters: Path) -> None:
        self.settings, self.listener, self.meters = settings, listener, meters
        self._context = multiprocessing.get_context("spawn")
        self._running: list[tuple[Any, Connection, float]] = []
        self._stop = threading.Event()

    def keep(self) -> None:
        before = {
            number: signal.signal(number, lambda *_: self._stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self._running = [self._started(number) for number in range(self.settings.workers)]
            while not self._stop.wait(0.2):
                for number, (process, own, began) in enumerate(self._running):
                    if process.is_alive():
                        continue
                    process.join()
                    own.close()
                    sys.stderr.write(f"worker {number} ended with code {process.exitcode} and is started again\n")
                    if time.monotonic() - began < PAUSE:
                        self._stop.wait(PAUSE)
                    self._running[number] = self._started(number)
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _started(self, number: int) -> tuple[Any, Connection, float]:
        theirs, own = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_worker, args=(self.settings, self.listener, self.meters, number, theirs), daemon=False
        )
        process.start()
        theirs.close()
        return process, own, time.monotonic()

    def _end(self) -> None:
        for process, own, _ in self._running:
            own.close()
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + GRACE + 5
        for process, _, _ in self._running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
