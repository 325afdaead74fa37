"""An index copied from a folder to a server, to two shards, and back is the same index."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.items import Identity, Item, Mark, Stamp
from lookalike.search.stores import places
from lookalike.search.stores.copying import FACT, copy, digest
from tests.search.around import around
from tests.search.brute import on, some_items

DIM = 8


def source_of(tmp_path, number=300):
    store = places.created(tmp_path / "source", Identity("f", "sphere", DIM, generation=3))
    draw = np.random.default_rng(2)
    odd = Item("odd", "/caf\udce9", None, {"n": 2**60, "f": 0.1, "t": "é", "large": 1e23})
    items = [*some_items(number, draw=draw), odd, Item("unfiled")]
    store.put(items, on("sphere", draw.standard_normal((number + 2, DIM))), {"unfiled": b"picture"})
    store.documents.keep_model("f", {"model.json": b"{}"})
    store.documents.write("calibration", json.dumps({"sure": 0.9}))
    store.marks.add(Mark("q", None, items[0].id, True), b"asked")
    return store


def test_there_and_back_again(tmp_path, new_address, new_shards):
    store = source_of(tmp_path)
    first, query = store, on("sphere", np.random.default_rng(9).standard_normal((3, DIM)))
    answers = first.search(query, 9)
    for place in (new_address(), new_shards(), tmp_path / "back"):
        target = places.created(place, store.identity)
        copied = copy(store, target)
        assert (copied.items, copied.digest, copied.resumed) == (302, digest(first), False)
        assert target.documents.pictures(["unfiled"]).get("unfiled") == b"picture"
        assert target.search(query, 9)[0].hits == answers[0].hits
        assert target.documents.model("f") == {"model.json": b"{}"}
        assert target.documents.read("calibration") == first.documents.read("calibration")
        assert [(mark.query, mark.item, mark.right) for mark in target.marks.every()] == [
            ("q", first.marks.every()[0].item, True)
        ]
        assert target.marks.picture("q") == b"asked"
        assert target.documents.read(FACT) is None
        assert target.identity == first.identity
        store.close()
        store = places.opened(place)
    target.close()
    store.close()


def stop(*_):
    raise KeyboardInterrupt


def meanwhile(store, act):
    """A store that calls `act` when its marks are read: when a copy has put all items."""
    return around(store, marks=around(store.marks, every=lambda: act() or store.marks.every()))


def test_a_stopped_copy_goes_on(tmp_path, new_address):
    whole, place = source_of(tmp_path), new_address()

    def blocks(after=None):
        items = [item for item in whole.listed() if item.id > (after or "")]
        for start in range(0, len(items), 50):
            part = items[start : start + 50]
            yield part, whole.vectors([item.id for item in part])

    store = around(whole, scan=blocks)
    target = places.created(place, store.identity)
    put, calls = target.put, []

    def stopping(*arguments, **named):
        calls.append(len(arguments[0]))
        if len(calls) == 4:
            raise KeyboardInterrupt
        put(*arguments, **named)

    with pytest.raises(KeyboardInterrupt):
        copy(store, around(target, put=stopping))
    assert target.count() == 150
    target.close()
    again = places.opened(place)
    assert json.loads(again.documents.read(FACT))["after"] == list(store.listed())[149].id
    told = []
    copied = copy(store, again, lambda name: (lambda *step: told.append(step)) if name == "copying" else None)
    assert copied.resumed
    assert copied.items == 302
    assert told == [(200, 302), (250, 302), (300, 302), (302, 302)]
    for one in (store, again):
        one.close()


def test_a_second_copy_follows_the_source(tmp_path, new_address):
    store, target = source_of(tmp_path), places.created(new_address(), Identity("f", "sphere", DIM, generation=3))
    copy(store, target)
    gone, new = next(iter(store.listed())).id, Item("new", columns={"later": 1})
    store.remove([gone])
    store.put([new], np.eye(1, DIM, dtype=np.float32))
    target.put([Item("own")], np.eye(1, DIM, dtype=np.float32))
    target.marks.add(Mark("q", None, "own", False))
    store.marks.add(Mark("later", None, "new", False))
    copy(store, target)
    marks = [[(mark.query, mark.item, mark.right) for mark in one.marks.every()] for one in (store, target)]
    assert len(marks[0]) == 2
    assert sorted(marks[1]) == sorted(marks[0])
    assert not target.items([gone, "own"])
    assert digest(store) == digest(target)
    for one in (store, target):
        one.close()


def test_a_difference_is_noticed(tmp_path, new_address):
    store, target = source_of(tmp_path), places.created(new_address(), Identity("f", "sphere", DIM))
    with pytest.raises(UserError, match="the copy differs from its source"):
        copy(meanwhile(store, lambda: target.put([Item("odd")], np.eye(1, DIM, dtype=np.float32))), target)
    copy(store, target)
    other = places.created(new_address(), Identity("g", "sphere", DIM))
    with pytest.raises(UserError, match="vectors of another model"):
        copy(store, other)
    for one in (store, target, other):
        one.close()


def test_items_too_many_are_noticed(tmp_path):
    store = source_of(tmp_path, number=3)
    target = places.created(tmp_path / "target", store.identity)
    with pytest.raises(UserError, match="the copy has 6 items, its source 5"):
        copy(meanwhile(store, lambda: target.put([Item("own")], np.eye(1, DIM, dtype=np.float32))), target)
    for one in (store, target):
        one.close()


def test_a_copy_catches_up_with_what_came_before_the_place_where_it_stopped(tmp_path):
    store = source_of(tmp_path, number=3)
    target = places.created(tmp_path / "target", store.identity)
    with pytest.raises(KeyboardInterrupt):
        copy(meanwhile(store, stop), target)
    store.put([Item("early")], np.eye(1, DIM, dtype=np.float32))
    with pytest.raises(UserError, match=r"the copy has 5 items, its source 6.*the same command brings it up to date"):
        copy(store, target)
    assert copy(store, target).items == 6
    for one in (store, target):
        one.close()


def test_items_of_an_index_that_is_no_copy_are_not_replaced(tmp_path):
    store = source_of(tmp_path, number=3)
    target = places.created(tmp_path / "target", store.identity)
    target.put([Item("own")], np.eye(1, DIM, dtype=np.float32))
    with pytest.raises(UserError, match="the target is not a copy: 1 own items would be lost; copy to a new place"):
        copy(store, target)
    assert [item.id for item in target.listed()] == ["own"]
    copy(store, target, replace_items=True)
    target.put([Item("own")], np.eye(1, DIM, dtype=np.float32))
    assert copy(store, target).items == 5  # it is a copy now
    with pytest.raises(UserError, match="the target is not a copy: 5 own items"):
        copy(target, store)
    for one in (store, target):
        one.close()


def test_a_digest_tells_everything_apart_but_the_kind_of_a_number(tmp_path):
    whole = Item("a", "/a", "x", {"n": 1, "t": "1"}, "/root", Stamp(1, 2, "d"), added=5.0)
    variants = [
        (whole, 0, None),
        (replace(whole, id="b"), 0, None),
        (replace(whole, path="/b"), 0, None),
        (replace(whole, label="y"), 0, None),
        (replace(whole, columns={"n": 2, "t": "1"}), 0, None),
        (replace(whole, columns={"n": 1, "t": "2"}), 0, None),
        (replace(whole, root="/other"), 0, None),
        (replace(whole, stamp=Stamp(1, 2, "e")), 0, None),
        (replace(whole, added=6.0), 0, None),
        (whole, 1, None),
        (replace(whole, path=None), 0, b"one"),
        (replace(whole, path=None), 0, b"two"),
    ]
    found = [digest_of(tmp_path / str(number), *variant) for number, variant in enumerate(variants)]
    assert len(set(found)) == len(variants)
    assert digest_of(tmp_path / "again", replace(whole, columns={"n": 1.0, "t": "1"}), 0, None) == found[0]


def digest_of(place, item, axis, picture):
    store = places.created(place, Identity(None, "sphere", DIM))
    store.put([item], np.eye(DIM, dtype=np.float32)[[axis]], {} if picture is None else {item.id: picture})
    result = digest(store)
    store.close()
    return result


def test_the_backup_of_a_server_is_a_folder(tmp_path, new_address):
    index = Index.create(new_address(), dim=DIM)
    index.store.put([Item("a", label="x")], np.eye(1, DIM, dtype=np.float32))
    (tmp_path / "kept").mkdir()
    index.store.backup(tmp_path / "kept" / "index.sqlite")
    kept = Index.open(tmp_path / "kept")
    assert len(kept) == 1
    assert (
        kept.search(np.eye(1, DIM, dtype=np.float32)[0]).hits == index.search(np.eye(1, DIM, dtype=np.float32)[0]).hits
    )
    for one in (kept, index):
        one.close()
