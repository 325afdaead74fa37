"""The API as its callers see it, against a real server."""

import json
from datetime import datetime

import pytest

from lookalike.search import Index
from lookalike.search.quality import Quality
from lookalike.search.status import describe
from tests.search.conftest import CLASSES
from tests.search.serve.client import Server
from tests.search.serve.conftest import encoded
from tests.search.serve.inside import Inside


def test_an_image_finds_its_class(server):
    reply = server.search(("image", encoded("figs")), ("k", "3"))
    assert reply.status == 200
    answer = reply.json
    assert [hit["item"]["label"] for hit in answer["hits"]] == ["figs"] * 3
    assert answer["hits"][0]["similarity"] >= answer["hits"][1]["similarity"]
    assert (answer["label"], answer["verdict"], answer["items"]) == ("figs", None, 36)
    assert set(answer["milliseconds"]) == {"decode", "network", "search"}
    item = answer["hits"][0]["item"]
    assert item["path"].startswith("figs")
    assert "/" not in item["path"]
    assert item["columns"]["brand"] in ("odd", "even")
    assert server("GET", item["thumbnail"]).headers["content-type"] == "image/jpeg"


def test_answers_are_those_of_the_command_line(server, template):
    own = Index.open(template)
    for label in CLASSES:
        hits = server.search(("image", encoded(label, 77)), ("k", "5")).json["hits"]
        expected = own.search(encoded(label, 77), 5).hits
        assert [hit["item"]["id"] for hit in hits] == [hit.id for hit in expected]
        assert [hit["similarity"] for hit in hits] == pytest.approx([hit.similarity for hit in expected], abs=1e-6)


def test_items_examples_filters_and_groups(server):
    one = server.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 5, "where": ["brand=odd", "price<40"]})
    assert {hit["item"]["columns"]["brand"] for hit in one.json["hits"]} == {"odd"}
    assert all(hit["item"]["columns"]["price"] < 40 for hit in one.json["hits"])
    grouped = server.json("POST", "/v1/search", {"item": ["table/figs0.png", "table/figs1.png"], "group": "label"})
    labels = [hit["item"]["label"] for hit in grouped.json["hits"]]
    assert sorted(labels) == sorted(CLASSES)
    assert labels[0] == "figs"
    ids = [hit["item"]["id"] for hit in grouped.json["hits"]]
    assert not {"table/figs0.png", "table/figs1.png"} & set(ids)
    away = server.search(("item", "table/figs0.png"), ("not_item", "table/apple0.png"), ("not_image", encoded("bread")))
    assert away.json["label"] == "figs"


def test_an_index_of_things_answers_with_things(shop):
    index = Index.open(shop)
    index.have_things("label")
    index.store.documents.write("quality", json.dumps(Quality(pooled=2).as_json()))
    with Inside(shop, log=False) as inside:
        assert inside("GET", "/v1/index").json["thing"] == "label"
        asked = [("image", encoded("figs", 77)), ("image", encoded("figs", 78))]
        found = inside.form("/v1/search", *asked, ("k", "3")).json
        expected = index.search(encoded("figs", 77), 3, like=[encoded("figs", 78)])
        for hit, own in zip(found["hits"], expected.hits, strict=True):
            assert hit["thing"] == own.thing
            assert hit["similarity"] == pytest.approx(own.similarity, abs=1e-6)
            assert [photo["item"]["id"] for photo in hit["photos"]] == [photo.id for photo in own.photos]
            assert hit["item"] == hit["photos"][0]["item"]
        assert found["label"] == "figs"
        photos = inside.form("/v1/search", *asked, ("group", "id")).json["hits"]
        assert {(hit["thing"], len(hit["photos"])) for hit in photos} == {(None, 0)}
    index.close()


def test_a_box_is_searched_alone(server):
    whole = server.search(("image", encoded("figs")), ("k", "1")).json
    part = server.search(("image", encoded("figs")), ("box", "0,0,20,20"), ("k", "1")).json
    assert whole["query"] != part["query"]
    assert whole["hits"][0]["similarity"] != part["hits"][0]["similarity"]
    assert "outside" in server.search(("image", encoded("figs")), ("box", "400,0,20,20")).message


def test_the_index_describes_itself(server):
    content = server("GET", "/v1/index").json
    assert (content["name"], content["items"], content["classes"]) == ("shop", 36, 6)
    assert content["labels"][0]["items"] == 6
    assert all(entry["example"]["label"] == entry["label"] for entry in content["labels"])
    columns = {column["name"]: column for column in content["columns"]}
    assert columns["brand"]["values"] == [{"value": "even", "items": 18}, {"value": "odd", "items": 18}]
    assert (columns["price"]["least"], columns["price"]["most"]) == (0, 50)
    assert len(content["newest"]) == 12
    assert content["sample"]["label"] in CLASSES
    assert content["calibration"] is None
    assert content["limits"]["k"] == 200


def test_items_come_and_go(shop):
    with Server(shop) as server:
        made = server.form(
            "/v1/items",
            ("image", encoded("figs", 50)),
            ("id", "new/one"),
            ("label", "figs"),
            ("columns", json.dumps({"brand": "x", "price": 3})),
        )
        assert made.status == 201
        assert made.json["thumbnail"] == "/v1/items/new%2Fone/thumbnail"
        assert server("GET", "/v1/items/new%2Fone").json["columns"] == {"brand": "x", "price": 3}
        assert server("GET", "/v1/items/new%2Fone/thumbnail").status == 200
        assert server.search(("image", encoded("figs", 50)), ("k", "1")).json["hits"][0]["item"]["id"] == "new/one"
        assert server("GET", "/v1/index").json["newest"][0]["id"] == "new/one"
        assert server("DELETE", "/v1/items/new%2Fone").status == 200
        assert server("DELETE", "/v1/items/new%2Fone").status == 404
        assert "new/one" not in str(server.search(("image", encoded("figs", 50))).json)


def test_feedback_by_form_names_its_query(shop):
    with Server(shop) as server:
        fields = (("item", "table/figs1.png"), ("right", "true"))
        digest = server.search(("image", encoded())).json["query"]
        made = server.form("/v1/feedback", ("query", digest), *fields)
        assert (made.status, made.json["query"]) == (201, digest)
        assert server.form("/v1/feedback", ("query", "x" * 65), *fields).status == 422
        assert server.form("/v1/feedback", *fields).status == 422
    (mark,) = Index.open(shop).store.marks.every()
    assert mark.query == digest


def test_feedback_is_kept_replaced_and_undone(shop):
    with Server(shop) as server:
        query = server.search(("image", encoded("figs"))).json["query"]
        fields = (("image", encoded("figs")), ("item", "table/figs1.png"))
        first = server.form("/v1/feedback", *fields, ("right", "true"))
        assert (first.status, first.json["query"]) == (201, query)
        second = server.form("/v1/feedback", *fields, ("right", "false"), ("by", "Ann")).json
        (known,) = server("GET", f"/v1/feedback?query={query}").json["marks"]
        assert (known["feedback"], known["right"], known["by"]) == (second["feedback"], False, "Ann")
        assert datetime.fromisoformat(known["at"]).tzinfo is not None
        third = server.json(
            "POST", "/v1/feedback", {"query_item": "table/figs0.png", "item": "table/figs1.png", "right": True}
        ).json
        assert server("GET", "/v1/index").json["feedback"] == 2
        latest = server("GET", "/v1/feedback").json["marks"]
        assert [mark["feedback"] for mark in latest] == [third["feedback"], second["feedback"]]
        assert server.form("/v1/feedback", *fields, ("right", "true"), ("by", "x" * 101)).status == 422
        assert server("DELETE", f"/v1/feedback/{first.json['feedback']}").status == 404  # it was replaced
        assert server("DELETE", f"/v1/feedback/{third['feedback']}").status == 200
    store = Index.open(shop).store
    (mark,) = store.marks.every()
    assert (mark.query, mark.item, mark.right, mark.number) == (query, "table/figs1.png", False, second["feedback"])
    assert store.marks.picture(query).startswith(b"\xff\xd8")
    assert "0 right, 1 wrong (Ann 1); the last by Ann, 20" in describe(Index.open(shop))["marks"]
    store.marks.remove(mark.number)
    assert store.marks.picture(query) is None  # no query is kept beyond its marks


def test_a_read_only_server_changes_nothing(shop):
    with Server(shop, ("--read-only",)) as server:
        for reply in (
            server.form("/v1/items", ("image", encoded())),
            server("DELETE", "/v1/items/table%2Ffigs0.png"),
            server.json(
                "POST", "/v1/feedback", {"query_item": "table/figs0.png", "item": "table/figs1.png", "right": True}
            ),
            server("DELETE", "/v1/feedback/1"),
        ):
            assert reply.status == 403
            assert "read-only" in reply.message
        assert server("GET", "/v1/index").json["read_only"] is True
    assert len(Index.open(shop)) == 36


def test_why_adds_up_to_the_similarity_of_the_hit(server):
    picture, box = ("image", encoded("figs")), ("box", "5,5,30,25")
    found = server.search(picture, box, ("k", "1")).json["hits"][0]
    why = server.form("/v1/why", picture, box, ("item", found["item"]["id"])).json
    item = {"query_item": "table/figs0.png", "item": "table/figs1.png"}
    hits = server.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 12}).json["hits"]
    other = next(hit for hit in hits if hit["item"]["id"] == "table/figs1.png")
    for expected, said in ((found, why), (other, server.json("POST", "/v1/why", item).json)):
        assert said["similarity"] == pytest.approx(expected["similarity"], abs=1e-5)
        for heat in (said["query"], said["hit"]):
            assert sum(map(sum, heat["values"])) == pytest.approx(said["similarity"], abs=1e-3)
    x, y, width, height = why["query"]["view"]
    assert min(x, y) >= 5 / 40
    assert max(x + width, y + height) <= 35 / 40


def test_why_refuses_what_it_cannot_explain(server):
    unknown = server.json("POST", "/v1/why", {"query_item": "table/figs0.png", "item": "nothing"})
    assert unknown.status == 404
    assert server.form("/v1/why", ("item", "table/figs0.png")).status == 422
    assert "as the field image" in server.form("/v1/why", ("item", "table/figs0.png")).message
    outside = server.form("/v1/why", ("image", encoded()), ("box", "400,0,20,20"), ("item", "table/figs0.png"))
    assert (outside.status, "outside" in outside.message) == (400, True)
    assert server.form("/v1/why", ("image", b"no picture"), ("item", "table/figs0.png")).status == 415
