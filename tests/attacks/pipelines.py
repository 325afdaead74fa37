"""Strangers at a real server: pipelines, cut off, half closed, never read; everybody else is served."""

import random
import re
import shutil
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
from PIL import Image

from lookalike.models import Architecture, Model
from lookalike.search import Index
from tests.attacks.outcomes import Outcomes, right
from tests.search.serve.client import Server, multipart

CONNECTIONS, MEMORY = 24, 64 << 20  # at once, and bytes that they may leave behind
LIMITS = {"silence": 2.0, "upload": 4.0, "taking": 2.0, "connections": 40}
GARBAGE = (
    b"\r\n",
    b"nonsense\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\0\xff\x16\x03\x01",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


def pipelines_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    """One server for all trials, so that what one leaves behind is met by the next."""
    place = place / "pipelines"
    with Server(shop(place), limits=LIMITS) as server:
        for number in range(3):  # what is loaded with the first requests is no leak
            pipeline_trial(number, server, place / "photo.png")
        before = resident(server)
        for number in outcomes.numbers(first, count):
            outcomes.attempt(
                str(number), lambda number=number: pipeline_trial(number, server, place / "photo.png"), 120
            )
            outcomes.attempt(f"{number} memory", lambda: right(resident(server) < before + MEMORY, "memory is kept"))


def shop(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    (place / "photos" / "plain").mkdir(parents=True)
    for number in range(6):
        Image.new("RGB", (40, 40), (40 * number, 90, 200)).save(place / "photos" / "plain" / f"{number}.png")
    Image.new("RGB", (40, 40), (90, 90, 200)).save(place / "photo.png")
    index = Index.create(place / "shop.index", Model.create(Architecture("conv4", {"channels": 3}, dim=16), seed=1))
    index.add(place / "photos")
    index.close()
    return place / "shop.index"


def resident(server: Server) -> int:
    process = psutil.Process(server.process.pid)
    return sum(each.memory_info().rss for each in [process, *process.children(recursive=True)])


def pipeline_trial(number: int, server: Server, photo: Path) -> None:
    """Hostile connections beside an ordinary search and a pipeline whose answers must come in order."""
    chance = random.Random(number)
    body, kind = multipart([("image", photo.read_bytes())])
    head = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    search = head % (kind.encode(), len(body)) + body
    with ExitStack() as stack:
        for _ in range(chance.randrange(1, CONNECTIONS)):
            with suppress(OSError):
                hostile(chance, stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20)), search)
        reply = server.search(("image", photo.read_bytes()))
        right(reply.status in (200, 429, 503), f"an ordinary search is answered by {reply.status}")
        right(reply.status == 200 or "retry-after" in reply.headers, "a refusal does not say when to come again")
    in_order(chance, server)
    right(server.search(("image", photo.read_bytes())).status == 200, "afterwards a search is refused")
    right("Traceback" not in server.errors, "the log holds a traceback")


def hostile(chance: random.Random, connection: socket.socket, search: bytes) -> None:
    """Send some of many requests, in pieces, and never read the answers."""
    asks = (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", search)
    content = b"".join(chance.choice(asks) for _ in range(chance.choice((1, 3, 50, 600))))
    for _ in range(chance.choice((0, 0, 1, 3))):
        place = chance.randrange(len(content))
        content = content[:place] + chance.choice(GARBAGE) + content[place:]
    if chance.random() < 0.4:
        content = content[: chance.randrange(len(content))]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.setblocking(False)
    with suppress(OSError):
        for _ in range(chance.choice((1, 5))):
            content = content[connection.send(content) :]
        if chance.random() < 0.3:
            connection.shutdown(socket.SHUT_WR)


def in_order(chance: random.Random, server: Server) -> None:
    """The answers of a pipeline are those of its first requests, each with its number."""
    count = chance.choice((1, 2, 5, 40))
    asks = [b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: n%d\r\n\r\n" % ask for ask in range(count)]
    numbers = [
        int(found) for found in re.findall(rb"x-request-id: n(\d+)\r\n", server.raw(b"".join(asks), closed=True))
    ]
    right(numbers == list(range(len(numbers))), f"answers in the order {numbers}")
    right(len(numbers) >= min(count, 2), f"{len(numbers)} of {count} requests are answered")
