"""Connections with limits: on the time and size of a request, and on the time a client takes to read its answer.

uvicorn by itself waits for headers and for readers for ever, and keeps every request that is sent ahead.
"""

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lookalike.search.serve.exchange import as_http
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import Settings

HEADERS = 1 << 19  # bytes until they end; one read may bring a part of the body with them
PIPELINED = 1  # requests that wait on a connection for the answer before theirs: browsers send none ahead


class Patient(HttpToolsProtocol):
    """uvicorn's protocol, which closes a connection

    - whose headers take longer than `silence` or grow without end, or that goes on after an answer without asking;
    - that does not take an answer within `taking` seconds;
    - after the answers of what was sent ahead, where that is too much or not HTTP.
    """

    def __init__(self, limits: Settings, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._limits, self._size, self._in_headers = limits, 0, False
        self._deadline: TimerHandle | None = None
        self._taking: TimerHandle | None = None
        self._ended = False  # whatever still comes is not a request

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > 2 * self._limits.connections:
            transport.abort()
            return
        transport.set_write_buffer_limits(0)  # every byte that the caller has not taken counts
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        self._size += len(data) if self._in_headers or self._ended else 0
        if self._size > HEADERS:
            self.transport.abort()
        elif not self._ended:  # what is ignored is read all the same: who is still sending might not see the answers
            super().data_received(data)
            self._await_more()

    def eof_received(self) -> bool:  # type: ignore[override] # uvicorn always closes
        """Whoever has closed one half of a connection after whole requests is still told the answers."""
        if self._complete:
            self.cycle.keep_alive = False
        return self._complete

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(self._limits.taking, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_taking()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            raise OverflowError("too many requests were sent ahead")  # for the parser, which stops there
        self._await_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._forget()
        self.scope["state"]["crowded"] = len(self.connections) > self._limits.connections
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP ends a connection, after the answers of the whole requests before it."""
        del msg  # says as much
        self._ended = True
        if self._complete:
            self.cycle.keep_alive = False
        elif self.pipeline:  # half a request, and others before it: an answer now would be taken for theirs
            self.transport.abort()
        else:
            message = "This is not a request in HTTP that the server can read. Check the address and the headers."
            self.transport.write(as_http(Refusal(400, message, {"Connection": "close"})))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)
        self._forget_taking()

    @property
    def _complete(self) -> bool:
        """Whether the last request is there as a whole, and not answered."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _await_headers(self) -> None:
        self._forget()
        self._in_headers = True
        self._deadline = self.loop.call_later(self._limits.silence, self.transport.abort)

    def _await_more(self) -> None:
        """After an answer any byte switches off uvicorn's own timer: blank lines, the rest of a refused body.

        A deadline that runs is left alone, or a byte now and then would hold the connection for ever.
        """
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self._limits.silence, self.transport.abort)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._size, self._in_headers = None, 0, False

    def _forget_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        self._taking = None
