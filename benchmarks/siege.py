"""Ordinary clients of a server that strangers attack at the same time: waiting times, refusals, memory.

    python -m benchmarks.siege [--rows 20000] [--seconds 30] [--deaf 1030] [--large 8] [--clients 4] [--json FILE]

`deaf` connections send 7,000 requests each and never read an answer; `large` ones send, without a pause, a small file
of 50 million pixels with 16 bits each. The clients upload photos before, meanwhile and afterwards; they sleep for 0.1
seconds when they are told to come again.
"""

import json
import multiprocessing
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.options import reader
from benchmarks.serve import Connection, load, make, serving, upload, uploads

PIXELS = (7000, 7100)
PIPELINE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 7000


def large_picture() -> bytes:
    file = BytesIO()
    Image.fromarray(np.zeros(PIXELS, np.uint16)).save(file, "PNG")
    return file.getvalue()


def deaf(port: int) -> socket.socket:
    """A connection that has sent as much as it can, with hardly any room for what comes back."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", port))
    connection.setblocking(False)
    with suppress(OSError):
        connection.send(PIPELINE)
    return connection


def _send(port: int, request: bytes, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(OSError):
            connection = Connection(port)
            while not over.is_set():
                connection.ask(request)


def _strangers(port: int, deaf_ones: int, large: int, began: Any, ended: Any) -> None:
    """The process of the strangers; deaf connections that are closed come again."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    request, over = upload(large_picture()), threading.Event()
    senders = [threading.Thread(target=_send, args=(port, request, over), daemon=True) for _ in range(large)]
    for sender in senders:
        sender.start()
    began.set()
    while not ended.is_set():
        connections = []
        for _ in range(deaf_ones):
            with suppress(OSError):
                connections.append(deaf(port))
        ended.wait(35)  # the server closes them after 30 seconds
        for connection in connections:
            connection.close()
    over.set()


@contextmanager
def besieged(port: int, deaf_ones: int, large: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    began, ended = context.Event(), context.Event()
    process = context.Process(target=_strangers, args=(port, deaf_ones, large, began, ended), daemon=True)
    process.start()
    try:
        began.wait()
        yield
    finally:
        ended.set()
        process.join(10)
        process.kill()


def main() -> None:
    options = reader(__doc__, rows=20_000, seconds=30.0, deaf=1030, large=8, clients=4).parse_args()
    photos, rows = uploads(), []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "shop.index"
        make(place, options.rows)
        with serving(place, 1) as server:
            load("(warm-up)", server, photos, 2, 3)
            rows.append(load("before", server, photos, options.clients, options.seconds))
            with besieged(server[0], options.deaf, options.large):
                rows.append(load("meanwhile", server, photos, options.clients, options.seconds))
            time.sleep(40)  # deaf connections that are left are closed
            rows.append(load("afterwards", server, photos, options.clients, options.seconds))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
