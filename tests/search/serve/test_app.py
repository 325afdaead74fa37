"""The application itself, without a network: its routes, its start, its refusals."""

import asyncio
import json
import threading

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from lookalike.errors import UserError
from lookalike.search.serve import app as application
from lookalike.search.serve import views
from lookalike.search.serve.app import _kept_ready, _refused, _started, create_app
from lookalike.search.serve.engine import Engine
from lookalike.search.serve.refusals import no_item
from lookalike.search.serve.settings import Settings
from tests.search.serve.conftest import encoded
from tests.search.serve.inside import exchange


class Start:
    """An engine whose start ends in `error`, that counts how often it looks ahead, and in which searches may hang."""

    def __init__(self, error=None, looks=3, hangs=False):
        self.error, self.looks, self.hangs, self.enough = error, looks, hangs, asyncio.Event()

    def start(self):
        if self.error is not None:
            raise self.error

    def look_ahead(self):
        self.looks -= 1
        if self.looks == 0:
            self.loop.call_soon_threadsafe(self.enough.set)
        raise UserError("the index is elsewhere for a moment")


def test_a_start_says_that_it_is_done_or_why_it_failed():
    def start(engine):
        words = []
        good = asyncio.run(_started(engine, lambda: words.append("ready"), words.append))
        return good, words

    error = OSError("no space left")
    assert start(Start()) == (True, ["ready"])
    assert start(Start(error)) == (False, [error])


def test_a_worker_goes_on_looking_for_a_new_generation(monkeypatch):
    monkeypatch.setattr(application, "LOOK", 0.001)
    failures = []

    async def live(engine, good):
        async def starting():
            return good

        engine.loop = asyncio.get_running_loop()
        task = asyncio.create_task(_kept_ready(engine, starting(), failures.append))
        waiting = asyncio.create_task(engine.enough.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        ended = task.done()
        for each in (task, waiting):
            each.cancel()
        return ended, engine.looks <= 0

    assert asyncio.run(live(Start(), True)) == (False, True)  # its mistakes do not end it
    assert asyncio.run(live(Start(), False)) == (True, False)
    assert failures == []
    assert asyncio.run(live(Start(hangs=True), True)) == (True, False)
    assert "searches hang" in str(failures[0])


MISTAKES = [
    (no_item("x"), 404, "not_found", "There is no item 'x'."),
    (UserError("say what"), 400, "bad_request", "Say what."),
    (HTTPException(405, headers={"Allow": "GET"}), 405, "wrong_method", "This address does not take that method."),
    (HTTPException(418, "a teapot"), 418, "error", "a teapot."),
    (RequestValidationError([{"loc": ("path", "number"), "msg": "no number"}]), 422, "bad_value",
     "'path.number' is not valid: no number."),
    (ClientDisconnect(), 499, "gone", "The caller closed the connection"),
    (KeyError("inside"), 500, "internal", "Something went wrong inside the server."),
]  # fmt: skip


@pytest.mark.parametrize(("error", "status", "code", "message"), MISTAKES)
def test_every_exception_has_the_one_form(error, status, code, message):
    reply = asyncio.run(_refused(Request({"type": "http", "request": "r1"}), error))
    content = json.loads(reply.body)["error"]
    assert (reply.status_code, content["code"], content["request_id"]) == (status, code, "r1")
    assert content["message"].startswith(message)
    assert reply.headers.get("allow") == ("GET" if status == 405 else None)


def test_a_search_is_answered(inside):
    reply = inside.form("/v1/search", ("image", encoded("figs")), ("k", "3"))
    assert reply.status == 200, reply.body
    assert [hit["item"]["label"] for hit in reply.json["hits"]] == ["figs"] * 3
    assert reply.json["milliseconds"]["network"] > 0
    by_item = inside.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 2}).json
    assert by_item["query"] == "item:table/figs0.png"
    assert by_item["milliseconds"]["network"] == 0


def test_the_state_is_shown(inside):
    assert inside("GET", "/v1/health").json == {"ready": True}
    assert inside("GET", "/v1/index").json["items"] == 36
    metrics = inside("GET", "/v1/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"\nlookalike_items 36\n" in metrics.body


def test_before_it_is_ready_nothing_is_answered(shop, monkeypatch):
    begin = threading.Event()
    monkeypatch.setattr(Engine, "start", lambda _: begin.wait())

    async def live():
        door = create_app(Settings(shop, log=False))
        async with door.app.router.lifespan_context(door.app):
            try:
                return await exchange(door, path="/v1/health"), await exchange(door, "POST", "/v1/search", b"{}")
            finally:
                begin.set()

    health, search = asyncio.run(live())
    assert (health.status, health.json) == (503, {"ready": False})
    assert (search.status, search.headers["retry-after"]) == (503, "2")


def test_items_and_marks_come_and_go(inside):
    added = inside.form("/v1/items", ("image", encoded("figs", 50)), ("id", "new/one"), ("label", "figs"))
    assert added.status == 201, added.body
    assert added.json["thumbnail"] == "/v1/items/new%2Fone/thumbnail"
    assert inside("GET", "/v1/items/new%2Fone").json["label"] == "figs"
    assert inside("GET", "/v1/items/new%2Fone/thumbnail").body.startswith(b"\xff\xd8")
    mark = {"query_item": "new/one", "item": "table/figs1.png", "right": True}
    made = inside.json("POST", "/v1/feedback", mark)
    assert made.status == 201, made.body
    assert made.json["query"] == "item:new/one"
    number = made.json["feedback"]
    assert inside("DELETE", f"/v1/feedback/{number}").json == {"undone": number}
    for wrong in (number, 0, 2**63):
        assert inside("DELETE", f"/v1/feedback/{wrong}").status == 404
    assert inside("DELETE", "/v1/feedback/many").status == 422
    with_picture = inside.form("/v1/feedback", ("image", encoded()), ("item", "table/figs1.png"), ("right", "false"))
    assert inside("DELETE", f"/v1/feedback/{with_picture.json['feedback']}").status == 200
    assert inside("DELETE", "/v1/items/new%2Fone").json == {"removed": "new/one"}
    for method, path in (("DELETE", "/v1/items/new%2Fone"), ("GET", "/v1/items/new%2Fone/thumbnail"),
                         ("GET", "/v1/items/new%2Fone"), ("GET", "/v1/items/%ff")):  # fmt: skip
        assert inside(method, path).status == 404, path


def test_a_picture_that_is_gone_is_said(inside, monkeypatch):
    monkeypatch.setattr(views, "thumbnail", lambda *_: None)
    reply = inside("GET", "/v1/items/table%2Fbread5.png/thumbnail")
    assert (reply.status, reply.message) == (404, "The picture of this item is not there any more.")


def test_the_description_lists_what_each_route_may_refuse(inside):
    paths = inside("GET", "/openapi.json").json["paths"]
    for path, method, statuses in (
        ("/v1/search", "post", {"404", "415"}),
        ("/v1/items", "post", {"201", "415"}),
        ("/v1/items/{id}", "get", {"404"}),
        ("/v1/items/{id}", "delete", {"404"}),
        ("/v1/items/{id}/thumbnail", "get", {"404"}),
        ("/v1/feedback", "post", {"201", "404", "415"}),
        ("/v1/feedback/{number}", "delete", {"404"}),
        ("/v1/index", "get", {"200", "503"}),
    ):
        assert statuses <= set(paths[path][method]["responses"]), path
