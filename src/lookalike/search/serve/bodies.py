"""How much may come in, and how slowly: the body of one request, and all bodies in flight in one worker."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lookalike.search.serve.refusals import Refusal, busy
from lookalike.search.serve.settings import Settings


def too_large(most: int) -> Refusal:
    return Refusal(413, f"The request is larger than {most:,} bytes. Send a smaller picture.", {"Connection": "close"})


def too_slow() -> Refusal:
    message = "The request came in too slowly. Check the connection and send it again."
    return Refusal(408, message, {"Connection": "close"})


class Body:
    """The body of one request, as it comes in."""

    def __init__(self, headers: Mapping[str, str], receive: Callable[[], Awaitable[Any]], bodies: "Bodies") -> None:
        text = headers.get("content-length", "0")
        self.length = int(text[:20]) if text.isascii() and text.isdigit() else 0
        self.announced = self.length > 0 or "transfer-encoding" in headers
        self.received = 0
        self.answered = False  # whoever waits for the end of the connection may wait
        self._receive, self._bodies, self._began = receive, bodies, time.perf_counter()

    async def receive(self) -> Any:
        """The next part, unless it is too large or too slow."""
        settings = self._bodies.settings
        left = self._began + settings.upload - time.perf_counter()
        try:
            async with asyncio.timeout(None if self.answered else max(0.0, min(left, settings.silence))):
                message = await self._receive()
        except TimeoutError:
            raise too_slow() from None
        size = len(message.get("body", b""))
        self.received += size
        self._bodies.grow(size)
        if self.received > settings.body:
            raise too_large(settings.body)
        return message


@dataclass
class Bodies:
    """The bodies in flight in one worker: how many, and how many bytes of them have come in."""

    settings: Settings
    number: int = 0
    size: int = 0

    @contextmanager
    def admitted(self, body: Body) -> Iterator[None]:
        if body.length > self.settings.body:
            raise too_large(self.settings.body)
        if body.announced and self.number >= self.settings.uploads:
            raise busy()
        self.number += body.announced
        try:
            yield
        finally:
            self.number -= body.announced
            self.size -= body.received

    def grow(self, size: int) -> None:
        self.size += size
        if self.size > self.settings.flight:
            raise busy()
