"""Several servers as one index: the same answers, and nothing silently missing."""

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import psycopg
import pytest

from lookalike.cli import search as cli_search
from lookalike.errors import UserError
from lookalike.search import Index, filters
from lookalike.search.items import Identity
from lookalike.search.repeats import repeats
from lookalike.search.stores import StorageError, places
from lookalike.search.stores.postgres.address import addresses
from lookalike.search.stores.postgres.store import PostgresStore
from lookalike.search.stores.sharded.shards import Shard, shard_of
from lookalike.search.stores.sharded.store import ShardedStore
from lookalike.search.stores.sqlite.store import FILE, SqliteStore
from lookalike.search.things import ThingSearch
from tests.search.around import around
from tests.search.brute import Brute, on, same, same_things, some_items

DIM = 8


@pytest.fixture
def place(postgres, new_address):
    """Two shards, the second in a database that can be closed."""
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'second'").fetchone():
            connection.execute("CREATE DATABASE second")
    first = new_address()
    return f"{first},{first.replace('/postgres?', '/second?')}"


@contextmanager
def closed(postgres):
    """The second database lets nobody in, and whoever was in is out."""
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute("ALTER DATABASE second ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'second'")
        try:
            yield
        finally:
            connection.execute("ALTER DATABASE second ALLOW_CONNECTIONS true")


def filled(place, number=200):
    draw = np.random.default_rng(4)
    store, brute = places.created(place, Identity(None, "sphere", DIM)), Brute("sphere")
    items, vectors = some_items(number, draw=draw), on("sphere", draw.standard_normal((number, DIM)))
    store.put(items, vectors)
    brute.put(items, vectors)
    return store, brute, vectors


def test_shards_answer_as_one_index(place):
    store, brute, vectors = filled(place)
    parts = [one.store.count() for one in store.shards]
    assert sum(parts) == 200
    assert min(parts) > 50
    assert {item.id for item in store.shards[1].store.listed()} == {one for one in brute.items if shard_of(one, 2)}
    for where, keep in ((None, lambda _: True), ("price<4", lambda item: item.columns["price"] < 4)):
        for query, answer in zip(vectors[:3], store.search(vectors[:3], 7, filters.parse(where)), strict=True):
            assert same(answer, brute.search(query, 7, keep))
            assert answer.missing == ()
        for column, pooled in product(("label", "price", "sku"), (1, 2)):  # photos of a thing are in several shards
            search = ThingSearch(store, column, vectors[:2], 7, pooled, filters.parse(where), start=10)
            assert same_things(search.found(), brute.things(vectors[:2], 7, column, pooled, keep))
    assert [item.id for item in store.listed()] == sorted(brute.items)
    own = next(iter(brute.items))
    assert own not in [hit.id for hit in store.search(brute.rows[own][None], 3, leave_out=[own])[0].hits]
    store.close()


def impatient(place, complete=False):
    """An index that waits for a shard hardly at all, and asks it again at once."""
    openers = [partial(PostgresStore, address, 0.2) for address in addresses(place)]
    return Index(ShardedStore(openers, complete, rest=0.0), place)


def test_a_shard_that_is_down_is_said_or_refused(postgres, place):
    store, brute, vectors = filled(place)
    store.close()
    index, strict = impatient(place), impatient(place, complete=True)
    with closed(postgres):
        answer = index.search(vectors[0], k=5)
        assert answer.missing == ("shard 2 of 2",)
        (plain,) = index.store.search(vectors[:1], 5)
        assert same(plain, brute.search(vectors[0], 5, lambda item: shard_of(item.id, 2) == 0))
        with pytest.raises(StorageError, match=r"shard 2 of 2: .*second.*the server does not answer"):
            strict.search(vectors[0], k=5)
        for ask in (lambda: len(index), lambda: list(index.store.listed()), lambda: index.store.summary(["label"])):
            with pytest.raises(StorageError, match="shard 2 of 2"):
                ask()
        again = impatient(place)  # also one that is opened meanwhile
        assert again.search(vectors[0], k=5).missing == ("shard 2 of 2",)
        assert "shard 2 of 2" in again.store.describe()["down"]
        again.close()
    for one in (index, strict):
        assert same(one.store.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
        assert one.search(vectors[0], k=5).missing == ()
        one.close()


def test_a_shard_that_is_down_is_never_silently_missing(postgres, place, model, photos, held_out):
    """Labels, thresholds and duplicates of some shards would look like those of all."""
    Index.create(place, model).close()
    index = impatient(place)
    index.add(photos)
    index.calibrate(held_out, 0.6)
    with closed(postgres):
        index.ready()  # a server starts without it
        query = str(held_out / "figs" / "101.png")
        output = cli_search._as_table(index, query, index.search(query), [])
        assert "shard 2 of 2 does not answer: its items are missing below" in output
        assert "figs" in output
        with pytest.raises(StorageError, match="shard 2 of 2 does not answer, and this needs all shards"):
            index.classify(held_out)
    whole = index.store.search

    def missing(*query):
        return [replace(one, missing=("shard 2 of 2",)) for one in whole(*query)]

    index.store = around(index.store, search=missing)  # as if it went down after the count and the list
    for ask in (lambda: index.calibrate(held_out, 0.6), lambda: repeats(index.store, 0.9)):
        with pytest.raises(StorageError, match="shard 2 of 2 does not answer, and this needs all shards"):
            ask()
    index.close()


def test_why_no_shard_answers_is_said(place):
    filled(place, 5)[0].close()
    wrong = place.replace("postgres@", "nobody@")
    with pytest.raises(StorageError, match=r"none of the shards answers; shard 1 of 2: .* does not know this user"):
        Index.open(wrong)


def test_shards_of_which_some_were_made_are_completed(postgres, place, new_address):
    identity = Identity(None, "sphere", DIM)
    with closed(postgres), pytest.raises(StorageError):
        places.created(place, identity)
    first, second = place.split(",")
    one, _ = (addresses(part)[0] for part in (first, second))
    PostgresStore.create(one, identity, {places.SHARD: "1 of 2"})  # and stopped
    assert not places.exists(place)
    with pytest.raises(UserError, match="there is an index already"):
        places.created(place, replace(identity, dim=DIM + 1))
    store = places.created(place, identity)
    store.put(some_items(9), on("sphere", np.random.default_rng(0).standard_normal((9, DIM))))
    store.close()
    assert places.exists(place)
    third = new_address()
    for taken in (place, f"{first},{third}"):  # nothing that holds items is taken for a beginning
        with pytest.raises(UserError, match="there is an index already"):
            places.created(taken, identity)
    assert not places.exists(third)
    with pytest.raises(UserError, match="is shard 1 of 2: give all shards, in their order"):
        places.created(f"{third},{first}", identity)


def test_shards_in_another_order_or_number_are_refused(place):
    filled(place, 5)[0].close()
    first, second = place.split(",")
    for wrong, message in (
        (first, "is shard 1 of 2: give all shards, in their order"),
        (f"{second},{first}", "is shard 2 of 2"),
        (f"{first},{first}", "two shards have the same address"),
    ):
        with pytest.raises(UserError, match=message):
            Index.open(wrong)


def test_a_column_has_one_kind_in_all_shards(place):
    store, _, vectors = filled(place)
    (item,) = some_items(1, start=900)
    store.put([type(item)(item.id, columns={"price": 99, "rare": 1})], vectors[:1])
    assert [one.store.columns()["rare"] for one in store.shards] == ["number", "number"]
    new = [type(item)(other.id, columns={"price": 1}) for other in some_items(20, start=950)]
    with pytest.raises(UserError, match="and the column holds numbers"):  # in no shard
        store.put([*new, type(item)("last", columns={"price": "dear"})], np.repeat(vectors[:1], 21, 0))
    assert store.items([one.id for one in new]) == []
    assert [one.id for one in store.listed(filters.parse("rare=1"))] == [item.id]
    assert [near.name for near in store.nearest(vectors[:1], 3, "rare", filters.parse("price=99"))[0].items] == [1]
    store.close()


@pytest.fixture
def folders(tmp_path):
    """Two shards in folders: what holds for servers holds for them."""
    for number in (1, 2):
        SqliteStore.create(tmp_path / f"{number}", Identity(None, "sphere", DIM)).close()
    shards = ShardedStore([partial(SqliteStore, tmp_path / f"{number}") for number in (1, 2)])
    draw = np.random.default_rng(4)
    shards.put(some_items(200, draw=draw), on("sphere", draw.standard_normal((200, DIM))))
    yield shards
    shards.close()


def test_the_backup_of_shards_is_one_whole_index(folders, tmp_path):
    (tmp_path / "kept").mkdir()
    folders.backup(tmp_path / "kept" / FILE)
    kept = SqliteStore(tmp_path / "kept")
    assert list(kept.listed()) == list(folders.listed())
    assert len(list(kept.listed())) == 200
    kept.close()


def test_a_generation_that_only_some_shards_have_begun_is_begun_again(folders):
    new = Identity("g", "sphere", 4)
    folders.shards[0].store.generations.begin(new)  # and the process was killed
    assert folders.generations.upcoming() is None
    begun = folders.generations.begin(new)
    assert folders.generations.upcoming() == begun
    folders.generations.fill(begun, list(folders.listed()), np.ones((200, 4), np.float32))
    assert folders.generations.switch(2) == 0
    assert {len(found.hits) for found in folders.search(np.ones((1, 4), np.float32), 300)} == {200}


def test_shards_between_two_generations_finish_the_one_and_begin_no_other(folders):
    items = list(folders.listed())
    new = folders.generations.begin(Identity("g", "sphere", 4))
    folders.generations.fill(new, items, np.ones((200, 4), np.float32))
    folders.shards[1].store.generations.switch(2)  # and the process was killed
    assert folders.generations.upcoming() == new
    for refused in (
        lambda: folders.generations.begin(Identity("h", "sphere", 4)),
        lambda: next(folders.scan()),
    ):
        with pytest.raises(UserError, match="the shards are between two generations"):
            refused()
    late = replace(items[0], id=next(f"late {n}" for n in range(9) if shard_of(f"late {n}", 2) == 0))
    folders.shards[0].store.put([late], np.ones((1, DIM), np.float32))
    assert [item.id for item in folders.generations.unfilled(2, 9)] == [late.id]
    known, _ = folders.generations.filled(new)
    assert {shard_of(one, 2) for one in known} == {0}  # of those there are old vectors, too
    folders.generations.fill(new, [late], np.ones((1, 4), np.float32), mapped=True)
    assert folders.generations.switch(2) == 0
    assert [item.id for item in folders.generations.mapped(9)] == [late.id]


def sizes(shards, folder):
    for one in shards.shards:
        one.store.close()  # the log is in the file then
    return [(folder / number / FILE).stat().st_size for number in "12"]


def test_all_shards_are_compacted_checked_and_described(folders, tmp_path):
    folders.remove([item.id for item in folders.listed()][:150])
    before, _, after = sizes(folders, tmp_path), folders.compact(), sizes(folders, tmp_path)
    assert all(new < old for new, old in zip(after, before, strict=True))
    for one in folders.shards:
        one.store.check = lambda: ["a problem"]
    assert folders.check() == ["shard 1 of 2: a problem", "shard 2 of 2: a problem"]
    assert re.fullmatch(r"shard 1 of 2: index.sqlite .*; shard 2 of 2: index.sqlite .*", folders.describe()["on disk"])


def wrapped(folder, **own):
    """Two shards in folders, in which some methods are given; each is called with the store first."""

    def opened(number):
        store = SqliteStore(folder / f"{number}")
        return around(store, **{name: partial(method, store) for name, method in own.items()})

    return ShardedStore([partial(opened, number) for number in (1, 2)])


@pytest.mark.usefixtures("folders")
def test_progress_of_all_shards_is_one(tmp_path):
    def approximate(_, on, progress):
        assert on
        progress(3, 5)

    told, shards = [], wrapped(tmp_path, approximate=approximate)
    shards.approximate(True, lambda *step: told.append(step))
    assert told == [(3, 5), (6, 10)]
    shards.close()


@pytest.mark.usefixtures("folders")
def test_closed_shards_have_no_thread_and_no_store_left(tmp_path):
    closed = []

    def close(store):
        closed.append(store.folder.name)
        store.close()

    shards = wrapped(tmp_path, close=close)
    shards.close()
    assert sorted(closed) == ["1", "2"]
    with pytest.raises(RuntimeError, match="after shutdown"):
        shards.count()


def test_a_shard_that_is_down_is_left_alone_for_a_while():
    now, calls = [100.0], []

    def down():
        calls.append(now[0])
        raise StorageError("gone")

    one = Shard("shard 1 of 1", down, clock=lambda: now[0])
    for now[0] in (100.0, 100.1, 104.9, 105.1):
        with pytest.raises(StorageError, match="shard 1 of 1: gone"):
            one.ask(lambda store: store)
    assert calls == [100.0, 105.1]
    one.close()
