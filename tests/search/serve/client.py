"""A real server in a process of its own, and a plain client: one connection per request, nothing hidden."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import uuid4

from lookalike.cli import main
from lookalike.search.serve import settings
from tests.cli.processes import Forked


def _serve(words: list[str], log: str, environment: dict[str, str], limits: dict[str, object], before: str) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    os.environ.clear()
    os.environ |= environment
    if limits:
        settings.Settings = partial(settings.Settings, **limits)
    exec(before, {})
    sys.argv = ["lookalike", *words]
    main()


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The sentence of a refusal; every refusal has the one form."""
        assert set(self.json) == {"error"}, self.body
        assert set(self.json["error"]) == {"code", "message", "request_id"}, self.body
        assert self.json["error"]["request_id"] == self.headers["x-request-id"]
        assert "Traceback" not in self.body.decode()
        return self.json["error"]["message"]


@dataclass
class Server:
    """`lookalike serve PLACE …` as a user starts it, or another verb that serves."""

    place: Path | str
    words: tuple[str, ...] = ()
    token: str | None = None
    limits: dict[str, object] = field(default_factory=dict)  # of Settings, which the command line does not offer
    before: str = ""  # what its process runs first
    logs: Path | None = None  # how the names of logs begin, where that is not beside the index
    verb: str = "serve"

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def start(self, port: int = 0) -> None:
        self.log = Path(f"{self.logs or self.place}.{uuid4().hex}.log")
        words = [self.verb, str(self.place), "--port", str(port), *self.words]
        words += ["--token", self.token] if self.token else []
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "LOOKALIKE_SHAPES": "off"}
        self.log.touch()
        self.process = Forked(_serve, words, str(self.log), environment, self.limits, self.before)
        self.port = int(self.wait_for(lambda: re.search(r"http://[^ ]*:(\d+)", self.errors), "an address")[1])
        self.wait_for(self.ready, "readiness")

    @property
    def errors(self) -> str:
        return self.log.read_text()

    def log_lines(self) -> list[dict]:
        """What the access log says, request by request."""
        return [json.loads(line) for line in self.errors.splitlines() if line.startswith("{")]

    def wait_for(self, condition, what: str, seconds: float = 240):
        until = time.monotonic() + seconds
        while not (result := condition()):
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < until, f"no {what}: {self.errors}"
            time.sleep(0.02)
        return result

    def ready(self) -> bool:
        try:
            return self("GET", "/v1/health").status == 200
        except (OSError, http.client.HTTPException):  # the second: an answer that was cut off
            return False

    def __call__(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {**own, **names})
            reply = connection.getresponse()
            return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def raw(self, content: bytes, patience: float = 60, closed: bool = False) -> bytes:
        """What comes back for these bytes, until the server closes the connection; `closed`: nothing else follows."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=patience) as connection:
            parts = []
            with suppress(ConnectionError):
                connection.sendall(content)
                if closed:
                    connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    parts.append(part)
            return b"".join(parts)

    def json(self, method: str, path: str, content: object) -> Reply:
        return self(method, path, json.dumps(content).encode(), Content_Type="application/json")

    def form(self, path: str, *fields: tuple[str, str | bytes], **headers: str) -> Reply:
        body, kind = multipart(fields)
        return self("POST", path, body, Content_Type=kind, **headers)

    def search(self, *fields: tuple[str, str | bytes], **headers: str) -> Reply:
        return self.form("/v1/search", *fields, **headers)


def multipart(fields) -> tuple[bytes, str]:
    """A form; bytes are files."""
    boundary, parts = uuid4().hex, []
    for name, value in fields:
        file = '; filename="photo.jpg"\r\nContent-Type: image/jpeg' if isinstance(value, bytes) else ""
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        parts += [head.encode(), value if isinstance(value, bytes) else value.encode(), b"\r\n"]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"
