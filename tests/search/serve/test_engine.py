"""The engine of one worker: its networks, its threads, and how many it admits."""

import asyncio
import gc
import json
import shutil
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.adding.generation import renew
from lookalike.search.items import Identity, Item, Mark
from lookalike.search.model_copy import identity_of, model_content
from lookalike.search.pictures import PictureError
from lookalike.search.serve.engine import ATTEMPTS, Engine, Query
from lookalike.search.serve.meters import Meters, Times
from lookalike.search.serve.pictures import Upload
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import Settings
from lookalike.search.stores import GenerationError, StorageError
from lookalike.search.upgrading import hits
from lookalike.search.why import explained
from tests.fixtures.png import black
from tests.search.around import around
from tests.search.serve.conftest import encoded


@pytest.fixture(scope="module")
def engine(template, tmp_path_factory):
    place = shutil.copytree(template, tmp_path_factory.mktemp("engine") / "shop.index")
    running = Engine(Settings(place, waiting=4), Meters())
    running.start()
    yield running
    running.stop()


@pytest.fixture
def start(shop):
    """Start an engine of one's own."""
    begun = []

    def started(**settings):
        begun.append(Engine(Settings(shop, **settings), Meters()))
        begun[-1].start()
        return begun[-1]

    yield started
    for engine in begun:
        engine.stop()


@pytest.fixture(scope="module")
def second():
    """Another model, of another width."""
    return Model.create(Architecture("conv4", {"channels": 3}, dim=24), seed=5)


def search(engine, *images, **query):
    answer, _ = asyncio.run(asyncio.wait_for(engine.search(Query([Upload(image) for image in images], **query)), 60))
    return answer


def same(answer, expected):
    assert [hit.id for hit in answer.hits] == [hit.id for hit in expected.hits]
    similarities = [hit.similarity for hit in expected.hits]
    assert [hit.similarity for hit in answer.hits] == pytest.approx(similarities, abs=1e-5)


def test_stages_are_measured_in_milliseconds():
    clock = iter([1.0, 1.25, 2.0, 2.5])
    times = Times(clock=lambda: next(clock))
    for _ in range(2):
        with times.measure("decode"):
            pass
    assert times.of == {"decode": 750, "network": 0, "search": 0}


def test_a_start_loads_the_cache_and_a_stop_leaves_no_thread_and_no_database_open(shop):
    def opened(ending):
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return any(str(file).startswith(str(shop)) and file.suffix == ending for file in map(Path.readlink, links))

    before = set(threading.enumerate())
    engine = Engine(Settings(shop), Meters())
    assert not engine.ready
    assert not opened(".npy")
    engine.start()
    assert engine.ready
    assert opened(".npy")
    assert opened(".sqlite")
    assert {thread.name for thread in set(threading.enumerate()) - before} >= {"network", "search", "write"}
    engine.stop()
    assert not opened(".sqlite")
    assert set(threading.enumerate()) <= before
    with pytest.raises(RuntimeError, match="after shutdown"):
        asyncio.run(engine.upright(Upload(encoded())))


def test_the_model_of_the_next_generation_is_loaded_once_and_ahead(start, shop, second):
    engine = start()
    with closing(Index.open(shop)) as index:
        store = index.store
        store.generations.begin(Identity(None, "sphere", 24))
        engine.look_ahead()  # nothing to load: that one has no model
        store.documents.keep_model(second.fingerprint, model_content(second))
        store.generations.begin(identity_of(second))
        engine.look_ahead()
        shutil.rmtree(shop / "model")
        with store.database.writing() as connection:
            connection.execute("DELETE FROM models")
        engine.look_ahead()  # whoever loads it again finds nothing
        renew(index, second)
        answer = search(engine, encoded("figs"), k=5)
        index.keep_model(second)
        same(answer, index.search(encoded("figs"), 5))


def test_a_generation_that_answers_without_warning_is_asked_with_its_model(start, shop, second):
    engine = start()
    with closing(Index.open(shop)) as index:
        renew(index, second)
        same(search(engine, encoded("figs"), k=5), index.search(encoded("figs"), 5))
        asyncio.run(engine.add(Item("mine"), Upload(encoded("figs")), "me"))
        assert index.store.vectors(["mine"]).shape == (1, 24)


def test_mapped_hits_are_noted_for_the_upgrade(start, shop, second):
    engine = start()
    with closing(Index.open(shop)) as index:
        store, other = index.store, second
        store.documents.keep_model(other.fingerprint, model_content(other))
        new = store.generations.begin(identity_of(other))
        for items, _ in store.scan():
            vectors = np.random.default_rng(0).standard_normal((len(items), new.dim)).astype(np.float32)
            store.generations.fill(new, items, vectors, mapped=True)
        store.generations.switch(new.generation)
        asyncio.run(engine.try_canaries())
        assert not any(day.canaries_lost for day in engine.watcher.days())
        found = [hit.id for hit in search(engine, encoded("figs"), k=3).hits]
        assert hits.first(store) == []
        engine.keep()
        assert {item.id for item in hits.first(store)} == set(found)
        with pytest.raises(PictureError, match="is mapped from that of an earlier model"):
            asyncio.run(engine.why(Upload(encoded("figs")), found[0]))


def test_a_new_generation_is_not_waited_for_for_ever(start):
    engine, attempts = start(), []

    def put(*_):
        attempts.append(1)
        raise GenerationError

    engine.index.store = around(engine.index.store, put=put)
    with pytest.raises(Refusal) as refused:
        asyncio.run(engine.add(Item("mine"), Upload(encoded()), "me"))
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "5"})
    assert len(attempts) == ATTEMPTS


def test_pictures_are_refused_where_there_is_no_model(tmp_path):
    Index.create(tmp_path / "index", dim=4).close()
    engine = Engine(Settings(tmp_path / "index"), Meters())
    engine.start()
    with pytest.raises(Refusal, match="holds vectors and has no model"):
        search(engine, encoded())
    engine.stop()


def test_who_waits_too_long_is_told_to_come_back(start):
    engine, end = start(patience=0.05), threading.Event()
    engine.index.store = around(engine.index.store, put=lambda *_: end.wait(60))
    with pytest.raises(Refusal) as refused:
        asyncio.run(engine.add(Item("mine"), Upload(encoded()), "me"))
    end.set()
    assert refused.value.status == 429


def test_pictures_of_several_callers_go_through_the_network_together(engine):
    images = [Upload(encoded(label, number)) for number, label in enumerate(("figs", "apple", "bread"))]
    queries = [Query(images[:1]), Query(images), Query(images[1:], not_images=images[:1]), Query(images[2:])]

    async def together():
        return await asyncio.gather(*(engine.search(query) for query in queries))

    for query, (answer, _) in zip(queries, asyncio.run(together()), strict=True):
        same(answer, asyncio.run(engine.search(query))[0])


def test_who_waits_is_counted_and_those_beyond_the_limit_are_refused(shop):
    engine = Engine(Settings(shop, waiting=2), Meters())
    with pytest.raises(Refusal) as early:
        engine.check_free()
    assert early.value.status == 503
    engine.start()

    def waiting():
        assert f"\nlookalike_waiting {engine.waiting}\n" in engine.meters.text(0)
        return engine.waiting

    assert waiting() == 0
    with engine.admitted():
        assert waiting() == 1
        with engine.admitted():
            assert waiting() == 2
            with pytest.raises(Refusal) as refused, engine.admitted():
                pass
        assert waiting() == 1
    assert waiting() == 0
    assert refused.value.status == 429
    engine.stop()


def test_a_picture_is_added_found_marked_and_removed(engine):
    upload = Upload(encoded("figs", 61, "PNG"))

    async def live():
        await engine.add(Item("mine", label="figs"), upload, "me")
        answer, times = await engine.search(Query([upload], k=1))
        number = await engine.mark(Mark("q", None, "mine", True), await engine.upright(upload), "me")
        picture = engine.index.store.marks.picture("q")
        words = [await engine.unmark(number, "me"), await engine.unmark(number, "me")]
        words += [await engine.remove("mine", "me"), await engine.remove("mine", "me")]
        return answer, times, number, picture, words

    answer, times, number, picture, words = asyncio.run(asyncio.wait_for(live(), 60))
    assert [hit.id for hit in answer.hits] == ["mine"]
    assert answer.hits[0].similarity == pytest.approx(1, abs=1e-5)
    assert min(times.values()) > 0
    assert isinstance(number, int)
    assert picture.startswith(b"\xff\xd8")
    assert words == [True, False, True, False]


def test_pictures_that_are_not_meant_are_told_from_those_that_are(engine):
    figs, apple, bread = (encoded(label) for label in ("figs", "apple", "bread"))
    not_images = [Upload(apple), Upload(bread)]
    answer = search(engine, figs, items=["table/figs0.png"], not_images=not_images, not_items=["table/dates0.png"], k=7)
    same(answer, engine.index.search(figs, 7, like=["table/figs0.png"], unlike=[apple, bread, "table/dates0.png"]))
    assert len(answer.hits) == 7
    same(search(engine, items=["table/figs0.png"], k=3), engine.index.search("table/figs0.png", 3))


def test_a_picture_and_its_mirror_image_make_one_vector(start):
    engine, picture = start(), encoded("figs", kind="PNG")
    index = engine.index
    index.store.documents.write("quality", json.dumps({"flip": True}))
    search(engine, picture)
    both, plain = index.search(picture, 3), index.search(picture, 3, plain=True)
    assert both.hits[0].similarity != pytest.approx(plain.hits[0].similarity, abs=1e-5)
    same(search(engine, picture, k=3), both)
    asyncio.run(engine.add(Item("mine"), Upload(picture), "me"))
    assert np.allclose(index.store.vectors(["mine"]), index.vectors_of([picture]), atol=1e-5)  # items are not mirrored
    index.store.remove(["mine"])
    index.store.documents.write("quality", json.dumps({"flip": False}))
    search(engine, picture)
    same(search(engine, picture, k=3), plain)


def test_items_are_counted_once_per_version_and_while_a_shard_is_down_as_before(start):
    engine, counts = start(), []
    store = engine.index.store

    def count():
        counts.append(1)
        if len(counts) == 1:
            raise StorageError("a shard is down")
        return store.count()

    def items():
        search(engine, items=["table/figs0.png"])
        return engine.items

    engine.index.store = around(store, count=count)
    assert items() == 0  # not counted yet
    assert [items() for _ in range(3)] == [36] * 3
    assert len(counts) == 2
    store.remove(["table/apple0.png"])
    assert items() == 35


def test_pictures_that_wait_to_be_explained_take_little_room(engine):
    """Sixty-four of fifty million pixels would take ten gigabytes."""
    asyncio.run(engine.add(Item("known"), Upload(encoded()), "me"))
    go, large = threading.Event(), Upload(black(3000, 3000))

    async def several():
        blocking = asyncio.create_task(engine._explaining.do(lambda: go.wait(60)))
        asked = [asyncio.create_task(engine.why(large, "known")) for _ in range(3)]
        while engine._explaining.waiting.qsize() < 3:
            await asyncio.sleep(0.01)
        most = max(part.numel() for part in gc.get_objects() if type(part) is torch.Tensor)
        go.set()
        await blocking
        return most, await asyncio.gather(*asked)

    most, found = asyncio.run(asyncio.wait_for(several(), 60))
    assert most < 3000 * 3000
    assert [each.query.view for each in found] == [found[0].query.view] * 3


def test_an_explanation_that_takes_too_long_is_given_up_and_others_go_on(start, monkeypatch):
    engine, hung, free = start(searching=1.0), threading.Event(), threading.Event()

    def slow(*pictures):
        if not hung.is_set():
            hung.set()
            free.wait(60)
        return explained(*pictures)

    async def ask():
        with pytest.raises(Refusal, match="longer than 1 seconds and was given up") as refused:
            await engine.why("table/figs0.png", "table/figs1.png")
        return refused.value.status, await engine.why("table/figs1.png", "table/figs2.png")

    monkeypatch.setattr("lookalike.search.serve.engine.explained", slow)
    try:
        status, why = asyncio.run(ask())
    finally:
        free.set()
    assert status == 504
    assert why.similarity <= 1
    assert not engine.hangs
