"""The application of a server in this process, asked without a network: nothing waits, and nothing is hidden."""

import asyncio
import json
from pathlib import Path

from lookalike.search.serve.app import create_app
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.server import Create
from lookalike.search.serve.settings import Settings
from tests.search.serve.client import Reply, multipart


class Inside:
    """An application that has started, and one event loop that runs while it is asked; `create` makes another."""

    def __init__(self, place: Path, create: Create = create_app, **settings: object) -> None:
        self.place = place
        self.words: list[str] = []
        given = Settings(place, **settings)
        self.door = create(given, Meters(), lambda: self.words.append("ready"), lambda error: self.words.append(error))
        self.loop = asyncio.new_event_loop()

    def __enter__(self) -> "Inside":
        self._life = self.door.app.router.lifespan_context(self.door.app)
        self.loop.run_until_complete(self._life.__aenter__())
        while not self.words:
            self.loop.run_until_complete(asyncio.sleep(0.01))
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.run_until_complete(self._life.__aexit__(None, None, None))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def __call__(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        return self.loop.run_until_complete(exchange(self.door, method, path, body, **headers))

    def json(self, method: str, path: str, content: object) -> Reply:
        return self(method, path, json.dumps(content).encode(), Content_Type="application/json")

    def form(self, path: str, *fields: tuple[str, str | bytes]) -> Reply:
        body, kind = multipart(fields)
        return self("POST", path, body, Content_Type=kind)


async def exchange(app, method: str = "GET", path: str = "/", body: bytes = b"", **headers: str) -> Reply:
    """One request to an application, as uvicorn would hand it over."""
    parts, sent = [body[:100], body[100:]], []

    async def receive():
        if not parts:
            await asyncio.Event().wait()  # the caller keeps the connection
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message):
        sent.append(message)

    own = {"Host": "localhost", "Content_Length": str(len(body))} | headers
    pairs = [(name.replace("_", "-").lower().encode(), value.encode("latin-1")) for name, value in own.items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path.partition("?")[0],
        "raw_path": path.partition("?")[0].encode(),
        "query_string": path.partition("?")[2].encode(),
        "root_path": "",
        "headers": pairs,
        "client": ("192.0.2.1", 5000),
        "server": ("localhost", 8000),
    }
    await app(scope, receive, send)
    names = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], names, b"".join(message.get("body", b"") for message in sent[1:]))
