"""Every line of the table in docs/serve.md: what a stranger may try, against a real server."""

import asyncio
import hmac
import json
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from lookalike.search import Index
from lookalike.search.serve.exchange import REQUEST
from lookalike.search.serve.guard import Guard
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.settings import Settings
from tests.cli.processes import Lookalike
from tests.search.conftest import photo
from tests.search.serve.broken import bombs, kinds, scanned
from tests.search.serve.client import Server, multipart
from tests.search.serve.conftest import encoded

TOKEN = "a-long-token"


@pytest.fixture(scope="module")
def strict(template, tmp_path_factory):
    """A server with a token, small limits and little patience."""
    import shutil

    place = shutil.copytree(template, tmp_path_factory.mktemp("strict") / "shop.index")
    limits = {
        "body": 100_000,
        "silence": 1.5,
        "upload": 4.0,
        "uploads": 8,
        "pixels": 5000,
        "connections": 32,
        "taking": 1.5,
    }
    with Server(place, token=TOKEN, limits=limits) as running:
        yield running


def head(server, length=None, path="/v1/search", kind="multipart/form-data; boundary=b"):
    size = f"Content-Length: {length}" if length is not None else "Transfer-Encoding: chunked"
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: {kind}\r\n{size}\r\n\r\n"
    ).encode()


def test_body_announced_too_large(strict):
    reply = strict.raw(head(strict, 10**9))
    assert b" 413 " in reply.splitlines()[0]
    assert b"too_large" in reply


def test_body_grows_too_large(strict):
    part = b'--b\r\nContent-Disposition: form-data; name="image"; filename="x"\r\n\r\n' + bytes(60_000)
    body = b"".join(f"{len(each):x}\r\n".encode() + each + b"\r\n" for each in (part, bytes(60_000)))
    reply = strict.raw(head(strict) + body)
    assert b" 413 " in reply.splitlines()[0]
    assert b"too_large" in reply


def test_upload_that_stops(strict):
    reply = strict.raw(head(strict, 5000) + b"--b\r\n")  # itself limited to a minute
    assert b" 408 " in reply.splitlines()[0]
    assert b"too_slow" in reply


def test_upload_that_trickles(strict):
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as connection:
        connection.sendall(head(strict, 5000, kind="application/json"))
        connection.settimeout(0.2)
        reply = b""
        for _ in range(200):
            try:
                connection.sendall(b"-")
                reply += connection.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:  # closed between two bytes: the answer is still there to be read
                with suppress(OSError):
                    reply += connection.recv(65536)
                break
            if b"too_slow" in reply:
                break
    assert b" 408 " in reply.splitlines()[0]


def test_headers_that_never_end(strict):
    assert strict.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-") == b""
    assert strict.raw(b"") == b""
    assert strict.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 2_000_000) == b""


NOTHING = b"\r\n"
CHUNK = b"1\r\nx\r\n"


@pytest.mark.parametrize(
    ("request_", "status", "more"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b" 200 ", NOTHING),
        (b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b" 401 ", CHUNK),
    ],
)
def test_connections_that_go_on_after_an_answer(strict, request_, status, more):
    """Neither one byte and silence nor a byte now and then holds a connection."""
    for repeats in (1, 1000):
        with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as connection:
            connection.sendall(request_)
            assert status in connection.recv(65536).splitlines()[0]
            until = time.monotonic() + 120
            while not _closed(connection, more if repeats else b""):
                repeats -= repeats > 0
                assert time.monotonic() < until, "the connection is held"


def _closed(connection, more: bytes) -> bool:
    connection.settimeout(0.1)
    try:
        connection.sendall(more)
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


ASK = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"  # open to everybody, and a long answer


def test_pipelined_requests(strict):
    """A few are answered in order; what follows is not, and the last answer says that the connection ends."""
    requests = [b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: n%d\r\n\r\n" % n for n in range(500)]
    replies = strict.raw(b"".join(requests)).split(b"HTTP/1.1 ")[1:]
    assert [b"x-request-id: n%d\r\n" % n in reply for n, reply in enumerate(replies)] == [True] * len(replies)
    assert 2 <= len(replies) <= 20
    assert {reply[:3] for reply in replies} == {b"200"}
    assert [b"connection: close" in reply for reply in replies] == [False] * (len(replies) - 1) + [True]
    assert all(b'{"ready":true}' in reply for reply in replies)


def test_nonsense_after_a_request_does_not_take_the_place_of_its_answer(strict):
    reply = strict.raw(ASK + b"nonsense\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200")
    assert reply.count(b"HTTP/1.1 ") == 1


@contextmanager
def deaf(server):
    """A connection with hardly any room for what comes back: nothing is ever read from it."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # small buffers on the other side as well
        connection.settimeout(20)
        connection.connect(("127.0.0.1", server.port))
        yield connection


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
def test_answers_that_nobody_reads(strict, last):
    """The connection is closed, though it may be waiting for nothing but its end."""
    with deaf(strict) as connection:
        connection.sendall(6 * ASK + ASK[:-2] + last + b"\r\n")
        until = time.monotonic() + 30
        with suppress(ConnectionError):
            while True:
                connection.sendall(b"\r\n")
                assert time.monotonic() < until, "the connection is held"
                time.sleep(0.1)


def resident(server) -> float:
    """Megabytes of memory."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096 / 1e6


def test_pipelines_that_nobody_reads_fill_no_memory(strict):
    assert strict.ready()
    before = resident(strict)
    with ExitStack() as connections:
        for _ in range(16):
            connection = connections.enter_context(deaf(strict))
            connection.setblocking(False)
            with suppress(BlockingIOError, ConnectionError):
                connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 7000)
        assert strict.ready()
        assert resident(strict) < before + 40
    assert strict.search(("image", encoded())).status == 200


def test_a_caller_who_has_said_everything_is_answered(strict):
    """Half a connection is closed: nothing more comes in, the answer goes out."""
    body, kind = multipart([("image", encoded())])
    for content in (ASK, 2 * ASK, head(strict, len(body), kind=kind) + body):
        reply = strict.raw(content, closed=True)
        assert reply.count(b"HTTP/1.1 200") == content.count(b"HTTP/1.1")
    for unfinished in (b"", ASK[:-2], head(strict, len(body), kind=kind) + body[:-9]):
        assert strict.raw(unfinished, closed=True) == b""


def refused(reply: bytes, status: int, code: str) -> str:
    """The sentence of a refusal in the one form, with the headers of every answer."""
    top, _, body = reply.partition(b"\r\n\r\n")
    lines = top.decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert lines[0].startswith(f"http/1.1 {status} "), reply
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    error = json.loads(body)["error"]
    assert error["code"] == code
    assert error["request_id"] == headers["x-request-id"]
    return error["message"]


NO_HTTP = (
    b"nonsense\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"CONNECT x:1 HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
)


@pytest.mark.parametrize("request_", NO_HTTP)
def test_what_is_not_http(strict, request_):
    assert refused(strict.raw(request_), 400, "bad_request").endswith(".")


@pytest.mark.parametrize(
    "lines",
    [
        b"Host: localhost\r\nHost: evil.example",
        b"Host: localhost\r\nhost: localhost",
        b"Host: localhost/evil",
        b"Host: localhost?x",
        b"Host: evil@localhost",
        b"Host: localhost:80:80",
        b"Host: localhost:x",
        b"Host: local host",
        b"Host: [::1]x",
        b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example",
        b"Host: localhost\r\nAuthorization: a\r\nAuthorization: b",
    ],
)
def test_addresses_with_two_meanings(strict, lines):
    reply = strict.raw(b"GET /v1/health HTTP/1.1\r\n" + lines + b"\r\nConnection: close\r\n\r\n")
    assert refused(reply, 400, "bad_request").endswith(".")


def test_too_many_connections(strict):
    """Whoever comes then is told in the one form to come again; afterwards all is as before."""
    with ExitStack() as connections:
        for _ in range(40):
            connections.enter_context(socket.create_connection(("127.0.0.1", strict.port), timeout=60))
        strict.wait_for(lambda: strict("GET", "/v1/health").status == 429, "a refusal")
        reply = strict("GET", "/v1/health")
        assert (reply.status, reply.headers["connection"]) == (429, "close")
        assert reply.message
        assert int(reply.headers["retry-after"]) >= 1
    strict.wait_for(strict.ready, "an answer afterwards")


def test_small_files_that_take_long(strict):
    assert strict.search(("image", scanned(40))).status == 200
    reply = strict.search(("image", scanned(60)))  # 1,600 pixels, of 5,000 that are allowed
    assert reply.status == 422
    assert "scans" in reply.message


def test_photos_with_a_film_after_their_end(strict):
    assert strict.search(("image", encoded() + b"ftypmp42" + b"\xff\xda" * 1000)).status == 200


def test_refused_bodies_are_drained(server):
    """An answer is not lost because the caller was still sending."""
    for _ in range(3):
        assert server("POST", "/v1/search", bytes(5_000_000), Content_Type="text/plain").status == 415


def test_callers_who_hang_up(strict):
    def gone() -> int:
        return [line["status"] for line in strict.log_lines()].count(499)

    before = gone()
    for kind in ("multipart/form-data; boundary=b", "application/json"):
        with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as connection:
            connection.sendall(head(strict, 5000, kind=kind) + b"--b\r\n")
    strict.wait_for(lambda: gone() == before + 2, "two lines of the log")
    assert "Traceback" not in strict.errors


def test_too_many_bytes_at_once(tmp_path):
    async def app(_scope, receive, send):
        while (await receive())["more_body"]:
            pass
        await asyncio.sleep(0.05)  # it is being worked on
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def upload(door, parts):
        waiting, sent = iter(parts), []

        async def receive():
            await asyncio.sleep(0)
            part = next(waiting, b"")
            return {"type": "http.request", "body": part, "more_body": bool(part)}

        async def send(message):
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"transfer-encoding", b"chunked")]
        scope = {"type": "http", "method": "POST", "path": "/", "raw_path": b"/", "headers": headers}
        await door(scope, receive, send)
        return sent[0]["status"]

    async def together(door, number):
        return await asyncio.gather(*(upload(door, [bytes(100)] * 4) for _ in range(number)))

    door = Guard(app, Settings(tmp_path, log=False, flight=1000), Meters())
    assert asyncio.run(together(door, 2)) == [200, 200]
    assert 429 in asyncio.run(together(door, 5))
    assert (door.bodies.number, door.bodies.size) == (0, 0)
    assert asyncio.run(together(door, 2)) == [200, 200]


def test_too_many_uploads_at_once(strict):
    def refused() -> bool:
        """Once more with eight new uploads: on a slow machine those before were given up too soon to be noticed."""
        with ExitStack() as uploads:
            for _ in range(8):
                connection = socket.create_connection(("127.0.0.1", strict.port), timeout=60)
                uploads.enter_context(connection).sendall(head(strict, 5000))
            return strict.search(("image", encoded())).status == 429

    strict.wait_for(refused, "a refusal")
    strict.wait_for(lambda: strict.search(("image", encoded())).status == 200, "an answer afterwards")


@pytest.mark.parametrize("name", list(bombs()))
def test_bombs(server, name):
    reply = server.search(("image", bombs()[name]))
    assert reply.status in (413, 422), reply.body
    assert reply.message


def test_broken_pictures(server):
    files = kinds()
    assert len(files) >= 30
    for name, content in files.items():
        for path in ("/v1/search", "/v1/feedback"):
            fields = [("image", content)] + ([("item", "table/figs0.png"), ("right", "true")] if "f" in path[4] else [])
            reply = server.form(path, *fields)
            assert reply.status in (200, 201, 413, 415, 422), (name, reply.body)
            if reply.status >= 400:
                assert reply.message.endswith("."), name
    for name in ("html", "svg", "postscript", "bmp", "tiff", "tga", "text", "python"):
        assert server.search(("image", files[name])).status == 415, name


def turned(number: int = 99) -> bytes:
    """A photo that lies on its side, with EXIF that says so, a place and an owner."""
    image, file = photo("figs", number).rotate(90, expand=True), BytesIO()
    exif = Image.Exif()
    exif[0x0112], exif[0x013B], exif[0x8825] = 6, "Secret Owner", {1: "N", 2: (48.0, 51.0, 29.9)}
    image.save(file, "JPEG", exif=exif, quality=95)
    return file.getvalue()


def test_exif_rotation_is_honoured_and_nothing_leaks(shop):
    upright = BytesIO()
    photo("figs", 99).save(upright, "JPEG", quality=95)
    with Server(shop) as server:
        best = server.search(("image", turned()), ("k", "1")).json["hits"][0]
        same = server.search(("image", upright.getvalue()), ("k", "1")).json["hits"][0]
        assert best["item"]["id"] == same["item"]["id"]
        assert best["similarity"] == pytest.approx(same["similarity"], abs=2e-3)
        assert server.form("/v1/items", ("image", turned()), ("id", "exif")).status == 201
        picture = server("GET", "/v1/items/exif/thumbnail").body
        query = server.form("/v1/feedback", ("image", turned()), ("item", "exif"), ("right", "true")).json["query"]
    for content in (picture, Index.open(shop).store.marks.picture(query)):
        assert b"Secret" not in content
        assert b"Exif" not in content
        assert not Image.open(BytesIO(content)).getexif()


TRAVERSALS = (
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "..\\..\\windows",
    "index.sqlite",
    "%2e%2e/%2e%2e/index.sqlite",
    "....//....//etc/passwd",
    "\x00",
    "file:///etc/passwd",
    "table/../table/figs0.png",
)


@pytest.mark.parametrize("text", TRAVERSALS)
def test_path_traversal(server, text):
    for path in (
        f"/v1/items/{quote(text, safe='')}",
        f"/v1/items/{quote(text, safe='')}/thumbnail",
        f"/v1/items/{quote(text, safe='/%')}/thumbnail",
        f"/static/{quote(text, safe='/%')}",
        f"/{quote(text, safe='/%')}",
    ):
        reply = server("GET", path)
        assert reply.status in (404, 422), (path, reply.body[:200])
        assert b"root:" not in reply.body
        assert b"SQLite format" not in reply.body
    assert server.search(("item", text)).status in (404, 422)  # never a file of the server
    assert server.search(("item", str(server.place / "index.sqlite"))).status == 404


HOSTILE = (
    "'; DROP TABLE items; --",
    '" OR 1=1 --',
    "<script>alert(1)</script>",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "x' UNION SELECT content FROM models --",
    "\u202e\ud7ff",
    "%s%n",
    "-1",
    "null",
    "A" * 5000,
    "a\r\nSet-Cookie: x=1",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_sql_and_html_in_every_field(server, text):
    image = ("image", encoded())
    for fields in (
        (image, ("where", text)),
        (image, ("where", f"{text}=1")),
        (image, ("where", f"brand={text}")),
        (image, ("group", text)),
        (image, ("k", text)),
        (image, ("box", text)),
        (("item", text),),
        (image, ("not_item", text)),
        (image, (text[:50], "x")),
    ):
        reply = server.search(*fields)
        assert reply.status in (200, 400, 404, 422), reply.body
        assert reply.headers["content-type"] == "application/json"
        assert "set-cookie" not in reply.headers
    assert server.json("POST", "/v1/feedback", {"query": text[:64], "item": text, "right": True}).status == 404
    assert server("DELETE", f"/v1/feedback/{quote(text, safe='')}").status in (404, 422)
    assert server("GET", "/v1/index").json["items"] == 36


def test_hostile_texts_are_stored_as_they_are(shop):
    with Server(shop) as server:
        for text in HOSTILE[:6]:
            name = text.translate(str.maketrans("", "", "=<>!"))  # what conditions are written with
            columns = json.dumps({"brand": text, f"c {name}": 1})
            made = server.form("/v1/items", ("image", encoded()), ("id", text), ("label", text), ("columns", columns))
            assert made.status == 201, made.body
            path = f"/v1/items/{quote(text, safe='')}"
            assert server("GET", path).json["label"] == text
            assert server("GET", path).headers["content-type"] == "application/json"
            assert server("DELETE", path).status == 200
        assert server("GET", "/v1/index").json["items"] == 36
    assert Index.open(shop).store.check() == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "localhost.evil.example", "127.0.0.1.nip.io"])
def test_wrong_host(server, host):
    reply = server("GET", "/v1/index", Host=host)
    assert reply.status in (400, 403)
    assert b"items" not in reply.body


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost:1", "file://"])
def test_wrong_origin(server, origin):
    reply = server.search(("image", encoded()), Origin=origin)
    assert reply.status == 403
    assert reply.message
    assert "access-control-allow-origin" not in reply.headers


def test_right_host_and_origin(server):
    for name in ("localhost", "127.0.0.1"):
        host = f"{name}:{server.port}"
        assert server.search(("image", encoded()), Host=host, Origin=f"http://{host}").status == 200
    assert server("OPTIONS", "/v1/search", Access_Control_Request_Method="POST").status == 405


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer \xff\xfe",
    ],
)
def test_missing_and_wrong_token(strict, words):
    guarded = (
        ("GET", "/v1/index"),
        ("POST", "/v1/search"),
        ("POST", "/v1/items"),
        ("GET", "/v1/metrics"),
        ("DELETE", "/v1/items/x"),
        ("GET", "/v1/items/x/thumbnail"),
        ("POST", "/v1/feedback"),
    )
    for method, path in guarded:
        reply = strict(method, path, Authorization=words)
        assert reply.status == 401, (path, reply.body)
        assert reply.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in reply.message
    for path in ("/", "/docs", "/openapi.json", "/v1/health"):
        assert strict("GET", path, Authorization=words).status == 200
    assert TOKEN not in strict.errors.replace(f"--token {TOKEN}", "")


ITEM = "table/figs0.png"
MALFORMED = {
    "column of a lone surrogate": ["\ud800=x"],
    "value of a lone surrogate": ['brand="\\ud800"'],
    "values that are half characters": ['brand=["x", "\\udfff"]'],
    "number beyond 64 bits": [f"added<1{'0' * 30}"],
    "number of a thousand digits": [f"price={'9' * 1000}"],
    "too many conditions": ["brand=x"] * 51,
    "a thousand conditions": ["brand=x"] * 1001,
    "too many values": [f"price=[{','.join('1' * 300)}]"] * 2,
    "a hundred thousand blanks": [" " * 50_000],
    "blanks": [" " * 2000],
}


@pytest.mark.parametrize("name", list(MALFORMED))
def test_malformed_conditions(server, name):
    reply = server.json("POST", "/v1/search", {"item": ITEM, "where": MALFORMED[name]})
    assert reply.status in (400, 422), reply.body
    assert reply.message


def test_conditions_within_the_limits(server):
    where = [f"price!=[{','.join(str(100 * number + each) for each in range(10))}]" for number in range(1, 51)]
    assert server.json("POST", "/v1/search", {"item": ITEM, "where": where}).status == 200


def test_malformed_numbers_and_names(server):
    for box in ("9" * 5000 + ",1,1,1", "0,0,0," + "1" * 90_000, "1000000,0,1,1", "\u00b2,1,1,1"):
        assert server.search(("image", encoded()), ("box", box)).status == 422
    reply = server.json("POST", "/v1/search", {"item": ITEM, "\ud800": 1})
    assert reply.status == 422
    assert reply.message
    for host, origin in (("[", None), ("[::1", None), ("localhost", "http://["), ("localhost", "http://[x]/")):
        headers = {"Host": host} | ({"Origin": origin} if origin else {})
        reply = server("GET", "/v1/index", **headers)
        assert reply.status in (400, 403), (host, origin, reply.body)
        assert reply.message


def test_large_json(server):
    reply = server.json("POST", "/v1/search", {"item": "x" * 70_000})
    assert reply.status == 413
    assert "JSON" in reply.message
    assert server.json("POST", "/v1/feedback", {"item": "x" * 70_000, "right": True}).status == 413


def exchange(door, **headers):
    """The status of one request to an application, without a network."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b""}

    pairs = [(name.encode(), value.encode()) for name, value in ({"host": "localhost"} | headers).items()]
    scope = {"type": "http", "method": "GET", "path": "/v1/index", "raw_path": b"/v1/index", "headers": pairs}
    asyncio.run(door(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_tokens_are_compared_in_constant_time(monkeypatch, tmp_path):
    lengths = []

    def compare(one, other):
        lengths.append((len(one), len(other)))
        return one == other

    async def app(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    monkeypatch.setattr(hmac, "compare_digest", compare)
    door = Guard(app, Settings(tmp_path, token="secret", log=False), Meters())
    assert exchange(door, authorization="Bearer secret")[0] == 200
    for token in ("", "s", "secrex", "x" * 1000):
        assert exchange(door, authorization=f"Bearer {token}")[0] == 401
    assert lengths == [(64, 64)] * 5


def test_no_stack_trace_in_an_answer(tmp_path, capsys):
    async def app(_scope, _receive, _send):
        raise RuntimeError("a secret of the inside")

    status, body = exchange(Guard(app, Settings(tmp_path, log=False), Meters()))
    assert status == 500
    assert b"secret" not in body
    assert b"Traceback" not in body
    assert set(json.loads(body)["error"]) == {"code", "message", "request_id"}
    assert "a secret of the inside" in capsys.readouterr().err  # the operator sees it


def test_a_damaged_index_is_an_answer_too(shop):
    with Server(shop) as server:
        for file in shop.glob("index.sqlite*"):
            file.write_bytes(bytes(100_000))
        for reply in (server.search(("image", encoded())), server("GET", "/v1/items/x")):
            assert reply.status in (500, 503)
            assert reply.message
            assert str(shop) not in reply.body.decode()


def test_methods_and_content_types(server):
    body, _ = multipart([("image", encoded())])
    for wrong in ("text/plain", "application/x-www-form-urlencoded", "image/jpeg", "application/json;x", ""):
        assert server("POST", "/v1/search", body, Content_Type=wrong).status in (400, 415, 422), wrong
    for wrong in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=other"):
        assert server("POST", "/v1/search", body, Content_Type=wrong).status in (400, 422), wrong
    assert server("POST", "/v1/search", b"[" * 60_000, Content_Type="application/json").status == 400
    assert server("POST", "/v1/search", b'{"item": NaN}', Content_Type="application/json").status == 422
    for method, path in (
        ("GET", "/v1/search"),
        ("PUT", "/v1/items"),
        ("POST", "/v1/index"),
        ("PATCH", "/v1/items/x"),
        ("TRACE", "/"),
        ("POST", "/"),
        ("DELETE", "/v1/search"),
    ):
        reply = server(method, path)
        assert reply.status == 405, (method, path)
        assert reply.message
        assert reply.headers["allow"]
    assert "file" in server.search(("image", "http://169.254.169.254/latest")).message  # no address is ever fetched
    assert server.search(*[("item", "x")] * 300).status in (400, 422)


def test_headers_of_every_answer(server):
    own = {"X-Request-ID": "trace-1"}
    for reply in (
        server("GET", "/", **own),
        server("GET", "/v1/index", **own),
        server("GET", "/nothing", **own),
        server("PUT", "/", **own),
        server("POST", "/v1/search", b"x", **own),
        server("GET", "/docs", **own),
        server("GET", "/v1/items/table%2Ffigs0.png/thumbnail", **own),
    ):
        assert reply.headers["x-request-id"] == "trace-1"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["referrer-policy"] == "no-referrer"
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "server" not in reply.headers
        assert "set-cookie" not in reply.headers
    assert server.search(("image", encoded())).headers["cache-control"] == "no-store"
    assert "<script" not in server("GET", "/docs").body.decode()
    forged = server("GET", "/v1/index", **{"X-Request-ID": "a b<script>"})
    assert REQUEST.fullmatch(forged.headers["x-request-id"])


def test_the_log_names_requests_and_no_contents(server):
    server.search(("image", encoded()), ("where", "brand=a-word-in-a-query"), X_Request_ID="in-the-log")
    line = server.wait_for(lambda: [row for row in server.errors.splitlines() if "in-the-log" in row], "the line")[0]
    content = json.loads(line)
    assert (content["path"], content["status"], content["method"]) == ("/v1/search", 200, "POST")
    assert content["received"] > 500
    assert "a-word-in-a-query" not in server.errors


def test_other_machines_need_a_token(shop, tmp_path):
    Lookalike(tmp_path)("serve", shop, "--host", "0.0.0.0").refused("--token")
    Lookalike(tmp_path)("serve", tmp_path / "nothing").refused("no index")
    for token in (" secret", "secret\n", "  ", "s\u00e9cret"):
        Lookalike(tmp_path)("serve", shop, "--token", token).refused("a token is plain ASCII without blanks")


def test_too_many_columns(shop):
    with Server(shop) as server:
        for first, status in ((0, 201), (90, 201), (180, 400)):
            columns = json.dumps({f"column {number}": number for number in range(first, first + 99)})
            reply = server.form("/v1/items", ("image", encoded()), ("id", "wide"), ("columns", columns))
            assert reply.status == status, reply.body
        assert "at most 200 columns" in reply.message
        assert server("GET", "/v1/index").json["items"] == 37
