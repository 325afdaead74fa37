"""A real server under load on this machine: waiting times, answers per second, shares of the stages, memory.

    python -m benchmarks.serve [--rows 1000000] [--seconds 15] [--workers 1] [--kills 0] [--json FILE]

The index holds random vectors of 128 dimensions beside a real model (EfficientNet-lite0 at 128 px, ONNX Runtime where
it is installed). Clients are threads of another process on the loopback: one that uploads 500 × 375 JPEGs, then 32,
then 32 that search by id, then four times 32 uploads, of which some must be refused; then one again, as before.
--kills N kills a worker or the whole server N times under load with writes and counts what was lost.
"""

import json
import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PIL import Image

from benchmarks.encode import photos
from benchmarks.options import reader
from benchmarks.search import vectors
from lookalike.models import Architecture, Model, available
from lookalike.search import Index
from lookalike.search.items import Item

WIDTH, CROP, CLIENTS = 128, 128, 32
STAGES = ("decode", "network", "search")
BLOCK = 10_000
BOUNDARY = "lookalike-benchmark"


def make(place: Path, rows: int) -> None:
    """An index of random vectors with a model that embeds queries."""
    weights = "pretrained" if available("efficientnet_lite0") else None
    model = Model.create(Architecture("efficientnet_lite0", dim=WIDTH), weights)
    model.preprocessing = model.preprocessing.sized(CROP, CROP)
    print(f"embedding by {model.backend('auto').name}", flush=True)
    index = Index.create(place, model)
    content, _ = vectors(rows, WIDTH, 1, False)
    for start in range(0, rows, BLOCK):
        items = [Item(f"{row:08d}", label=f"class {row % 997}") for row in range(start, min(start + BLOCK, rows))]
        index.store.put(items, content[start : start + BLOCK])
    index.ready()
    index.close()


@contextmanager
def serving(
    place: Path, workers: int, environment: Mapping[str, str] = os.environ
) -> Iterator[tuple[int, psutil.Process]]:
    """A server in its own process, ready: its port and its process."""
    words = ["serve", str(place), "--port", "0", "--no-log", "--workers", str(workers)]
    program = [sys.executable, "-c", "from lookalike.cli import main; main()", *words]
    with tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(program, stderr=errors, env={**environment, "OMP_NUM_THREADS": "1"})
        try:
            port = 0
            while not port or not _ready(port):
                assert process.poll() is None, "the server has ended"
                errors.seek(0)
                match = re.search(r"http://[^ ]*:(\d+)", errors.read())
                port = int(match[1]) if match else 0
                time.sleep(0.05)
            print(f"ready after {time.perf_counter() - began:.1f} s", flush=True)
            yield port, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()


def _ready(port: int) -> bool:
    try:
        return Connection(port).ask(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200
    except OSError:
        return False


class Connection:
    """One kept connection; requests are bytes that were made before."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> tuple[int, bytes]:
        self.socket.sendall(request)
        content = b""
        while (end := content.find(b"\r\n\r\n")) < 0:
            part = self.socket.recv(65536)
            if not part:
                raise ConnectionError("closed")
            content += part
        length = int(content[:end].lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(content) < end + 4 + length:
            content += self.socket.recv(65536)
        return int(content[9:12]), content[end + 4 :]


def uploads() -> list[bytes]:
    """Searches by photo."""
    result = []
    for array in photos(32, 500):
        file = BytesIO()
        Image.fromarray(array[:375]).save(file, "JPEG", quality=85)
        result.append(upload(file.getvalue()))
    return result


def upload(picture: bytes) -> bytes:
    """A search by the content of a file."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
    body = head.encode() + picture + f"\r\n--{BOUNDARY}--\r\n".encode()
    return _request(f"multipart/form-data; boundary={BOUNDARY}", body)


def by_id(rows: int) -> list[bytes]:
    draw = np.random.default_rng(1)
    return [
        _request("application/json", json.dumps({"item": f"{row:08d}"}).encode()) for row in draw.integers(0, rows, 500)
    ]


def _request(kind: str, body: bytes) -> bytes:
    head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _clients(port: int, requests: list[bytes], clients: int, seconds: float, results: Any) -> None:
    """The process of the clients: each asks again as soon as it is answered."""
    rows: list[tuple[int, float, dict[str, float]]] = []
    until = time.perf_counter() + seconds

    def run(number: int) -> None:
        connection, count = Connection(port), number
        while time.perf_counter() < until:
            began = time.perf_counter()
            status, body = connection.ask(requests[count % len(requests)])
            wait = 1e3 * (time.perf_counter() - began)
            rows.append((status, wait, json.loads(body)["milliseconds"] if status == 200 else {}))
            count += clients
            if status == 429:
                time.sleep(0.1)  # a client that ignores Retry-After, but does not spin

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(rows)


def load(
    name: str, server: tuple[int, psutil.Process], requests: list[bytes], clients: int, seconds: float
) -> dict[str, Any]:
    """What some clients see, and the memory of the server meanwhile."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    process = context.Process(target=_clients, args=(server[0], requests, clients, seconds, results))
    process.start()
    began = _processor(server[1])
    peak = {"resident": 0.0, "anonymous": 0.0}
    rows: list[Any] = []
    while not rows:
        for kind, value in _memory(server[1]).items():
            peak[kind] = max(peak[kind], value)
        if not results.empty():
            rows = results.get()
        time.sleep(0.2)
    process.join()
    spent = _processor(server[1]) - began
    good = [row for row in rows if row[0] == 200]
    waits = np.array([wait for _, wait, _ in good])
    refused = np.array([wait for status, wait, _ in rows if status == 429])
    row: dict[str, Any] = {
        "name": name,
        "clients": clients,
        "answers_per_second": len(good) / seconds,
        "processor": 1e3 * spent / max(1, len(good)),
        "p50": float(np.median(waits)),
        "p99": float(np.percentile(waits, 99)),
        "stages": {stage: float(np.median([times[stage] for _, _, times in good])) for stage in STAGES},
        "refused": len(refused),
        "refused_p50": float(np.median(refused)) if len(refused) else None,
        "failed": sum(status not in (200, 429) for status, _, _ in rows),
        "memory_mb": peak,
    }
    print(_line(row), flush=True)
    return row


def _processor(server: psutil.Process) -> float:
    """Seconds of processor time that the server and its workers have used."""
    times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def _memory(server: psutil.Process) -> dict[str, float]:
    """Megabytes of the server and its workers: resident, and of that anonymous (the rest are mapped files)."""
    rss = sum(process.memory_info().rss for process in (server, *server.children(recursive=True)))
    shared = sum(process.memory_info().shared for process in (server, *server.children(recursive=True)))
    return {"resident": rss / 1e6, "anonymous": (rss - shared) / 1e6}


def _line(row: dict[str, Any]) -> str:
    stages = ", ".join(f"{stage} {value:.1f}" for stage, value in row["stages"].items())
    refused = f", {row['refused']} refused in {row['refused_p50']:.1f} ms" if row["refused"] else ""
    memory = ", ".join(f"{value:,.0f} MB {kind}" for kind, value in row["memory_mb"].items())
    processor = f"{row['processor']:.1f} ms of a core per answer"
    waits = f"p50 {row['p50']:6.1f}  p99 {row['p99']:6.1f} ms ({stages})"
    rest = ", ".join([f"{row['failed']} failed", processor, memory])
    return f"{row['name']:<24} {row['answers_per_second']:6.1f}/s  {waits}{refused}, {rest}"


def kills(place: Path, number: int) -> dict[str, int]:
    """Kill a worker, or every fifth time the whole server, under load with writes: how many of them were lost."""
    client, crashes = (import_module(f"tests.search.serve.{name}") for name in ("client", "crashes"))
    acknowledged = lost = 0
    with client.Server(place, ("--workers", "2", "--no-log")) as server:
        for count in range(number):
            more, gone = crashes.one_round(server, count, whole=count % 5 == 4)
            acknowledged, lost = acknowledged + more, lost + gone
            print(f"kill {count + 1} of {number}: {more} writes acknowledged, {gone} lost", flush=True)
    return {"kills": number, "acknowledged": acknowledged, "lost": lost}


def main() -> None:
    options = reader(__doc__, rows=1_000_000, seconds=15.0, workers=1, kills=0).parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lookalike-serve-"))
    content: dict[str, Any] = {"rows": options.rows, "workers": options.workers}
    try:
        place = folder / "large.index"
        make(place, options.rows)
        pictures, ids = uploads(), by_id(options.rows)
        print(f"{options.rows:,} × {WIDTH}, photos of {np.mean([len(each) for each in pictures]) / 1e3:.0f} kB")
        with serving(place, options.workers) as server:
            ask: Callable[..., dict[str, Any]] = lambda name, requests, clients: load(  # noqa: E731
                name, server, requests, clients, options.seconds
            )
            load("(warm-up)", server, pictures, 2, 3)
            content["loads"] = [
                ask("one client, photos", pictures, 1),
                ask(f"{CLIENTS} clients, photos", pictures, CLIENTS),
                ask(f"{CLIENTS} clients, by id", ids, CLIENTS),
                ask(f"{4 * CLIENTS} clients, photos", pictures, 4 * CLIENTS),
                ask("one client again", pictures, 1),
            ]
        if options.kills:
            content["kills"] = kills(place, options.kills)
            print(json.dumps(content["kills"]))
    finally:
        shutil.rmtree(folder)
    if options.json is not None:
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
