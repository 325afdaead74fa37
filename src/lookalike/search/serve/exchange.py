"""One request and its answer: the id of the request, and the headers that every answer carries."""

import json
import re
import time
import uuid
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

from lookalike.search.serve.bodies import Bodies, Body
from lookalike.search.serve.refusals import Refusal

Scope = MutableMapping[str, Any]
REQUEST = re.compile(r"[A-Za-z0-9._-]{1,64}")
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


class Exchange:
    """A request as its application sees it, and what has been sent in reply."""

    def __init__(self, scope: Scope, receive: Any, send: Any, bodies: Bodies) -> None:
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        self.headers, self.names = dict(pairs), [name for name, _ in pairs]
        given = self.headers.get("x-request-id", "")
        self.request = given if REQUEST.fullmatch(given) else uuid.uuid4().hex
        # ids are one segment: what is encoded in them is decoded by the route, not before
        raw = scope.get("raw_path") or scope["path"].encode()
        path = raw.decode("latin-1") if scope["path"].startswith("/v1/items/") else scope["path"]
        self.scope = {**scope, "path": path, "request": self.request}
        self.caller = ""  # whoever was let in
        self.body = Body(self.headers, receive, bodies)
        self.began = time.perf_counter()
        self.status, self.sent, self._send = 0, 0, send

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.body.answered = message["status"], True
            given = {name.lower() for name, _ in message["headers"]}
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in given]
            message = {**message, "headers": [*message["headers"], *added, (b"x-request-id", self.request.encode())]}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with the refusal, unless an answer has begun."""
        if self.body.answered:
            return
        headers, body = _parts(refusal, self.request)
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": body})


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
