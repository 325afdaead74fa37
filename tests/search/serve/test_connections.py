"""Connections by a clock that tests turn: which deadline runs, and what ends it."""

import asyncio

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from lookalike.search.serve.connections import HEADERS, PIPELINED, Patient
from lookalike.search.serve.settings import Settings


class Transport:
    """What a connection writes to; nothing goes anywhere."""

    def __init__(self):
        self.sent, self.aborted, self.closed = [], False, False

    def get_extra_info(self, *_):
        return None

    def set_write_buffer_limits(self, high):
        self.high = high

    def pause_reading(self):
        pass

    resume_reading = pause_reading

    def write(self, content):
        self.sent.append(content)

    def abort(self):
        self.aborted = True

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed or self.aborted


class Deadline:
    def __init__(self, seconds, action):
        self.seconds, self.action, self.cancelled = seconds, action, False

    def cancel(self):
        self.cancelled = True


class Connection:
    """A connection to an application that answers at once, with the deadlines that were set."""

    def __init__(self):
        async def app(_scope, receive, send):
            while (await receive())["more_body"]:
                pass
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})

        self.loop, self.deadlines, self.transport = asyncio.get_running_loop(), [], Transport()
        self.state = ServerState()
        limits = Settings("shop", silence=1.5, taking=2.5, connections=1)
        self.protocol = Patient(limits, Config(app, log_level="critical"), self.state, {})
        self.protocol.loop = self
        self.protocol.connection_made(self.transport)

    def call_later(self, seconds, action, *_):
        self.deadlines.append(Deadline(seconds, action))
        return self.deadlines[-1]

    def create_task(self, work):
        return self.loop.create_task(work)

    @property
    def running(self):
        """Deadlines of ours; uvicorn has its own for a connection that it keeps."""
        return [each for each in self.deadlines if not each.cancelled and each.seconds == 1.5]

    @property
    def taking(self):
        """Deadlines for an answer to be taken."""
        return [each for each in self.deadlines if not each.cancelled and each.seconds == 2.5]

    async def send(self, content):
        self.protocol.data_received(content)
        while self.state.tasks:
            await asyncio.sleep(0)


def live(work):
    async def run():
        connection = Connection()
        await work(connection)
        return connection

    return asyncio.run(asyncio.wait_for(run(), 20))


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_headers_have_one_deadline():
    async def work(connection):
        (first,) = connection.running
        await connection.send(b"GET / HTTP/1.1\r\n")
        (second,) = connection.running
        assert second is not first
        for _ in range(3):  # a byte now and then does not move it
            await connection.send(b"X")
            assert connection.running == [second]
        second.action()

    assert live(work).transport.aborted


def test_headers_that_end_are_waited_for_no_longer():
    async def work(connection):
        await connection.send(REQUEST)
        assert b"ok" in connection.transport.sent[-1]
        assert connection.protocol in connection.state.connections

    connection = live(work)
    assert [each for each in connection.deadlines[:2] if not each.cancelled] == []
    assert not connection.transport.aborted


def test_what_follows_an_answer_has_a_deadline_too():
    async def work(connection):
        await connection.send(REQUEST)
        for deadline in connection.running:  # set after the answer, or not at all
            deadline.cancel()
        connection.protocol._forget()
        await connection.send(b"\r\n")
        (first,) = connection.running
        await connection.send(b"\r\n")
        assert connection.running == [first]
        await connection.send(REQUEST)
        assert first.cancelled
        assert connection.transport.sent[-1].endswith(b"ok")

    live(work)


def test_a_body_that_is_read_has_no_deadline_here():
    async def work(connection):
        connection.protocol.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n")
        assert connection.running == []
        connection.protocol.data_received(b"ab")
        assert connection.running == []
        await connection.send(b"cd")
        assert connection.transport.sent[-1].endswith(b"ok")

    live(work)


@pytest.mark.parametrize(("size", "aborted"), [(HEADERS - 100, False), (HEADERS + 100, True)])
def test_headers_that_grow_without_end_are_cut_off(size, aborted):
    async def work(connection):
        await connection.send(b"GET / HTTP/1.1\r\nX-Long: ")
        for _ in range(4):
            await connection.send(b"x" * (size // 4))

    assert live(work).transport.aborted is aborted


def test_an_answer_is_taken_in_time_or_the_connection_ends():
    async def work(connection):
        assert connection.transport.high == 0
        await connection.send(REQUEST)
        connection.protocol.pause_writing()
        (first,) = connection.taking
        connection.protocol.resume_writing()
        assert first.cancelled
        connection.protocol.pause_writing()
        connection.taking[0].action()

    assert live(work).transport.aborted


def test_requests_that_are_sent_ahead():
    async def work(connection):
        connection.protocol.data_received(REQUEST * 100)
        assert len(connection.protocol.pipeline) == PIPELINED
        connection.protocol.data_received(REQUEST)  # read, and nothing else
        assert len(connection.protocol.pipeline) == PIPELINED
        assert not connection.transport.aborted
        while connection.state.tasks:
            await asyncio.sleep(0)

    transport = live(work).transport
    assert b"".join(transport.sent).count(b"HTTP/1.1 200") == PIPELINED + 1
    assert b"".join(transport.sent).count(b"connection: close") == 1
    assert (transport.closed, transport.aborted) == (True, False)


def test_what_is_sent_ahead_without_end_is_cut_off():
    async def work(connection):
        for _ in range(4):
            connection.protocol.data_received(bytes(HEADERS // 2))

    assert live(work).transport.aborted


BROKEN = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n"


def test_a_broken_body_is_answered_unless_others_wait_before_it():
    async def alone(connection):
        connection.protocol.data_received(BROKEN)
        assert connection.transport.sent[-1].startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert connection.transport.closed

    async def after_another(connection):
        connection.protocol.data_received(REQUEST + BROKEN)
        assert connection.transport.sent == []
        assert connection.transport.aborted

    live(alone)
    live(after_another)


def test_half_a_connection_is_kept_for_an_answer_only():
    async def work(connection):
        assert connection.protocol.eof_received() is False
        connection.protocol.data_received(BROKEN[:-10])
        assert connection.protocol.eof_received() is False

    async def whole(connection):
        connection.protocol.data_received(REQUEST)
        assert connection.protocol.eof_received() is True
        await connection.send(b"")
        assert b"ok" in connection.transport.sent[-1]
        assert connection.transport.closed
        assert connection.protocol.eof_received() is False

    live(work)
    live(whole)


def test_many_connections_are_refused_and_very_many_cut_off():
    async def work(connection):
        connection.state.connections.add("another")
        connection.protocol.data_received(REQUEST)
        assert connection.protocol.cycle.scope["state"]["crowded"]
        connection.state.connections.add("a third")
        assert not connection.transport.aborted
        connection.state.connections -= {connection.protocol}
        connection.state.connections.add("a fourth")
        connection.protocol.connection_made(connection.transport)

    assert live(work).transport.aborted


def test_a_lost_connection_leaves_no_deadline():
    async def work(connection):
        assert len(connection.running) == 1
        connection.protocol.pause_writing()
        assert len(connection.taking) == 1
        connection.protocol.connection_lost(None)
        assert connection.running == connection.taking == []
        assert connection.state.connections == set()

    live(work)
