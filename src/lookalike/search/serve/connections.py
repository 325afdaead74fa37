"""Connections that must say what they want soon and briefly: uvicorn by itself waits for headers for ever."""

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS = 1 << 19  # bytes until they end; one read may bring a part of the body with them


class Patient(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection whose headers take longer than `seconds` or grow without end, and
    one that goes on after an answer without asking anything in that time."""

    def __init__(self, seconds: float, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._seconds, self._size, self._in_headers = seconds, 0, False
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        self._size += len(data) if self._in_headers else 0
        if self._size > HEADERS:
            self.transport.abort()
        else:
            super().data_received(data)
            self._await_more()

    def on_message_begin(self) -> None:
        self._await_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._forget()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._forget()
        self._in_headers = True
        self._deadline = self.loop.call_later(self._seconds, self.transport.abort)

    def _await_more(self) -> None:
        """After an answer any byte switches off uvicorn's own timer: blank lines, the rest of a refused body.

        A deadline that runs is left alone, or a byte now and then would hold the connection for ever.
        """
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self._seconds, self.transport.abort)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._size, self._in_headers = None, 0, False
