"""The watch of a server: what it says of queries over HTTP, what it keeps in the index, known pictures."""

import json
import math
from contextlib import closing
from dataclasses import asdict, replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.adding.generation import renew
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.serve.watcher import Watcher
from lookalike.search.watching.reference import reference
from lookalike.search.watching.watch import Day
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
        engine.index.store.put(items, -vectors)  # the index is damaged, or another network answers
        app.loop.run_until_complete(engine.try_canaries())
        assert day.alarms["canaries"] == day.canaries_lost
        assert day.canaries_lost in (5, 10)  # once more where the server asked meanwhile, as it does by itself


def test_known_pictures_are_sought_by_the_scan(shop, monkeypatch):
    """The vectors are right, and the search finds something else."""
    with Inside(shop, log=False) as app:
        engine = app.door.app.state.engine
        far = engine.index.answers
        monkeypatch.setattr(engine.index, "answers", lambda questions: [_last(answer) for answer in far(questions)])
        app.loop.run_until_complete(engine.try_canaries())
        assert engine.watcher.watch.today.canaries_lost >= 5


def _last(answer):
    return replace(answer, hits=[replace(hit, similarity=hit.similarity - 0.01) for hit in answer.hits])


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


DAY = asdict(Day("2026-01-01"))
STRANGE_DAYS = [
    [1],
    [{"date": 3, "verdicts": []}],
    [DAY | {"date": "today"}],
    *([DAY | {"verdicts": {"sure": value}}] for value in (math.inf, 10**400, "3")),
    *([DAY | {"cloud": value}] for value in (math.inf, 10**400, "3")),
    *([DAY | {"watched": value}] for value in (math.inf, 10**400, "3", -1, 0.5, True)),
    [DAY | {"similarities": [0] * 11}],
    [DAY | {"alarms": {'a"} 1': 1}}],
]


@pytest.mark.parametrize("days", STRANGE_DAYS)
def test_sketches_of_a_stranger_are_passed_over(shop, days):
    with closing(Index.open(shop)) as index:
        for name in ("watch 0", "watch 1"):
            index.store.documents.write(name, json.dumps(days))
        watcher = Watcher(index, 0, 2, keeps=True)
        assert watcher.form().days == []
        assert "alarm_evidence" in watcher.text()


def _without(content, name):
    return {key: value for key, value in content.items() if key != name}


STRANGE_REFERENCES = {
    "nothing": lambda _: {},
    "no cloud": lambda kept: kept | {"blocks": _without(kept["blocks"], "cloud")},
    "another score": lambda kept: kept | {"blocks": kept["blocks"] | {"marks": [0.5]}},
    "no block": lambda kept: kept | {"blocks": kept["blocks"] | {"cloud": []}},
    "very many": lambda kept: kept | {"blocks": kept["blocks"] | {"cloud": [0.5] * 2_001}},
    "falling": lambda kept: kept | {"blocks": kept["blocks"] | {"cloud": kept["blocks"]["cloud"][::-1]}},
    "no number": lambda kept: kept | {"blocks": kept["blocks"] | {"cloud": [math.nan]}},
    "a text": lambda kept: kept | {"blocks": kept["blocks"] | {"cloud": ["1"]}},
    "ten edges": lambda kept: kept | {"edges": [*kept["edges"], 3.0]},
    "falling edges": lambda kept: kept | {"edges": [*kept["edges"][1:], 1.0]},
    "another centre": lambda kept: kept | {"centre": kept["centre"][:-1]},
    "centre without end": lambda kept: kept | {"centre": [math.inf, *kept["centre"][1:]]},
    "huge": lambda kept: kept | {"centre": [10**400, *kept["centre"][1:]]},
    "ragged axes": lambda kept: kept | {"axes": [kept["axes"][0], kept["axes"][1][1:]]},
    "zero axis": lambda kept: kept | {"axes": [[0.0] * len(kept["centre"])]},
    "no axes": lambda kept: kept | {"axes": []},
    "nothing left": lambda kept: kept | {"rest": 0.0},
    "of other vectors": lambda kept: kept | {"centre": [0.0, 0.0], "axes": [[0.0, 1.0]]},
}


@pytest.mark.parametrize("how", STRANGE_REFERENCES)
def test_a_reference_of_a_stranger_is_passed_over(watched, how):
    with closing(Index.open(watched)) as index:
        kept = json.loads(index.store.documents.read("reference"))
        watcher = Watcher(index, 0, 1, keeps=True)
        assert watcher.form().reference
        index.store.documents.write("reference", json.dumps(STRANGE_REFERENCES[how](kept)))
        vector, name = index.store.vectors(["table/figs0.png"]), "table/figs0.png"
        for each in (watcher, Watcher(index, 0, 1, keeps=True)):
            each.refresh()
            each.answered("query", vector, index.search(name, 3))
            assert not each.form().reference
            assert each.form().evidence == ({"marks": 0.0} if how == "of other vectors" else {})
        if how != "of other vectors":
            with pytest.raises(UserError, match="the reference of this index is damaged, or was tampered with"):
                _ = index.reference


def test_a_server_of_a_strangers_index_answers(watched):
    with closing(Index.open(watched)) as index:
        index.store.documents.write("watch 0", json.dumps(STRANGE_DAYS[2]))
        index.store.documents.write("reference", '{"blocks": {"similarity": [1.0]}}')
    with Inside(watched, log=False) as app:
        assert search(app, 1)["hits"]
        assert not app("GET", "/v1/watch").json["reference"]


def test_the_page_of_the_watch(inside):
    page = inside("GET", "/watch")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in ("watch.js", "watch.css"):
        assert inside("GET", f"/static/{name}").status == 200


def test_similarities_fall_into_the_tenths_of_the_calibration(watched):
    with closing(Index.open(watched)) as index:
        assert np.allclose(index.reference.edges, 2.0)
