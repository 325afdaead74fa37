"""The description of the API and the files of the page, as the application answers with them."""

import json
import re

import pytest

import lookalike.search.serve
from tests.search.serve.inside import Inside

USUAL = {"400", "401", "403", "405", "408", "413", "422", "429", "500", "503"}


@pytest.fixture(scope="module")
def described(inside):
    return json.loads(inside("GET", "/openapi.json").body)


@pytest.fixture(scope="module")
def docs(inside):
    return inside("GET", "/docs").body.decode()


def test_the_description_names_the_token_and_one_form_of_errors(described):
    assert described["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    assert described["security"] == [{}, {"token": []}]
    assert all(path.startswith("/v1/") for path in described["paths"])  # the pages are not part of the API
    for path, methods in described["paths"].items():
        for route in methods.values():
            refusals = {status: answer for status, answer in route["responses"].items() if status >= "400"}
            assert refusals.keys() >= USUAL, path
            assert list(route["responses"]) == sorted(route["responses"]), path
            forms = {form["schema"]["$ref"] for each in refusals.values() for form in each["content"].values()}
            assert forms == {"#/components/schemas/Error"}, path
    answers = described["paths"]["/v1/items/{id}"]["get"]["responses"]
    assert answers.keys() == USUAL | {"200", "404"}
    assert described["paths"]["/v1/items"]["post"]["requestBody"]["required"]


def test_the_page_lists_every_route_and_field(described, docs):
    assert docs.startswith("<!doctype html>")
    assert docs.endswith("</body></html>")
    shown = re.findall(r"<h2><code>(\w+) (.*?)</code></h2><p>(.+?)</p>", docs)
    routes = [(method.upper(), path) for path, methods in described["paths"].items() for method in methods]
    assert [(method, path) for method, path, _ in shown] == routes
    statuses = [", ".join(route["responses"]) for methods in described["paths"].values() for route in methods.values()]
    assert re.findall(r"<p>Answers: ([\d, ]+)\.</p>", docs) == statuses
    for field in (
        "<tr><td><code>image</code></td><td>file</td><td>Required. JPEG, PNG, WebP or GIF.</td></tr>",
        "<tr><td><code>label</code></td><td>string</td><td>Its class.</td></tr>",
        "<td>file, any number</td>",
        "<td>string or null</td>",
        "<td>integer</td>",
    ):
        assert field in docs, field


def test_the_pages_are_served(inside):
    for path, kind, start in (
        ("/", "text/html", b"<!"),
        ("/docs", "text/html", b"<!"),
        ("/docs.css", "text/css", b"\n:root"),
        ("/openapi.json", "application/json", b"{"),
        ("/static/index.html", "text/html", b"<!"),
    ):
        reply = inside("GET", path)
        assert reply.status == 200
        assert reply.headers["content-type"].startswith(kind)
        assert reply.body.startswith(start), path
    (folder,) = lookalike.search.serve.__path__
    files = [name for name in inside("GET", "/").body.decode().split('"') if name.startswith("/static/")]
    assert len(files) > 2
    for path in files:
        reply = inside("GET", path)
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-cache"), path
        with open(f"{folder}/page/{path.removeprefix('/static/')}", "rb") as file:
            assert reply.body == file.read(), path
    for name in ("nothing", "..%2Fserver.py", "../server.py", ""):
        assert inside("GET", f"/static/{name}").status == 404, name


def test_a_read_only_application_refuses_to_write(template):
    with Inside(template, read_only=True, log=False) as readers:
        assert readers("DELETE", "/v1/items/table%2Ffigs0.png").status == 403
        assert readers("GET", "/v1/items/table%2Ffigs0.png").status == 200


def test_names_of_items(inside):
    assert inside("GET", "/v1/items/table%2Ffigs0.png").json["label"] == "figs"
    missing = inside("GET", "/v1/items/new%2Fone%20%C3%A9")
    assert missing.status == 404
    assert "There is no item 'new/one é'" in missing.message
    for wrong, status in (("%ff", 404), ("%00", 422)):
        assert inside("GET", f"/v1/items/{wrong}").status == status, wrong
