"""The engine of one worker, function by function: its networks, its threads, who is admitted."""

import asyncio
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lookalike.search import Index
from lookalike.search.items import Answer, Identity, Item, Mark
from lookalike.search.serve import engine as engines
from lookalike.search.serve.engine import Engine, Query, Times
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.pictures import Upload
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import Settings
from lookalike.search.stores import GenerationError, StorageError
from tests.search.serve.conftest import encoded


@pytest.fixture(scope="module")
def engine(template, tmp_path_factory):
    place = shutil.copytree(template, tmp_path_factory.mktemp("engine") / "shop.index")
    running = Engine(Settings(place, waiting=2), Meters())
    running.start()
    yield running
    running.stop()


def test_stages_are_measured_in_milliseconds(monkeypatch):
    clock = iter([1.0, 1.25, 2.0, 2.5])
    monkeypatch.setattr(engines, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    times = Times()
    for _ in range(2):
        with times.measure("decode"):
            pass
    assert times.of == {"decode": 750, "network": 0, "search": 0}


def test_a_start_loads_the_cache_and_a_stop_leaves_no_thread(shop, monkeypatch):
    engine, words = Engine(Settings(shop), Meters()), []
    assert not engine.ready
    for name in ("ready", "close"):
        do = getattr(engine.index, name)
        monkeypatch.setattr(engine.index, name, lambda name=name, do=do: words.append(name) or do())
    engine.start()
    assert (engine.ready, words) == (True, ["ready"])
    engine.stop()
    assert words == ["ready", "close"]
    with pytest.raises(RuntimeError, match="after shutdown"):
        asyncio.run(engine.upright(Upload(encoded())))


def test_the_model_of_the_next_generation_is_loaded_once_and_ahead(shop, monkeypatch):
    engine, loaded, upcoming = Engine(Settings(shop), Meters()), [], []
    store, first = engine.index.store, engine.index.identity
    second = Identity("second", first.geometry, 24, generation=2)

    def load(identity):
        loaded.append(identity)
        return SimpleNamespace(identity=identity)

    monkeypatch.setattr(engine, "_network_of", load)
    monkeypatch.setattr(store.generations, "upcoming", lambda: upcoming[-1] if upcoming else None)
    for _ in range(2):
        engine._load()
        engine.look_ahead()
    assert loaded == [first]
    for next_ in (Identity(None, first.geometry, 24, generation=2), second, second):  # the first has no model
        upcoming.append(next_)
        engine.look_ahead()
    assert loaded == [first, second]
    own, engine.index = engine.index, SimpleNamespace(identity=second)
    engine._load()
    assert (engine._network.identity, engine._upcoming, loaded) == (second, None, [first, second])
    engine.index = SimpleNamespace(identity=first)
    engine._load()
    assert loaded == [first, second, first]
    engine.index = own
    engine.stop()


def test_pictures_of_several_callers_go_through_the_network_together(engine):
    network, other = engine._network, engine._network_of(engine.index.identity)
    how = network.model.preprocessing
    inputs = [torch.rand(rows, how.channels, how.crop, how.crop) for rows in (1, 2, 3, 1)]
    networks = [network, other, network, other]
    together = engine._embed(list(zip(networks, inputs, strict=True)))
    for rows, own, each in zip(together, networks, inputs, strict=True):
        assert np.allclose(rows, engine._embed([(own, each)])[0], atol=1e-5)
    assert [len(rows) for rows in together] == [1, 2, 3, 1]


def test_who_waits_is_counted_and_those_beyond_the_limit_are_refused(engine, monkeypatch):
    counts = []
    monkeypatch.setattr(engine.meters, "waiting", counts.append)
    assert engine.waiting == 0
    with engine.admitted(), engine.admitted(), pytest.raises(Refusal) as refused, engine.admitted():
        pass
    assert refused.value.status == 429
    assert (counts, engine.waiting) == ([1, 2, 1, 0], 0)
    monkeypatch.setattr(engine, "ready", False)
    with pytest.raises(Refusal) as early:
        engine.check_free()
    assert early.value.status == 503


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


def test_pictures_that_are_not_meant_are_told_from_those_that_are(engine, monkeypatch):
    questions = []

    async def note(question):
        questions.append(question)
        return Answer([])

    monkeypatch.setattr(engine._searching, "do", note)
    query = Query([Upload(encoded("figs"))], ["a"], [Upload(encoded("apple")), Upload(encoded("bread"))], ["b"], k=5)
    asyncio.run(engine.search(query))
    asyncio.run(engine.search(Query(items=["a"])))
    first, second = questions
    assert ([len(first.like), first.like[1:]], [len(first.unlike), first.unlike[2:]]) == ([2, ["a"]], [3, ["b"]])
    assert (first.generation, first.k) == (engine.index.identity.generation, 5)
    assert (second.generation, second.like, second.unlike) == (None, ["a"], [])


def test_a_picture_and_its_mirror_image_make_one_vector(engine):
    uploads = [Upload(encoded(kind="PNG")), Upload(encoded("apple", kind="PNG"))]

    def vectors(flip):
        return asyncio.run(engine._vectors(uploads, engine._network, Times(), flip))

    plain, both = vectors(False), vectors(True)
    assert len(plain) == len(both) == 2
    for one, two in zip(plain, both, strict=True):
        assert one.shape == two.shape == (16,)
        assert not np.allclose(one, two, atol=1e-4)
        assert np.linalg.norm(two) == pytest.approx(1, abs=1e-5)
    assert asyncio.run(engine._vectors(uploads, None, Times())) == []


def test_a_new_generation_is_asked_again_and_not_for_ever(engine, monkeypatch):
    loads, attempts = [], []
    monkeypatch.setattr(engine, "_load", lambda: loads.append("load"))

    def ask(good_after):
        async def attempt(network):
            attempts.append(network)
            if len(attempts) <= good_after:
                raise GenerationError
            return "answer"

        attempts.clear()
        loads.clear()
        return asyncio.run(engine._within_a_generation(attempt, needs_network=True))

    assert ask(2) == "answer"
    assert (len(attempts), loads) == (3, ["load"] * 2)
    with pytest.raises(Refusal) as refused:
        ask(99)
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "5"})
    assert len(attempts) == engines.ATTEMPTS
    monkeypatch.setattr(engine, "_network", None)
    with pytest.raises(Refusal, match="holds vectors and has no model"):
        ask(0)


def test_who_waits_too_long_is_told_to_come_back(engine, monkeypatch):
    monkeypatch.setattr(engine, "settings", Settings(engine.settings.place, patience=0.01))

    async def ask(_):
        await asyncio.Event().wait()

    with pytest.raises(Refusal) as refused:
        asyncio.run(engine._within_a_generation(ask, needs_network=False))
    assert refused.value.status == 429


def test_items_are_counted_once_per_version_and_while_a_shard_is_down_as_before(shop, monkeypatch):
    engine, counts = Engine(Settings(shop), Meters()), []
    whole = Index.__len__

    def count(index):
        counts.append(index)
        if len(counts) == 1:
            raise StorageError("a shard is down")
        return whole(index)

    def items():
        engine._answers([])
        return engine.items

    monkeypatch.setattr(Index, "__len__", count)
    assert items() == 0  # nobody has counted yet
    assert [items() for _ in range(3)] == [36] * 3
    assert len(counts) == 2
    engine.index.store.remove(["table/figs0.png"])
    assert items() == 35
    engine.stop()
