"""The watch of a server: what it says of queries over HTTP, what it keeps in the index, known pictures."""

import json
from contextlib import closing

import numpy as np
import pytest

from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.adding.generation import renew
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.watching.reference import reference
from tests.search.serve.client import multipart
from tests.search.serve.conftest import encoded
from tests.search.serve.inside import Inside


@pytest.fixture
def watched(shop):
    """A shop with a reference in which every query is unusual."""
    with closing(Index.open(shop)) as index:
        _, vectors = next(index.store.scan())
        labels = [f"class {row}" for row in range(30)]
        found = reference(vectors, vectors[:30], [2.0] * 30, labels)
        index.store.documents.write("reference", json.dumps(found.as_json()))
        calibration = Calibration(0.95, 0.0, -1.0, 0.97, (0.9, 1.0), 0.5, 6, 20, 36, 1, "2026-01-01", "index")
        index.store.documents.write("calibration", json.dumps(calibration.as_json()))
    return shop


def search(app, number, *more):
    body, kind = multipart([("image", encoded("figs", number)), *more])
    reply = app("POST", "/v1/search", body, Content_Type=kind)
    assert reply.status == 200
    return reply.json


def test_queries_are_counted_compared_and_kept(watched, capsys):
    with Inside(watched, log=False) as app:
        asked = [search(app, number) for number in range(3)]
        answer = asked[-1]
        search(app, 4, ("where", "price<20"))  # not such a query as the index was calibrated with
        part = search(app, 4, ("box", "0,0,30,30"))  # nor this one: it says nothing about ordinary queries
        assert (part["verdict"], part["chance"]) == (None, None)
        assert part["meaning"] == "Chances are measured for whole photos; this search is by a part of one."
        mark = {"item": answer["hits"][0]["item"]["id"], "query": answer["query"], "right": False}
        assert app.json("POST", "/v1/feedback", mark).status == 201
        (day,) = app("GET", "/v1/watch").json["days"]
        assert (day["verdicts"]["sure"], day["watched"], day["sure_wrong"]) == (4, 3, 1)
        assert day["similarities"] == [3, *[0] * 9]
        assert app("GET", "/v1/watch").json["reference"]
        text = app("GET", "/v1/metrics").body.decode()
        assert 'lookalike_answers_today{verdict="sure"} 4' in text
        assert 'lookalike_marks_of_sure_today{right="no"} 1' in text
        alarms = {}
        while not alarms and len(asked) < 400:
            asked += [search(app, 5) for _ in range(10)]
            alarms = app("GET", "/v1/watch").json["days"][0]["alarms"]
        assert "similarity" in alarms
    assert '"alarm": "similarity"' in capsys.readouterr().err
    with Inside(watched, log=False) as app:  # another process goes on with the day
        (day,) = app("GET", "/v1/watch").json["days"]
        assert day["watched"] > 100
        assert day["alarms"]["similarity"] == 1


def test_known_pictures_are_asked_for(shop):
    with Inside(shop, log=False) as app:
        engine = app.door.app.state.engine
        day = engine.watcher.watch.today
        app.loop.run_until_complete(engine.try_canaries())
        assert day.canaries % 5 == day.canaries_lost == 0 < day.canaries
        items, vectors = next(engine.index.store.scan())
        engine.index.store.put(items[:2], -vectors[:2])  # the index is damaged, or another network answers
        app.loop.run_until_complete(engine.try_canaries())
        assert day.alarms["canaries"] == day.canaries_lost
        assert day.canaries_lost in (2, 4)  # once more where the server asked meanwhile, as it does by itself


def test_queries_of_another_model_are_not_compared_with_those_of_the_last(watched):
    with Inside(watched, log=False) as app:
        assert search(app, 1)["verdict"] == "sure"
        with closing(Index.open(watched)) as index:
            renew(index, Model.create(Architecture("conv4", {"channels": 3}, dim=24), seed=5))
            assert (index.calibration, index.reference) == (None, None)
        assert search(app, 2)["verdict"] is None
        (day,) = app("GET", "/v1/watch").json["days"]
        assert (day["verdicts"]["uncalibrated"], day["watched"]) == (1, 1)


def test_a_read_only_server_keeps_nothing(watched):
    with Inside(watched, read_only=True, log=False) as app:
        search(app, 1)
        assert app("GET", "/v1/watch").json["days"][0]["watched"] == 1
    with closing(Index.open(watched)) as index:
        assert index.store.documents.read("watch 0") is None


def test_sketches_of_a_stranger_are_passed_over(shop):
    with closing(Index.open(shop)) as index:
        for name, text in (("watch 0", "[1]"), ("watch 1", '[{"date": 3, "verdicts": []}]'), ("reference", "{}")):
            index.store.documents.write(name, text)
    with Inside(shop, workers=2, log=False) as app:
        assert app("GET", "/v1/watch").json == {
            "reference": False, "evidence": {}, "days": [], "promise": app("GET", "/v1/watch").json["promise"],
        }  # fmt: skip
        assert search(app, 1)["hits"]


def test_the_page_of_the_watch(inside):
    page = inside("GET", "/watch")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in ("watch.js", "watch.css"):
        assert inside("GET", f"/static/{name}").status == 200


def test_similarities_fall_into_the_tenths_of_the_calibration(watched):
    with closing(Index.open(watched)) as index:
        assert np.allclose(index.reference.edges, 2.0)
