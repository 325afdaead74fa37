"""The door, function by function: hosts, tokens, sizes, times, what is added to an answer and noted about it."""

import asyncio
import json
import time

import pytest

from lookalike.search.serve.bodies import Bodies, Body
from lookalike.search.serve.exchange import HEADERS, REQUEST, Exchange, as_http
from lookalike.search.serve.guard import OPEN, Guard, note, route_of
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import Settings
from tests.search.serve.inside import exchange


async def answering(scope, receive, send):
    """An application that reads everything, and answers with the path."""
    while (await receive())["more_body"]:
        pass
    start = {"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"private")]}
    await send(start)
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def ask(app=answering, method="GET", path="/v1/index", body=b"", settings=None, **headers):
    door = Guard(app, Settings("shop", **({"log": False} | (settings or {}))), Meters())
    return asyncio.run(asyncio.wait_for(exchange(door, method, path, body, **headers), 20))


def exchange_of(headers=(), path="/", raw=None, receive=None, send=None, **settings):
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"headers": pairs, "path": path, "raw_path": raw, "method": "GET", "client": None}
    return Exchange(scope, receive, send, Bodies(Settings("shop", **settings)))


def test_hosts_and_origins():
    for host in ("localhost", "LOCALHOST:80", "localhost.", "127.0.0.1:8000", "[::1]:8000", "10.1.2.3", "shop.example"):
        assert ask(Host=host, settings={"names": ("shop.example",)}).status == 200, host
    for host in ("", "evil.example", "localhost.evil.example", "127.0.0.1.nip.io"):
        assert ask(Host=host).status == 403, host
    assert ask(Origin="http://localhost", Host="localhost").status == 200
    assert ask(Origin="http://evil.example").status == 403
    assert ask(Origin="HTTPS://LOCALHOST", Host="localhost").status == 200
    for host in ("[", "localhost/evil", "evil@localhost", "localhost:80:80", "localhost:x", "[::1]x", "local host"):
        assert ask(Host=host).status == 400, host


def test_nobody_is_let_in_where_it_is_crowded():
    async def crowded(scope, receive, send):
        await Guard(answering, Settings("shop", log=False), Meters())(
            scope | {"state": {"crowded": True}}, receive, send
        )

    reply = asyncio.run(exchange(crowded))
    assert (reply.status, reply.headers["connection"]) == (429, "close")
    assert reply.message


def test_what_decides_who_may_ask_comes_once():
    for name, status in (("host", 400), ("origin", 400), ("authorization", 400), ("accept", 200)):
        twice = exchange_of([("host", "localhost"), (name, "localhost"), (name, "localhost")])
        assert twice.names.count(name) > 1

        async def again(scope, receive, send, twice=twice):
            door = Guard(answering, Settings("shop", log=False), Meters())
            await door(scope | {"headers": twice.scope["headers"]}, receive, send)

        assert asyncio.run(exchange(again)).status == status, name


def test_a_whole_answer_for_what_is_no_request():
    top, body = as_http(Refusal(400, "No.", {"Connection": "close"})).split(b"\r\n\r\n")
    lines = top.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert lines[0] == "HTTP/1.1 400 Bad Request"
    assert headers["Connection"] == "close"
    assert HEADERS.items() <= headers.items()
    assert int(headers["content-length"]) == len(body)
    assert json.loads(body)["error"] == {"code": "bad_request", "message": "No.", "request_id": headers["x-request-id"]}


def test_tokens_and_what_is_open_without_one():
    for words, status in (
        ("Bearer secret", 200),
        ("bearer  secret ", 200),
        ("Bearer wrong", 401),
        ("Basic secret", 401),
    ):
        assert ask(settings={"token": "secret"}, Authorization=words).status == status, words
    refused = ask(settings={"token": "secret"})
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    for path in (*OPEN, "/static/page.js"):
        assert ask(path=path, settings={"token": "secret"}).status == 200, path


def test_bodies_that_are_announced_or_grow_too_large():
    assert ask(method="POST", body=bytes(500), settings={"body": 500}).status == 200
    announced = ask(method="POST", settings={"body": 500}, Content_Length="501")
    assert (announced.status, announced.headers["connection"]) == (413, "close")
    grown = ask(method="POST", body=bytes(501), settings={"body": 500}, Content_Length="0")
    assert (grown.status, "500 bytes" in grown.message) == (413, True)
    assert ask(method="POST", body=bytes(300), settings={"flight": 200}).status == 429


@pytest.mark.parametrize(("text", "length"), [("7", 7), ("", 0), ("x", 0), ("-5", 0), ("²", 0), ("9" * 30, 10**20 - 1)])
def test_the_length_of_a_body_is_a_number_or_nothing(text, length):
    body = Body({"content-length": text}, None, Bodies(Settings("shop")))
    assert (body.length, body.announced) == (length, length > 0)
    assert exchange_of([("transfer-encoding", "chunked")]).body.announced


def test_bodies_in_flight_are_counted_until_they_are_done():
    bodies = Bodies(Settings("shop", uploads=1, flight=100))
    post, get = (Body({"content-length": length}, None, bodies) for length in ("60", "0"))
    post.received = 60
    with bodies.admitted(post):
        bodies.grow(60)
        assert (bodies.number, bodies.size) == (1, 60)
        with bodies.admitted(get):
            assert bodies.number == 1
        with pytest.raises(Refusal), bodies.admitted(post):
            pass
        bodies.grow(40)
        with pytest.raises(Refusal) as refused:
            bodies.grow(1)
        post.received = 101
    assert refused.value.status == 429
    assert (bodies.number, bodies.size) == (0, 0)


def test_a_body_that_is_too_slow_is_not_waited_for():
    async def never():
        await asyncio.Event().wait()

    async def trickle():
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"-", "more_body": True}

    async def read(slow):
        while True:
            await slow.receive()

    for receive, settings in ((never, {"silence": 0.02}), (trickle, {"upload": 0.05})):
        with pytest.raises(Refusal) as refused:
            asyncio.run(asyncio.wait_for(read(exchange_of(receive=receive, **settings).body), 20))
        assert (refused.value.status, refused.value.headers) == (408, {"Connection": "close"})

    async def disconnect():
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    answered = exchange_of(receive=disconnect, silence=0.01).body
    answered.answered = True  # whoever waits for the end of the connection may wait
    assert asyncio.run(answered.receive()) == {"type": "http.disconnect"}


def test_an_answer_carries_its_headers_and_the_id_of_its_request():
    reply = ask(X_Request_ID="trace-1")
    assert reply.headers["x-request-id"] == "trace-1"
    assert reply.headers["cache-control"] == "private"  # its own is not replaced
    assert {name: reply.headers[name] for name in HEADERS if name != "cache-control"} == {
        name: value for name, value in HEADERS.items() if name != "cache-control"
    }
    assert REQUEST.fullmatch(ask(X_Request_ID="a b<script>").headers["x-request-id"])
    new = exchange_of()
    assert (new.status, new.sent, new.body.received, new.body.answered) == (0, 0, 0, False)


def test_ids_stay_encoded_until_their_route():
    assert exchange_of(path="/v1/items/a/b", raw=b"/v1/items/a%2Fb").scope["path"] == "/v1/items/a%2Fb"
    assert exchange_of(path="/v1/items/a", raw=None).scope["path"] == "/v1/items/a"
    assert exchange_of(path="/static/a b", raw=b"/static/a%20b").scope["path"] == "/static/a b"


def test_a_failure_inside_is_told_to_the_operator_only(capsys):
    async def broken(_scope, _receive, _send):
        raise RuntimeError("a secret of the inside")

    async def half(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("too late")

    reply = ask(broken)
    assert (reply.status, b"secret" in reply.body) == (500, False)
    assert reply.headers["content-length"] == str(len(reply.body))
    assert reply.message.startswith("Something went wrong inside the server.")
    assert ask(half).status == 200  # an answer that has begun is not begun again
    assert "a secret of the inside" in capsys.readouterr().err


def test_what_is_not_http_goes_through():
    scopes = []

    async def app(scope, _receive, _send):
        scopes.append(scope)

    asyncio.run(Guard(app, Settings("shop"), Meters())({"type": "lifespan"}, None, None))
    assert scopes == [{"type": "lifespan"}]


def test_one_line_about_every_request(capsys):
    meters, before = Meters(), time.time()
    door = Guard(answering, Settings("shop"), meters)
    asyncio.run(exchange(door, "POST", "/v1/items/abc", bytes(150), X_Request_ID="r1"))
    line = json.loads(capsys.readouterr().err)
    took, noted = line.pop("ms"), line.pop("time")
    assert line == {
        "request": "r1",
        "method": "POST",
        "path": "/v1/items/abc",
        "status": 200,
        "sent": len("/v1/items/abc"),
        "received": 150,
        "caller": "anybody",
        "client": "192.0.2.1",
    }
    assert before - 0.001 <= noted <= time.time() + 0.001
    assert 0 < took <= 1e3 * (time.time() - before) + 0.01
    assert 'lookalike_requests_total{route="/v1/items",status="200"} 1' in meters.text(0)
    note(exchange_of(path="/" + "x" * 500), meters, log=True)
    line = json.loads(capsys.readouterr().err)
    assert (len(line["path"]), line["client"]) == (200, "")
    note(exchange_of(), meters, log=False)
    assert capsys.readouterr().err == ""


def test_ids_are_not_names_of_routes():
    for path, route in (
        ("/v1/items", "/v1/items"),
        ("/v1/items/a", "/v1/items"),
        ("/static/x.js", "/static"),
        ("/v1/items/a/thumbnail", "/v1/items/thumbnail"),
        ("/v1/feedback/7", "/v1/feedback"),
        ("/v1/search", "/v1/search"),
        ("/docs", "/docs"),
    ):
        assert route_of(path) == route
