"""An index in a few lines: what is in it, how old its calibration is, what is not complete."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np

from lookalike.search import Index
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.items import Identity, Item
from lookalike.search.quality import Quality
from lookalike.search.status import describe
from lookalike.search.stores.copying import FACT


def calibration(days, **more):
    date = (datetime.now(UTC) - timedelta(days=days, hours=1)).isoformat(timespec="seconds")
    facts = {"items": 3, "generation": 1, "date": date, "source": "index"} | more
    return Calibration(0.95, 0.9, 0.5, 0.97, (0.9, 1.0), 0.5, 6, 20, **facts)


def test_an_index_in_words(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        items = [Item("a", label="x", columns={"price": 1}), Item("b", label="x"), Item("c")]
        index.store.put(items, np.eye(3, dtype=np.float32))
        content = describe(index)
        assert (content["items"], content["classes"], content["unlabelled"], content["dimensions"]) == (3, 1, 1, 3)
        assert (content["geometry"], content["generation"], content["upcoming"]) == ("sphere", 1, None)
        assert content["columns"]["price"] == "number"
        assert content["model"] == "none: vectors made elsewhere"
        assert content["calibration"].startswith("none")
        assert content["switched on"] == "nothing"
        assert "index.sqlite" in content["on disk"]
        assert not {"copy", "stale"} & set(content)


def test_what_is_not_complete_is_said(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        index.store.documents.write(FACT, json.dumps({"after": "a"}))
        index.store.documents.write("quality", json.dumps(Quality(flip=True).as_json()))
        index.store.generations.begin(Identity("g", "sphere", 5))
        content = describe(index)
        assert content["copy"].startswith("incomplete")
        assert content["upcoming"].startswith("generation 2, incomplete: lookalike upgrade, or")
        assert content["switched on"] == "flip"


def test_the_age_of_a_calibration(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        for days, words in ((0, "today"), (1, "1 day old"), (2, "2 days old"), (1500, "1,500 days old")):
            found = calibration(days)
            index.store.documents.write("calibration", json.dumps(found.as_json()))
            assert describe(index)["calibration"] == f"95% precision, {found.date}, {words}"
        assert describe(index)["stale"] is None
        found = calibration(0, date=datetime.now(UTC).date().isoformat(), source="run", generation=2)
        index.store.documents.write("calibration", json.dumps(found.as_json()))
        content = describe(index)
        assert content["calibration"].endswith(" (by the run that made the model, among 3 test photos), today")
        assert "new generation" in content["stale"]
