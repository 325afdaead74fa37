"""Counts are those of the store as it is, and are made once as long as it does not change."""

import numpy as np
import pytest

from lookalike.search.filters import parse
from lookalike.search.item_counts import ItemCounts
from lookalike.search.items import Identity, Item
from lookalike.search.stores import places
from tests.search.around import around

CONDITIONS = [parse(None), parse({"label": "a"}), parse({"price": 1}), parse({"price": {">=": 1}})]


def put(store, *labels):
    items = [Item(f"{label}{number}", label=label, columns={"price": number}) for number, label in enumerate(labels)]
    store.put(items, np.eye(len(labels), 4, dtype=np.float32))


@pytest.fixture(params=["folder", "server"])
def place(request, tmp_path):
    return tmp_path / "index" if request.param == "folder" else request.getfixturevalue("new_address")()


def test_counts_follow_every_change_and_are_made_once(place):
    store = places.created(place, Identity(None, "none", 4))
    other, asked = places.opened(place), []
    counts = ItemCounts(around(store, count=lambda where: asked.append(where) or store.count(where)))
    put(store, "a", "a", "b")
    for _ in range(3):
        assert [counts.now()(where) for where in CONDITIONS] == [3, 2, 1, 2]
    assert len(asked) == len(CONDITIONS)
    put(other, "c")
    assert [counts.now()(where) for where in CONDITIONS] == [4, 2, 1, 2]
    other.remove(["a0"])
    assert [counts.now()(where) for where in CONDITIONS] == [3, 1, 1, 2]
    assert len(asked) == 3 * len(CONDITIONS)
    other.close()
    store.close()
