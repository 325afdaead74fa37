"""The door: who may ask, how much may come in and how slowly, what every answer carries, and one line about it."""

import asyncio
import hmac
import ipaddress
import json
import re
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from typing import Any

from lookalike.search.serve.meters import Meters
from lookalike.search.serve.refusals import Refusal, busy, crowded, internal
from lookalike.search.serve.settings import LOCAL, Settings

Scope = MutableMapping[str, Any]
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(:[0-9]{0,5})?")
ONCE = ("host", "origin", "authorization")  # what decides who may ask must not have two meanings
REQUEST = re.compile(r"[A-Za-z0-9._-]{1,64}")
OPEN = ("/", "/docs", "/docs.css", "/openapi.json", "/v1/health")  # they say nothing about the index
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Callable[..., Any], settings: Settings, meters: Meters) -> None:
        self.app, self.settings, self.meters = app, settings, meters
        self.bodies = Bodies(settings)
        self._hosts = {*LOCAL, settings.host, socket.gethostname(), *settings.names}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self.settings, self.bodies)
        try:
            self._check(exchange)
            with self.bodies.admitted(exchange):
                await self.app(exchange.scope, exchange.receive, exchange.send)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except Exception:
            traceback.print_exc(file=sys.stderr)  # for the operator; the caller gets the request id to name
            await exchange.refuse(internal())
        finally:
            self._note(exchange)

    def _check(self, exchange: "_Exchange") -> None:
        if exchange.scope.get("state", {}).get("crowded"):
            raise crowded()
        self._check_address(exchange)
        path = exchange.scope["path"]
        if self.settings.token is not None and path not in OPEN and not path.startswith("/static/"):
            kind, _, token = exchange.headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(_digest(token.strip()), _digest(self.settings.token))  # as slow for a near miss
            if not right or kind.lower() != "bearer":
                raise Refusal(401, "Send the token of this server: Authorization: Bearer TOKEN.",
                              {"WWW-Authenticate": "Bearer"})  # fmt: skip
        if exchange.length > self.settings.body:
            raise too_large(self.settings.body)

    def _check_address(self, exchange: "_Exchange") -> None:
        """The request is meant for this server, and comes from its own page or from no page at all."""
        for name in ONCE:
            if exchange.names.count(name) > 1:
                raise Refusal(400, f"The request has the header '{name}' more than once. Send it once.")
        host, origin = exchange.headers.get("host", ""), exchange.headers.get("origin")
        if not self._known(host):
            raise Refusal(403, "The request is addressed to a host name that this server does not serve (--name).")
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            raise Refusal(403, "Pages of other sites may not use this server.")

    def _known(self, host: str) -> bool:
        """A name of this server, or an address: only names can be pointed at it by a stranger's DNS."""
        match = HOST.fullmatch(host)
        if match is None:
            raise Refusal(400, "The Host of the request is not the name or the address of a server.")
        name = match["name"].strip("[]")
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return bool(name) and name.lower().rstrip(".") in {own.lower() for own in self._hosts}
        return True

    def _note(self, exchange: "_Exchange") -> None:
        seconds = time.perf_counter() - exchange.began
        self.meters.request(route_of(exchange.scope["path"]), exchange.status, seconds)
        if self.settings.log:
            line = {
                "time": round(time.time(), 3), "request": exchange.request, "method": exchange.scope["method"],
                "path": exchange.scope["path"][:200], "status": exchange.status, "sent": exchange.sent,
                "received": exchange.received, "ms": round(1e3 * seconds, 2),
                "client": (exchange.scope.get("client") or ("",))[0],
            }  # fmt: skip
            sys.stderr.write(json.dumps(line) + "\n")


def _parts(refusal: Refusal, request: str) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a refusal."""
    body = json.dumps(refusal.content(request), ensure_ascii=False).encode()
    return {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}, body


def as_http(refusal: Refusal) -> bytes:
    """A whole answer, for what never becomes a request."""
    request = uuid.uuid4().hex
    headers, body = _parts(refusal, request)
    lines = [f"{name}: {value}\r\n" for name, value in {**headers, **HEADERS, "x-request-id": request}.items()]
    return f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\n{''.join(lines)}\r\n".encode() + body


def _digest(token: str) -> bytes:
    """Tokens of one length, so that not even the length of the right one shows in the time of a comparison."""
    return blake2b(token.encode("utf-8", "surrogateescape")).digest()


def too_large(most: int) -> Refusal:
    return Refusal(413, f"The request is larger than {most:,} bytes. Send a smaller picture.", {"Connection": "close"})


def route_of(path: str) -> str:
    """The route for the meters: an id is not a name for a series."""
    if path.startswith("/v1/items"):
        return "/v1/items/thumbnail" if path.endswith("/thumbnail") else "/v1/items"
    if path.startswith("/static/"):
        return "/static"
    return "/v1/feedback" if path.startswith("/v1/feedback") else path


@dataclass
class Bodies:
    """The bodies in flight in one worker: how many, and how many bytes of them have come in."""

    settings: Settings
    number: int = 0
    size: int = 0

    @contextmanager
    def admitted(self, exchange: "_Exchange") -> Iterator[None]:
        announced = exchange.announces_body
        if announced and self.number >= self.settings.uploads:
            raise busy()
        self.number += announced
        try:
            yield
        finally:
            self.number -= announced
            self.size -= exchange.received

    def grow(self, size: int) -> None:
        self.size += size
        if self.size > self.settings.flight:
            raise busy()


class _Exchange:
    """One request and its answer, measured on the way."""

    def __init__(self, scope: Scope, receive: Any, send: Any, settings: Settings, bodies: Bodies) -> None:
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        self.headers, self.names = dict(pairs), [name for name, _ in pairs]
        own = self.headers.get("x-request-id", "")
        self.request = own if REQUEST.fullmatch(own) else uuid.uuid4().hex
        # ids are one segment: what is encoded in them is decoded by the route, not before
        raw = scope.get("raw_path") or scope["path"].encode()
        path = raw.decode("latin-1") if scope["path"].startswith("/v1/items/") else scope["path"]
        self.scope = {**scope, "path": path, "request": self.request}
        self.settings, self.bodies, self._receive, self._send = settings, bodies, receive, send
        self.began = time.perf_counter()
        self.status, self.sent, self.received, self.started = 0, 0, 0, False

    @property
    def length(self) -> int:
        text = self.headers.get("content-length", "0")
        return int(text[:20]) if text.isascii() and text.isdigit() else 0

    @property
    def announces_body(self) -> bool:
        return self.length > 0 or "transfer-encoding" in self.headers

    async def receive(self) -> Any:
        """The next part of the body, unless it is too large or too slow."""
        left = self.began + self.settings.upload - time.perf_counter()
        try:
            async with asyncio.timeout(max(0.0, min(left, self.settings.silence)) if not self.started else None):
                message = await self._receive()
        except TimeoutError:
            raise Refusal(
                408, "The request came in too slowly. Check the connection and send it again.", {"Connection": "close"}
            ) from None
        size = len(message.get("body", b""))
        self.received += size
        self.bodies.grow(size)
        if self.received > self.settings.body:
            raise too_large(self.settings.body)
        return message

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.started = message["status"], True
            own = {name.lower() for name, _ in message["headers"]}
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
            message = {**message, "headers": [*message["headers"], *added, (b"x-request-id", self.request.encode())]}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with the refusal, unless an answer has begun."""
        if self.started:
            return
        headers, body = _parts(refusal, self.request)
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": body})
