"""The description of the API, and what all routes share."""

import asyncio
import json

import pytest
from fastapi import FastAPI

from lookalike.search import Index
from lookalike.search.serve import page_routes, schema
from lookalike.search.serve.documents import _bodies, _fields, _type, described, page
from lookalike.search.serve.item_routes import item_named, name_of
from lookalike.search.serve.page_routes import PAGE, TYPES, _file
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.routes import as_json, body, check_writable, errors
from lookalike.search.serve.settings import Settings
from tests.search.serve.inside import exchange


@pytest.fixture
def app():
    urls = dict.fromkeys(("docs_url", "redoc_url", "openapi_url"))
    small = FastAPI(title="lookalike", description="What looks <like> this?", **urls)
    described = body(("multipart/form-data", schema.ITEM_FORM))

    @small.post("/v1/items", responses=errors(415), openapi_extra=described)
    async def add() -> None:
        """Add a picture & keep it."""

    page_routes.add_to(small)
    return small


def test_the_description_names_the_token(app):
    content = described(app)
    assert content["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    assert content["security"] == [{}, {"token": []}]
    assert "Error" in content["components"]["schemas"]
    assert list(content["paths"]) == ["/v1/items"]  # the pages are not part of the API
    bare = FastAPI()
    assert described(bare)["components"]["securitySchemes"]


def test_the_page_lists_every_route_and_field(app):
    text = page(described(app))
    assert text.startswith("<!doctype html>")
    assert text.endswith("</body></html>")
    assert "What looks &lt;like&gt; this?" in text
    assert "<h2><code>POST /v1/items</code></h2><p>Add a picture &amp; keep it.</p>" in text
    assert "<tr><td><code>image</code></td><td>file</td><td>Required. </td></tr>" in text
    assert "<tr><td><code>label</code></td><td>string</td><td>Its class.</td></tr>" in text
    assert "415" in text.rsplit("Answers: ", 1)[1]


def test_types_of_fields():
    assert _type({"type": "integer"}) == "integer"
    assert _type(schema.binary()) == "file"
    assert _type(schema.many(schema.binary())) == "file, any number"
    assert _type({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "string or null"
    assert _type({}) == ""
    assert schema.many(schema.TEXT) == {"type": "array", "items": {"type": "string"}}
    assert schema.binary() == {"type": "string", "format": "binary"}
    assert (_bodies({}), _bodies({"requestBody": {"content": {"a": 1}}})) == ({}, {"a": 1})
    assert _fields("application/json", {"properties": {}}) == "<p>application/json</p><table></table>"


def test_the_pages_are_served(app):
    def ask(path):
        return asyncio.run(exchange(app, path=path))

    for path, kind, start in (
        ("/", "text/html", b"<!"), ("/docs", "text/html", b"<!"), ("/docs.css", "text/css", b"\n:root"),
        ("/openapi.json", "application/json", b"{"), ("/static/index.html", "text/html", b"<!"),
    ):  # fmt: skip
        reply = ask(path)
        assert reply.status == 200
        assert reply.headers["content-type"].startswith(kind)
        assert reply.body.startswith(start), path
    for name in [path.name for path in PAGE.iterdir() if path.suffix in TYPES]:
        reply = _file(name)
        assert reply.body == (PAGE / name).read_bytes()
        assert reply.headers["cache-control"] == "no-cache"
    for name in ("nothing", "../server.py", ""):
        with pytest.raises(Refusal) as refused:
            _file(name)
        assert refused.value.status == 404


def test_refusals_of_every_route():
    usual = [400, 401, 403, 405, 408, 413, 422, 429, 500, 503]
    assert list(errors()) == usual
    assert list(errors(404, 415)) == sorted([*usual, 404, 415])
    assert errors()[413] == {"model": schema.Error}
    assert body(("a/b", {"type": "string"})) == {
        "requestBody": {"required": True, "content": {"a/b": {"schema": {"type": "string"}}}}
    }


def test_a_read_only_server_refuses_to_write():
    check_writable(Settings("shop"))
    with pytest.raises(Refusal) as refused:
        check_writable(Settings("shop", read_only=True))
    assert refused.value.status == 403


def test_answers_are_json():
    reply = as_json(schema.HealthForm(ready=False), 503)
    assert (reply.status_code, reply.media_type, json.loads(reply.body)) == (503, "application/json", {"ready": False})
    assert as_json(schema.HealthForm(ready=True)).status_code == 200


def test_names_of_items(template):
    assert name_of("new%2Fone%20%C3%A9") == "new/one é"
    for wrong, status in (("%ff", 404), ("%00", 422)):
        with pytest.raises(Refusal) as refused:
            name_of(wrong)
        assert refused.value.status == status
    index = Index.open(template)
    assert item_named(index.store, "table/figs0.png").label == "figs"
    with pytest.raises(Refusal, match="There is no item 'nothing'"):
        item_named(index.store, "nothing")
    index.close()
