"""Ways to better answers: query expansion, mutual neighbours, votes, and how they are measured."""

from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from lookalike.search import Index, filters
from lookalike.search.items import Answer, Hit, Item
from lookalike.search.quality import Quality, expanded, improved, label_of, measure, reordered

DIM = 6


def cloud(number=30):
    vectors = np.random.default_rng(0).standard_normal((number, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=DIM)) as index:
        items = [Item(f"{row:02d}", columns={"even": row % 2 == 0}) for row in range(30)]
        index.store.put(items, cloud())
        yield index.store


def by_loops(query, rows, number, power):
    """The mean of the query and its nearest rows, weighted by similarity to a power."""
    similarities = {row: float(cloud()[row].astype(float) @ query[0].astype(float)) for row in rows}
    total = query[0].astype(float)
    for row in sorted(rows, key=lambda row: -similarities[row])[:number]:
        total = total + max(similarities[row], 0.0) ** power * cloud()[row]
    return total / np.linalg.norm(total)


def test_a_query_is_expanded_by_its_first_hits(store):
    query, quality = cloud(40)[35:36], Quality(expansion=3, power=2.0)
    assert expanded(store, query, quality, (), ())[0] == pytest.approx(by_loops(query, range(30), 3, 2.0), abs=1e-6)
    even = [row for row in range(2, 30) if row % 2 == 0]
    restricted = expanded(store, query, quality, filters.parse({"even": True}), ["00"])
    assert restricted[0] == pytest.approx(by_loops(query, even, 3, 2.0), abs=1e-6)


def test_a_query_without_hits_stays_as_it_is(store):
    query = cloud(40)[35:36]
    assert np.array_equal(expanded(store, query, Quality(expansion=3), filters.parse("id=none"), ()), query)
    assert improved(store, query, 5, Quality(reciprocal=True), filters.parse("id=none")).hits == []


def test_what_is_switched_on_is_used(store):
    query = cloud(40)[35:36]
    (plain,) = store.search(query, 30)
    assert improved(store, query, 30, Quality()).hits == plain.hits
    (moved,) = store.search(expanded(store, query, Quality(expansion=3), (), ()), 4)
    assert improved(store, query, 4, Quality(expansion=3)).hits == moved.hits
    order = reordered(query[0], store.vectors([hit.id for hit in plain.hits]))
    mutual = improved(store, query, 4, Quality(reciprocal=True))
    assert mutual.hits == [plain.hits[place] for place in order[:4]]
    assert order != sorted(order)


def hits(*pairs):
    return [Hit(Item(str(place), label=label), value) for place, (label, value) in enumerate(pairs)]


def test_recall_and_precision_of_every_answer():
    """Three items of class a: right, wrong, right is (1 + 2/3) / 3; an answer of one hit is measured by that one."""
    answers = [Answer(hits(*((label, 0.5) for label in labels))) for labels in ("aba", "baa", "a", "b", "")]
    expected = [(1, 5 / 9), (0, (1 / 2 + 2 / 3) / 3), (1, 1), (0, 0), (0, 0)]
    assert measure(answers, ["a"] * 5, Counter(a=3)) == pytest.approx(np.array(expected))


def test_the_label_of_a_picture():
    near = hits((None, 0.95), ("a", 0.9), ("b", 0.88), ("b", 0.87))
    assert label_of(near, "nearest") == "a"
    assert label_of(near, "vote") == "b"
    assert label_of(hits((None, 0.7)), "vote") is None
    assert label_of([], "nearest") is None


def test_what_is_on_in_words():
    assert Quality().names == []
    assert Quality(expansion=5, reciprocal=True, flip=True).names == [
        "query expansion by 5 hits", "k-reciprocal re-ranking", "flip",
    ]  # fmt: skip
