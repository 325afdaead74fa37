"""What every kind of store must do: one suite for all of them."""

import json
import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import filters
from lookalike.search.items import Identity, Item, Mark, Near, Nearest, Stamp
from lookalike.search.stores import BadValueError, Column, GenerationError, Store, places
from lookalike.search.stores.sharded.store import ShardedStore
from lookalike.search.things import ThingSearch
from tests.search.brute import Brute, on, same, same_things, some_items

DIM = 8


@pytest.fixture(params=["folder", "postgres", "shards"])
def place(request, tmp_path):
    kind = {"postgres": "new_address", "shards": "new_shards"}.get(request.param)
    return tmp_path / "index" if kind is None else request.getfixturevalue(kind)()


@pytest.fixture
def store(place):
    made = places.created(place, Identity("f", "none", DIM))
    yield made
    made.close()


def filled(store, number=60):
    draw = np.random.default_rng(1)
    items, vectors = some_items(number, draw=draw), on("none", draw.standard_normal((number, DIM)))
    store.put(items, vectors)
    return items, vectors


def test_it_is_a_store(store, place):
    assert isinstance(store, Store)
    assert store.identity == Identity("f", "none", DIM, 1)
    assert places.exists(place)
    with pytest.raises(UserError, match=r"exists|already"):
        places.created(place, Identity("f", "none", DIM))


def test_items_come_back_as_they_went_in(store, place):
    whole = Item(
        "a/é 日本.png",
        "/pics/a'b\".png",
        "cup",
        {"brand": "x", "price": 3, "weight": 0.1, "new": True, "none": None},
        "/pics",
        Stamp(2**40, 2**60, "d1"),
    )
    bare, undecodable = Item("b"), Item("c", "/pics/caf\udce9.png")
    vectors = np.array([[1e-30, -0.0, 3.4e14, np.pi, 1 / 3, -1e-38, 2**-126, 7]] * 3, np.float32)
    store.put([whole, bare, undecodable], vectors)
    store.close()
    again = places.opened(place)
    assert again.items(["b", "a/é 日本.png", "c"]) == [
        bare,
        replace(whole, columns={"brand": "x", "price": 3, "weight": 0.1, "new": "true"}),
        undecodable,
    ]
    assert again.vectors(["c"]).tobytes() == vectors[:1].tobytes()
    assert again.items(["b"])[0].added > 1e9
    assert isinstance(again.items([whole.id])[0].columns["price"], int)
    assert again.at_paths(["/pics/caf\udce9.png", "/pics/a'b\".png", "nowhere"]) == {
        item.path: item for item in again.items([whole.id, "c"])
    }
    assert [item.id for item in again.items(["c", "x", "b", "c"])] == ["c", "b"]
    with pytest.raises(UserError, match="unknown item 'zebra'"):
        again.vectors(["b", "zebra"])
    again.close()


def test_time_of_addition_is_kept_where_it_is_known(store):
    store.put([Item("a", added=5.5), Item("b")], np.zeros((2, DIM), np.float32))
    assert store.items(["a"])[0].added == 5.5
    assert [item.id for item in store.listed(filters.parse("added<6"))] == ["a"]


def test_what_cannot_be_kept_is_refused_whole(store):
    for items, vectors, message in (
        ([Item("a"), Item("a")], np.zeros((2, DIM)), "the same id"),
        ([Item("a")], np.full((1, DIM), np.nan), "NaN or infinity"),
        ([Item("a")], np.full((1, DIM), -1e16), "a vector is longer than"),
        ([Item("a")], np.zeros((2, DIM)), "2 vectors (of 8 dimensions, expected 1 of 8|for 1 items)"),
        ([Item("a")], np.zeros((1, 4)), "1 vectors of 4 dimensions, expected 1 of 8"),
        ([Item("a", columns={"id": 1})], np.zeros((1, DIM)), "a column 'id' of their own"),
        ([Item("a", columns={"n": -(2**63) - 1})], np.zeros((1, DIM)), "whole ones of at most 64 bits"),
        ([Item("a", columns={f"n{n}": n for n in range(201)})], np.zeros((1, DIM)), "at most 200 columns"),
    ):
        with pytest.raises(UserError, match=message):
            store.put(items, vectors.astype(np.float32))
    assert store.count() == 0
    assert set(store.columns()) == {"id", "path", "label", "root", "added"}


@pytest.mark.parametrize("odd", ["caf\udce9", "a\0b"])
def test_what_is_not_text_is_one_line(store, odd):
    for item in (Item(odd), Item("a", label=odd), Item("a", columns={"c": odd}), Item("a", columns={odd: 1})):
        with pytest.raises(UserError, match="has a name or value that is not text: no NUL, and only Unicode"):
            store.put([item], np.eye(1, DIM, dtype=np.float32))
    assert store.count() == 0
    with suppress(UserError):  # nothing has that name, or it is no name at all
        assert store.items([odd]) == []
    with suppress(UserError):
        assert store.search(np.eye(1, DIM, dtype=np.float32), 1, filters.parse({"label": odd}))[0].hits == []


def test_large_numbers_are_what_they_were(store):
    columns = {"year": 1e23, "time": 1.7000000000000001e18, "count": 2**60, "share": 0.1, "most": 1e308}
    store.put([Item("a", columns=columns)], np.eye(1, DIM, dtype=np.float32))
    assert store.items(["a"])[0].columns == columns
    for name, value in columns.items():
        assert store.count(filters.parse({name: value})) == 1


def test_columns_are_known_before_any_item_has_them(store):
    store.know({"price": "number", "brand": "text"})
    assert {name: store.columns()[name] for name in ("price", "brand")} == {"price": "number", "brand": "text"}
    assert store.search(np.eye(1, DIM, dtype=np.float32), 3, filters.parse("price<3"))[0].hits == []


def test_columns_and_conditions(store):
    rows = [{"n": 1, "t": "a"}, {"n": 2.5, "t": "b"}, {"n": 3, "t": None}, {"n": None, "t": "b"}, {"n": -4, "t": "A"}]
    items = [Item(f"i{row}", label="xy"[row % 2], columns=values) for row, values in enumerate(rows)]
    store.put(items, np.zeros((5, DIM), np.float32))
    for where, ids in {
        "n<2.5": "i0 i4",
        "n<=2.5": "i0 i1 i4",
        "n>0": "i0 i1 i2",
        "n=3": "i2",
        "n=3.0": "i2",
        "n!=3": "i0 i1 i3 i4",
        "n=null": "i3",
        "n!=null": "i0 i1 i2 i4",
        't=["a", null]': "i0 i2",
        "t<b": "i0 i4",
        "t>=a": "i0 i1 i3",
        "label=x": "i0 i2 i4",
        "id>i3": "i4",
        "t!=b": "i0 i2 i4",
        "n=true": "i0",
        "path=null": "i0 i1 i2 i3 i4",
    }.items():
        conditions = filters.parse(where)
        assert [item.id for item in store.listed(conditions)] == ids.split(), where
        assert store.count(conditions) == len(ids.split())
    summary = store.summary(["t", "n"], 2)
    assert summary.columns == {"t": Column("text", 3, [("b", 2), ("A", 1)]), "n": Column("number", least=-4, most=3)}
    assert store.summary(["label"]).columns == {"label": Column("text", 2)}
    assert {value: item.id for value, item in store.first_of("t", ["b", "A", "none"]).items()} == {"b": "i1", "A": "i4"}
    for ask in (lambda: store.summary(["colour"]), lambda: store.first_of("colour", [1])):
        with pytest.raises(UserError, match="unknown column 'colour'"):
            ask()


def test_a_sample_comes_from_everywhere(store):
    assert store.sample(5) == []
    store.put([Item(f"i{row:02d}") for row in range(60)], np.zeros((60, DIM), np.float32))
    store.remove([f"i{row:02d}" for row in range(0, 60, 3)])
    samples = [[item.id for item in store.sample(8)] for _ in range(40)]
    assert all(len(set(names)) == len(names) <= 8 for names in samples)
    assert len({name for names in samples for name in names}) > 30  # of 40


def test_a_column_keeps_its_kind(store):
    one = np.zeros((1, DIM), np.float32)
    store.put([Item("a", columns={"price": 5}), Item("b", columns={"price": 40.5})], np.zeros((2, DIM), np.float32))
    with pytest.raises(UserError, match="'price' of the item 'c' is 'n/a', and the column holds numbers"):
        store.put(
            [Item("d", columns={"price": 1, "new": 1}), Item("c", columns={"price": "n/a"})], np.repeat(one, 2, 0)
        )
    assert (store.columns()["price"], store.count(), "new" in store.columns()) == ("number", 2, False)
    store.put([Item("c", columns={"price": "12"})], one)  # a number, if written as a text
    assert [item.id for item in store.listed(filters.parse("price<40"))] == ["a", "c"]
    assert store.items(["c"])[0].columns == {"price": 12}
    store.know({"price": "text"})
    assert store.columns()["price"] == "number"


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([True, 1], ["true", "1"]),
        ([1, True], [1]),
        (["1", True], ["1", "true"]),
        ([True, "1"], ["true", "1"]),
        ([False, True], ["false", "true"]),
        ([0.5, False], [0.5]),
    ],
)
def test_true_is_never_a_number(store, values, kept):
    """Whatever comes first, and in one batch as one by one."""
    items = [Item(f"{place}", columns={"new": value}) for place, value in enumerate(values)]
    batch = [replace(item, id=f"batch {item.id}", columns={"both": item.columns["new"]}) for item in items]
    store.put(batch, np.zeros((len(items), DIM), np.float32))
    assert [item.columns["both"] for item in store.listed()] == [
        value if isinstance(value, str) else json.dumps(value) for value in values
    ]
    for item in items[: len(kept)]:
        store.put([item], np.zeros((1, DIM), np.float32))
    for item in items[len(kept) :]:
        with pytest.raises(
            BadValueError, match=f"'new' of the item '1' is {json.dumps(item.columns['new'])}, and the col"
        ):
            store.put([item], np.zeros((1, DIM), np.float32))
    assert [store.items([item.id])[0].columns["new"] for item in items[: len(kept)]] == kept


def test_texts_are_not_compared_as_numbers(store):
    items = [Item("a", columns={"size": "n/a"}), Item("b", columns={"size": 5}), Item("c", columns={"size": True})]
    store.put(items, np.zeros((3, DIM), np.float32))
    store.put([Item("d", columns={"size": 7.5}), Item("e", columns={"size": False})], np.zeros((2, DIM), np.float32))
    assert [item.columns["size"] for item in store.items(list("abcde"))] == ["n/a", "5", "true", "7.5", "false"]
    assert [item.id for item in store.listed(filters.parse("size=5"))] == ["b"]
    assert [item.id for item in store.listed(filters.parse("size=true"))] == ["c"]
    for where in ("size<40", {"size": {">=": 40}}, "size>true"):
        with pytest.raises(UserError, match="'size' holds texts"):
            store.count(filters.parse(where))
    assert store.count(filters.parse('size>"5"')) == 4


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 2**63])
def test_values_that_no_column_holds_are_refused(store, value):
    with pytest.raises(UserError, match="'v' of the item 'a' is"):
        store.put([Item("b", columns={"v": 1}), Item("a", columns={"v": value})], np.zeros((2, DIM), np.float32))
    assert (store.count(), "v" in store.columns()) == (0, False)


@pytest.mark.parametrize("item", [Item(""), Item("a", columns={"": 1})])
def test_items_without_names_are_refused(store, item):
    with pytest.raises(UserError, match=r"needs an id|needs a name"):
        store.put([item], np.zeros((1, DIM), np.float32))
    assert store.count() == 0


def test_values_of_numpy_that_are_numbers_and_texts_stay_what_they_are(store):
    store.put([Item("a", columns={"v": np.float64(0.5), "t": np.str_("x")})], np.zeros((1, DIM), np.float32))
    assert store.items(["a"])[0].columns == {"v": 0.5, "t": "x"}


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_a_whole_number(store, k):
    query = np.ones((1, DIM), np.float32)
    store.put([Item("a")], query)
    with pytest.raises(UserError, match="k must be a"):
        store.search(query, k)


def test_long_texts_are_only_texts(store):
    draw = np.random.default_rng(0)
    essay = "".join(map(chr, draw.integers(33, 0x2000, 20_000)))  # not to be compressed
    store.put([Item("a", columns={"text": "short"})], np.zeros((1, DIM), np.float32))
    store.put([Item("b", columns={"text": essay})], np.zeros((1, DIM), np.float32))
    assert store.items(["b"])[0].columns["text"] == essay
    assert [item.id for item in store.listed(filters.parse({"text": essay}))] == ["b"]
    new = store.generations.begin(Identity("g", "none", DIM))
    store.generations.fill(new, store.items(["a", "b"]), np.zeros((2, DIM), np.float32))
    assert store.generations.switch(new.generation) == 0


def test_order_blocks_and_the_newest(store):
    items, vectors = filled(store)
    ids = sorted(item.id for item in items)
    assert [item.id for item in store.listed()] == ids
    assert [item.id for item in store.listed(after=ids[9])] == ids[10:]
    scanned = list(store.scan(after=ids[4], where=filters.parse("brand=x")))
    known = dict(zip((item.id for item in items), vectors, strict=True))
    for block, rows in scanned:
        assert all((known[item.id] == row).all() for item, row in zip(block, rows, strict=True))
    assert [item.id for block, _ in scanned for item in block] == [
        item.id for item in sorted(items, key=lambda item: item.id)[5:] if item.columns["brand"] == "x"
    ]
    if not isinstance(store, ShardedStore):  # which of one batch is the newest, shards do not say
        assert [item.id for item in store.summary([], newest=3).newest] == [item.id for item in items[:-4:-1]]
    store.put([items[7]], vectors[7:8])
    assert store.summary([], newest=1).newest == [items[7]]


def test_the_version_tells_every_change(store):
    seen = [store.version()]
    for change in (
        lambda: filled(store, 5),
        lambda: store.remove(["item-000001"]),
        lambda: store.documents.write("note", "x"),
        lambda: store.marks.add(Mark("q", None, "item-000002", True)),
    ):
        change()
        assert store.version() == store.version()
        seen.append(store.version())
    assert len(set(seen)) == len(seen)


def test_pictures_live_as_long_as_their_items(store):
    store.put([Item("a"), Item("b")], np.zeros((2, DIM), np.float32), {"a": b"\x00\xff"})
    assert store.documents.pictures(["b", "a", "nothing"]) == {"a": b"\x00\xff"}
    store.put([Item("a")], np.zeros((1, DIM), np.float32))
    assert store.documents.pictures(["a"]) == {}
    store.put([Item("a")], np.zeros((1, DIM), np.float32), {"a": b"\x00"})
    assert store.remove(["a", "nothing"]) == 1
    assert store.documents.pictures(["a"]) == {}


def test_marks(store):
    first = store.marks.add(Mark("q1", None, "a", True), b"picture")
    second = store.marks.add(Mark("q1", None, "b", False))
    again = store.marks.add(Mark("q1", None, "a", False))
    assert store.marks.every() == [Mark("q1", None, "b", False, second), Mark("q1", None, "a", False, again)]
    assert store.marks.count() == 2
    signed = store.marks.add(Mark("q2", None, "a", True, by="Ann", at=5.0))
    (mine,) = store.marks.of("q2")
    assert (mine.by, mine.at) == ("Ann", 5.0)
    assert store.marks.of("q1")[0].at > mine.at
    assert store.marks.remove(signed)
    assert not store.marks.remove(first)
    assert store.marks.remove(second)
    assert store.marks.picture("q1") == b"picture"
    assert store.marks.remove(again)
    assert store.marks.picture("q1") is None


def test_facts_and_models_are_kept(store, place):
    store.documents.write("calibration", json.dumps({"sure": 0.9}))
    store.documents.keep_model("f", {"model.json": b"{}"})
    store.documents.keep_model("f", {"model.json": b"{ }", "weights": b"\x00" * 100_000})
    again = places.opened(place)
    assert json.loads(again.documents.read("calibration")) == {"sure": 0.9}
    assert again.documents.model("f") == {"model.json": b"{ }", "weights": b"\x00" * 100_000}
    again.documents.write("calibration", None)
    assert store.documents.read("calibration") is None
    again.close()


def test_generations_do_not_mix(store):
    _, vectors = filled(store)
    new = store.generations.begin(Identity("g", "none", 4))
    assert store.generations.upcoming() == new == Identity("g", "none", 4, 2)
    assert store.identity.fingerprint == "f"
    draw = np.random.default_rng(2)
    while items := store.generations.unfilled(new.generation, 25):
        store.generations.fill(new, items, draw.standard_normal((len(items), 4)).astype(np.float32))
        assert len(store.search(vectors[:1], 3)[0].hits) == 3  # the old one answers
    store.put(some_items(1, start=777), np.zeros((1, DIM), np.float32))  # written meanwhile
    store.remove(["item-000005"])
    assert store.generations.switch(new.generation) == 1
    with pytest.raises(GenerationError):
        store.put([Item("x")], np.zeros((1, 4), np.float32), generation=2)
    store.generations.fill(new, store.items(["item-000777"]), np.zeros((1, 4), np.float32))
    assert store.generations.switch(new.generation) == 0
    assert store.identity == new
    assert store.generations.upcoming() is None
    with pytest.raises(GenerationError):
        store.put([Item("x")], np.zeros((1, 4), np.float32), generation=1)
    brute = Brute("none")
    for items, rows in store.scan():
        brute.put(items, rows)
    query = draw.standard_normal((1, 4)).astype(np.float32)
    assert same(store.search(query, 9)[0], brute.search(query[0], 9))
    assert store.count() == 60
    assert store.check() == []


def test_a_switch_that_is_repeated_does_no_harm(store):
    """As of two processes that fill the same generation, or one whose answer was lost."""
    filled(store, 3)
    new = store.generations.begin(Identity("g", "none", 4))
    store.generations.fill(new, list(store.listed()), np.ones((3, 4), np.float32))
    assert [store.generations.switch(2), store.generations.switch(2)] == [0, 0]
    assert (store.identity, len(store.search(np.ones((1, 4), np.float32), 9)[0].hits)) == (new, 3)
    with pytest.raises(GenerationError):
        store.generations.fill(new, list(store.listed()), np.ones((3, 4), np.float32))
    assert store.check() == []


def test_vectors_of_another_model_do_not_fill_a_generation(store):
    filled(store, 3)
    first = store.generations.begin(Identity("g", "none", 4))
    second = store.generations.begin(Identity("h", "none", 4))  # of another process; the first one is dropped
    assert first.generation == second.generation
    for refused in (
        lambda: store.generations.fill(first, list(store.listed()), np.zeros((3, 4), np.float32)),
        lambda: store.generations.filled(first),
    ):
        with pytest.raises(GenerationError):
            refused()
    assert store.generations.filled(second)[0] == []


@pytest.mark.parametrize("mapped", [False, True])
def test_a_vector_of_a_picture_that_was_replaced_is_passed_over(store, mapped):
    pictures = [Item(name, stamp=Stamp(1, 1, name)) for name in "abcd"] + [Item("e")]
    store.put(pictures, np.zeros((5, DIM), np.float32))
    new = store.generations.begin(Identity("g", "none", 4))
    store.put([replace(pictures[0], stamp=Stamp(2, 2, "another"))], np.ones((1, DIM), np.float32))
    store.put([replace(pictures[1], label="x")], np.zeros((1, DIM), np.float32))  # the same picture
    store.remove(["c"])
    store.generations.fill(new, pictures, np.ones((5, 4), np.float32), mapped)
    assert [item.id for item in store.generations.unfilled(2, 9)] == ["a"]
    assert store.generations.filled(new)[0] == ([] if mapped else ["b", "d", "e"])


def test_a_scan_ends_where_another_model_takes_over(store):
    items, vectors = filled(store, 3)
    blocks = store.scan()
    if isinstance(store, ShardedStore):  # it would have read so few at once
        blocks = store.shards[0].store.scan()
    next(blocks)
    new = store.generations.begin(Identity("g", "none", DIM))
    store.generations.fill(new, items, -vectors)
    store.generations.switch(2)
    with pytest.raises(GenerationError):
        next(blocks)


def begun_upgrade(store):
    """A generation in which items 0 to 9 have vectors of its model and the others mapped ones, and it answers."""
    items, _ = filled(store)
    new = store.generations.begin(Identity("g", "none", 4))
    ids = sorted(item.id for item in items)
    draw = np.random.default_rng(2)
    real, mapped = draw.standard_normal((10, 4)).astype(np.float32), draw.standard_normal((50, 4)).astype(np.float32)
    first, others = store.items(ids[:10]), store.items(ids[10:])
    store.generations.fill(new, first, mapped[:10], mapped=True)
    store.generations.fill(new, first, real)  # takes their place
    store.generations.fill(new, others, mapped, mapped=True)
    return ids, real, mapped


def test_mapped_vectors_are_known_as_such(store, place):
    ids, real, mapped = begun_upgrade(store)
    names, vectors = store.generations.filled(store.generations.upcoming())
    assert (names, vectors.tolist()) == (ids[:10], real.tolist())
    assert store.generations.mapped_count() == 0  # of the generation that answers
    assert store.generations.switch(2) == 0
    again = places.opened(place)
    assert [item.mapped for item in again.items(ids)] == [False] * 10 + [True] * 50
    assert again.generations.mapped_count() == 50
    first, rest = again.generations.mapped(3), again.generations.mapped(100, ids[20])
    assert [item.id for item in first + rest] == ids[10:13] + ids[21:]
    assert again.vectors(ids).tolist() == np.concatenate([real, mapped]).tolist()
    assert [hit.item.mapped for hit in again.search(mapped[:1], 1)[0].hits] == [True]
    again.close()


def test_settled_vectors_take_the_place_of_mapped_ones(store):
    ids, real, _ = begun_upgrade(store)
    before = store.items(ids)
    store.generations.switch(2)
    store.search(real[:1], 3)  # segments are there
    store.remove([ids[11]])
    kept = store.vectors(ids[:1])
    new = np.random.default_rng(3).standard_normal((4, 4)).astype(np.float32)
    store.generations.settle(2, [ids[0], *ids[10:13]], new)  # one is not mapped, one is gone
    assert store.vectors([ids[0], ids[10], ids[12]]).tolist() == [kept[0].tolist(), new[1].tolist(), new[3].tolist()]
    assert store.items(ids[:11]) == before[:11]  # nothing else has changed
    assert store.items(ids[:11])[10].added == before[10].added
    assert (store.count(), store.generations.mapped_count()) == (59, 47)
    brute = Brute("none")
    for items, rows in store.scan():
        brute.put(items, rows)
    assert same(store.search(new[1:2], 9)[0], brute.search(new[1], 9))
    with pytest.raises(GenerationError):
        store.generations.settle(1, [ids[13]], new[:1])
    assert store.check() == []


def test_pictures_stay_with_items_that_are_settled(store):
    store.put([Item("a")], np.zeros((1, DIM), np.float32), {"a": b"picture"})
    new = store.generations.begin(Identity("g", "none", 4))
    store.generations.fill(new, store.items(["a"]), np.zeros((1, 4), np.float32), mapped=True)
    store.generations.switch(2)
    assert store.items(["a"]) == [Item("a", mapped=True)]  # no stamp either
    store.generations.settle(2, ["a"], np.ones((1, 4), np.float32))
    assert store.items(["a"]) == [Item("a")]
    assert store.documents.pictures(["a"]) == {"a": b"picture"}


def test_a_whole_generation_after_a_mapped_one_is_not_mapped(store):
    ids, _, _ = begun_upgrade(store)
    store.generations.switch(2)
    new = store.generations.begin(Identity("h", "none", 4))
    store.generations.fill(new, store.items(ids), np.zeros((60, 4), np.float32))
    assert store.generations.filled(new)[0] == ids
    assert store.generations.mapped_count() == 50
    assert store.generations.switch(3) == 0
    assert store.generations.mapped_count() == 0


def test_an_item_that_is_written_again_says_itself_what_its_vector_is(store):
    ids, _, _ = begun_upgrade(store)
    store.generations.switch(2)
    first, second = store.items(ids[10:12])
    store.put([replace(first, label="new")], store.vectors([first.id]))
    store.put([replace(second, mapped=False)], np.zeros((1, 4), np.float32))
    assert [item.mapped for item in store.items(ids[10:12])] == [True, False]


def test_an_unfinished_generation_is_dropped_by_the_next(store):
    filled(store)
    store.generations.begin(Identity("g", "none", 4))
    store.put([Item("late", columns={"new": 1})], np.zeros((1, DIM), np.float32))  # with a column of its own
    new = store.generations.begin(Identity("h", "sphere", 3))
    assert (new.fingerprint, new.dim, new.generation) == ("h", 3, 2)
    assert len(store.generations.unfilled(2, 100)) == 61


def test_bad_questions(store):
    filled(store)
    query = np.zeros((1, DIM), np.float32)
    for ask, message in (
        (lambda: store.search(query, 0), "k must be a whole number of at least 1"),
        (lambda: store.search(query[:, :3], 1), "vectors of 3 dimensions, expected 1 of 8"),
        (lambda: store.nearest(query, 1, "colour"), "unknown column 'colour'"),
        (lambda: store.nearest(query, 0, "label"), "k must be a whole number of at least 1"),
        (lambda: store.search(query, 1, filters.parse("colour=x")), "unknown column 'colour'"),
        (lambda: store.search(query, 1, leave_out=["zebra"]), "unknown item 'zebra'"),
    ):
        with pytest.raises(UserError, match=message):
            ask()
    assert store.search(query[:0], 3) == []


def test_the_nearest_by_name_are_those_of_a_search(store):
    items, vectors = filled(store)
    store.put([Item("z", "/pics/caf\udce9.png")], vectors[:1])
    where, own = filters.parse("price!=3"), items[0].id
    for column in ("label", "price", "sku", "path", "id", "added"):
        for hits, near in zip(
            store.search(vectors[:3], 9, where, [own]), store.nearest(vectors[:3], 9, column, where, [own]), strict=True
        ):
            named = [Near(hit.id, hit.item.value(column), hit.similarity) for hit in hits.hits]
            assert near == Nearest(named, hits.certified, hits.generation)


def test_a_thing_follows_its_photos_at_once(store):
    """Adding, moving and removing a photo, through the store and through another that has it open."""
    rows = on("none", np.eye(4, DIM) * [[3], [2], [1], [0.5]])
    photos = [Item("a1", columns={"sku": "a"}), Item("a2", columns={"sku": "a"}), Item("b1", columns={"sku": "b"})]
    store.put(photos, rows[:3])
    brute = Brute("none")
    brute.put(photos, rows[:3])

    def found():
        for pooled in (1, 2):
            expected = brute.things(rows[:2], 5, "sku", pooled)
            for start in (1, 100):
                assert same_things(ThingSearch(store, "sku", rows[:2], 5, pooled, start=start).found(), expected)

    found()
    for item, row in ((Item("b2", columns={"sku": "b"}), 3), (Item("a2", columns={"sku": "b"}), 1), (Item("c"), 0)):
        store.put([item], rows[row : row + 1])
        brute.put([item], rows[row : row + 1])
        found()
    for one in ("a1", "b1", "c", "a2", "b2"):
        store.remove([one])
        brute.remove([one])
        found()


def test_threads_search_while_another_adds(store):
    _, vectors = filled(store)
    failures = []

    def ask():
        try:
            for _ in range(20):
                assert len(store.search(vectors[:2], 5)[1].hits) == 5
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(10):
        store.put(
            some_items(10, start=1000 + 10 * turn), on("none", np.random.default_rng(turn).standard_normal((10, DIM)))
        )
    for thread in threads:
        thread.join()
    assert not failures
    assert store.count() == 160


def test_room_is_given_back_and_described(store):
    filled(store)
    store.remove(["item-000001", "item-000002"])
    store.compact()
    assert store.count() == 58
    assert "MB" in store.describe()["on disk"]
    assert store.check() == []
