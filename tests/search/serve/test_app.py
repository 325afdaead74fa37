"""The application itself, without a network: its routes, its start, its refusals."""

import asyncio
import threading
from contextlib import closing
from urllib.parse import quote

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.serve.app import create_app
from lookalike.search.serve.refusals import no_item
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.stages import LOST
from tests.search.around import around
from tests.search.conftest import photo
from tests.search.serve.conftest import encoded
from tests.search.serve.inside import exchange


async def until(condition, seconds=60):
    for _ in range(100 * seconds):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("timed out")


def test_a_worker_goes_on_looking_for_a_new_generation(shop):
    """Mistakes do not end it."""
    looks, failures = [], []

    def upcoming():
        looks.append(1)
        raise UserError("the index is elsewhere for a moment")

    async def live():
        door = create_app(Settings(shop, look=0.001), failed=failures.append)
        index = door.app.state.engine.index
        index.store = around(index.store, generations=around(index.store.generations, upcoming=upcoming))
        async with door.app.router.lifespan_context(door.app):
            await until(lambda: len(looks) > 2)

    asyncio.run(live())
    assert failures == []


def test_a_worker_in_which_searches_hang_says_so(shop):
    free, failures, statuses = threading.Event(), [], []

    async def live():
        door = create_app(Settings(shop, log=False, look=0.01, searching=0.05), failed=failures.append)
        engine = door.app.state.engine
        async with door.app.router.lifespan_context(door.app):
            await until(lambda: engine.ready)
            store = engine.index.store
            engine.index.store = around(store, search=lambda *_: free.wait(60) and [])
            while not failures:
                body = b'{"item": "table/figs0.png"}'
                reply = await exchange(door, "POST", "/v1/search", body, Content_Type="application/json")
                statuses.append(reply.status)
            engine.index.store = store
            free.set()

    asyncio.run(asyncio.wait_for(live(), 60))
    assert "searches hang" in str(failures[0])
    assert statuses.count(504) >= LOST  # beside those that were never begun
    assert set(statuses) <= {429, 504}


MISTAKES = [
    (no_item("x"), 404, "not_found", "There is no item 'x'."),
    (UserError("say what"), 400, "bad_request", "Say what."),
    (HTTPException(405, headers={"Allow": "GET"}), 405, "wrong_method", "This address does not take that method."),
    (HTTPException(418, "a teapot"), 418, "error", "a teapot."),
    (
        RequestValidationError([{"loc": ("path", "number"), "msg": "no number"}]),
        422,
        "bad_value",
        "'path.number' is not valid: no number.",
    ),
    (ClientDisconnect(), 499, "gone", "The caller closed the connection"),
    (KeyError("inside"), 500, "internal", "Something went wrong inside the server."),
]


@pytest.mark.parametrize(("error", "status", "code", "message"), MISTAKES)
def test_every_exception_has_the_one_form(shop, error, status, code, message):
    async def failing():
        raise error

    door = create_app(Settings(shop, log=False))
    door.app.add_api_route("/failing", failing)
    reply = asyncio.run(exchange(door, path="/failing"))
    door.app.state.engine.stop()
    assert (reply.status, reply.json["error"]["code"]) == (status, code)
    assert reply.message.startswith(message)
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


def test_before_it_is_ready_nothing_is_answered(shop):
    door = create_app(Settings(shop, log=False))  # and its start has not begun
    health = asyncio.run(exchange(door, path="/v1/health"))
    search = asyncio.run(exchange(door, "POST", "/v1/search", b"{}"))
    door.app.state.engine.stop()
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
    for method, path in (
        ("DELETE", "/v1/items/new%2Fone"),
        ("GET", "/v1/items/new%2Fone/thumbnail"),
        ("GET", "/v1/items/new%2Fone"),
        ("GET", "/v1/items/%ff"),
    ):
        assert inside(method, path).status == 404, path


def test_a_picture_that_is_gone_is_said(inside, tmp_path):
    with closing(Index.open(inside.place)) as index:
        photo("bread", 70).save(tmp_path / "gone.png")
        index.add([tmp_path / "gone.png"])
        (tmp_path / "gone.png").unlink()
        (item,) = index.store.summary([], 0, 1).newest
        reply = inside("GET", f"/v1/items/{quote(item.id, safe='')}/thumbnail")
        index.store.remove([item.id])
    assert (reply.status, reply.message) == (404, "The picture of this item is no longer there.")


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
