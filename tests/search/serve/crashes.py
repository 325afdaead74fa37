"""kill -9 under load with writes: what was acknowledged is there afterwards, and the server answers again."""

import http.client
import os
import random
import signal
import threading
import time
from pathlib import Path

from lookalike.search import Index
from tests.search.serve.client import Server
from tests.search.serve.conftest import encoded

PICTURE = encoded("figs", 7)


class Load:
    """Some clients that add and remove items and search, as fast as they are answered."""

    def __init__(self, server: Server, round_: int, clients: int = 3) -> None:
        self.server, self.name = server, f"round{round_}"
        self.added: set[str] = set()  # acknowledged
        self.removed: set[str] = set()
        self.uncertain: set[str] = set()  # a removal that was asked for and not answered
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, client: int) -> None:
        count = 0
        while not self._stop.is_set():
            count += 1
            id_ = f"{self.name}-{client}-{count}"
            try:
                if self.server.form("/v1/items", ("image", PICTURE), ("id", id_)).status == 201:
                    self.added.add(id_)
                self.server.search(("image", PICTURE), ("k", "1"))
                if count % 3 == 0 and id_ in self.added:
                    self.uncertain.add(id_)
                    if self.server("DELETE", f"/v1/items/{id_}").status == 200:
                        self.removed.add(id_)
            except (OSError, http.client.HTTPException):  # it was killed in between, or in the middle of an answer
                time.sleep(0.01)


def read(file: Path) -> bytes:
    """A file of /proc; nothing where its process has ended since it was listed."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def children(process: int) -> list[int]:
    return [int(number) for file in Path(f"/proc/{process}/task").glob("*/children") for number in read(file).split()]


def answering_children(server: Server) -> list[int]:
    """The workers; the process that looks after shared memory is none."""
    return [child for child in children(server.process.pid) if b"spawn_main" in read(Path(f"/proc/{child}/cmdline"))]


def one_round(server: Server, number: int, whole: bool) -> tuple[int, int]:
    """Kill a worker, or the whole server, in the middle of it; how many writes were acknowledged, how many are lost."""
    load = Load(server, number)
    server.wait_for(lambda: len(load.added) > 3, "writes")
    time.sleep(random.Random(number).random() / 4)
    if whole:
        port, workers = server.port, answering_children(server)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        load.stop()
        until = time.monotonic() + 200
        while any(Path(f"/proc/{worker}/stat").exists() for worker in workers):  # orphans end by themselves
            assert time.monotonic() < until, "a worker outlives its server"
            time.sleep(0.05)
        server.start(port)
    else:
        worker = random.Random(number).choice(answering_children(server))
        os.kill(worker, signal.SIGKILL)
        server.wait_for(lambda: worker not in answering_children(server), "the end of the worker")
        server.wait_for(lambda: len(answering_children(server)) == 2, "a new worker")
        load.stop()
        server.wait_for(server.ready, "readiness")
    store = Index.open(server.place).store
    there = {item.id for item in store.listed()}
    lost = (load.added - load.uncertain - there) | (load.removed & there)
    assert store.check() == []
    store.close()
    assert server.search(("image", PICTURE)).status == 200
    return len(load.added) + len(load.removed), len(lost)
