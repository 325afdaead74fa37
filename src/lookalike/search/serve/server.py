"""The processes of a server: one that answers, or several workers that share its socket."""

import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from lookalike.errors import UserError
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.workers import WorkerProcesses

MARGIN = 7 / 6  # of the time to end in, for what hangs
BACKLOG = 2048
FILES = 256  # that a worker opens beside its connections


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


Create = Callable[[Settings, Meters, Callable[[], None], Callable[[Exception], None]], Callable[..., Any]]


def run(settings: Settings, announce: Callable[[str], None], create: Create) -> None:
    """Serve until told to stop (Ctrl-C, or a terminate signal); what has begun is answered first.

    `create(settings, meters, ready, failed)` makes the application of each process.
    """
    listener = bound(settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    announce(f"http://{host}:{listener.getsockname()[1]}")
    if settings.workers == 1:
        answer(create, settings, listener, None, 0)
        return
    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        meters = Path(folder) / "meters"
        Meters.make(meters, settings.workers)
        WorkerProcesses(
            settings.workers, partial(answer, create, settings, listener, meters), MARGIN * settings.grace
        ).keep()


def answer(
    create: Create,
    settings: Settings,
    listener: socket.socket,
    meters: Path | None,
    worker: int,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """One process that answers."""
    import torch
    import uvicorn

    from lookalike.search.serve.connections import Patient

    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn repeats the signal when all is answered: no failure
        signal.signal(number, lambda *_: sys.exit(0))
    allow_files(2 * settings.connections + FILES)
    torch.set_num_threads(1)  # each stage is a thread already
    failures: list[Exception] = []

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            end_in_time(MARGIN * settings.grace)
            await super().shutdown(sockets)

    def stop(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    app = create(settings, Meters(meters, worker), ready, stop)
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(Patient, settings)),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=settings.grace,  # type: ignore[arg-type] # it may be a part of a second
        timeout_keep_alive=30,
        proxy_headers=False,
        ws="none",
    )
    server = Server(config)
    server.run([listener])
    if failures:
        raise failures[0]


def end_in_time(seconds: float) -> None:
    """End this process when the time for what has begun is over, even if a thread of it hangs."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


def allow_files(number: int) -> None:
    """As many open files as there may be: where connections use them up, the index cannot be opened either."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
