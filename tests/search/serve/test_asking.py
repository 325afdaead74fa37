"""Questions of several people in one batch: each gets its own answer, or its own refusal."""

import numpy as np

from lookalike.search import Index
from lookalike.search.filters import parse
from lookalike.search.items import Item
from lookalike.search.serve.asking import Question, Reply, Searcher
from lookalike.search.serve.refusals import Refusal
from lookalike.search.stores import GenerationError, StorageError


def question(*items, like=(), k=3, where=None, group=None, generation=None, not_items=()):
    return Question(list(like), [], items, list(not_items), parse(where), group, k, generation)


def test_each_gets_its_own(template):
    index = Index.open(template)
    vector = index.store.vectors(["table/apple0.png"])[0]
    asked = [
        question("table/figs0.png"),
        question("nothing"),
        question("table/figs0.png", k=5, where="brand=odd"),
        question("table/figs0.png", where="colour=red"),
        question(like=[vector], generation=1, k=1),
        question(like=[vector], generation=7),
        question("table/bread0.png", not_items=["table/figs1.png"], k=4),
    ]
    found = Searcher(index).answers(asked)
    assert [hit.label for hit in found[0].answer.hits] == ["figs"] * 3
    assert (found[1].status, found[3].status) == (404, 400)
    assert isinstance(found[3], Refusal)
    assert {hit.item.columns["brand"] for hit in found[2].answer.hits} == {"odd"}
    assert found[4].answer.hits[0].id == "table/apple0.png"
    assert isinstance(found[5], GenerationError)
    assert len(found[6].answer.hits) == 4
    for one, answer in zip(asked, found, strict=True):
        if isinstance(answer, Reply):
            assert not set(one.own) & {hit.id for hit in answer.answer.hits}
            alone = Searcher(index).answers([one])[0]
            assert [hit.id for hit in alone.answer.hits] == [hit.id for hit in answer.answer.hits]
            assert answer.items == 36


def test_an_empty_index_and_one_without_a_model(tmp_path, model):
    empty = Index.create(tmp_path / "empty.index", model)
    (answer,) = Searcher(empty).answers([question(like=[np.eye(16, dtype=np.float32)[0]], generation=1)])
    assert (answer.answer.hits, answer.label, answer.items) == ([], None, 0)
    bare = Index.create(tmp_path / "bare.index", dim=4)
    bare.store.put([Item("a"), Item("b")], np.eye(4, dtype=np.float32)[:2])
    (answer,) = Searcher(bare).answers([question("a")])
    assert [hit.id for hit in answer.answer.hits] == ["b"]


def test_a_calibrated_index_gives_its_verdict(shop, held_out):
    index = Index.open(shop)
    index.calibrate(held_out, precision=0.8)
    expected = index.search("table/figs0.png", 3)
    (answer,) = Searcher(index).answers([question("table/figs0.png")])
    assert answer.answer.verdict == expected.verdict
    assert answer.meaning == index.calibration.meaning(expected.verdict)


def test_items_are_counted_once_per_version_and_while_a_shard_is_down_as_before(shop, monkeypatch):
    searcher, counts = Searcher(Index.open(shop)), []
    whole = Index.__len__

    def count(index):
        counts.append(index)
        if len(counts) == 1:
            raise StorageError("a shard is down")
        return whole(index)

    monkeypatch.setattr(Index, "__len__", count)
    assert searcher._count() == 0  # nobody has counted yet
    assert [searcher._count() for _ in range(3)] == [36] * 3
    assert len(counts) == 2
    searcher.index.store.remove(["table/figs0.png"])
    assert searcher._count() == 35
