"""The answer of a store is that of float64 brute force: ids, order and scores, after any sequence of changes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookalike.search import filters
from lookalike.search.items import Identity
from lookalike.search.stores import segments
from lookalike.search.stores.sqlite import SqliteStore
from tests.search.brute import Brute, on, same, some_items

GEOMETRIES = ("sphere", "ball", "none")
DIM = 16


def clouds(kind, number, draw):
    """Spaces that are easy, and spaces that rounding hides things in."""
    if kind == "random":
        return draw.standard_normal((number, DIM))
    if kind == "clustered":
        return draw.standard_normal((max(1, number // 20), DIM))[
            draw.integers(0, max(1, number // 20), number)
        ] + 0.01 * draw.standard_normal((number, DIM))
    if kind == "collapsed":
        return 12 + 0.3 * draw.standard_normal((number, DIM))
    if kind == "duplicated":
        return draw.standard_normal((3, DIM))[draw.integers(0, 3, number)]
    return np.zeros((number, DIM))


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", ["random", "clustered", "collapsed", "duplicated", "zero"])
def test_every_space(tmp_path, geometry, kind):
    draw = np.random.default_rng(7)
    store, brute = SqliteStore.create(tmp_path / "index", Identity("f", geometry, DIM)), Brute(geometry)
    vectors = on(geometry, clouds(kind, 900, draw))
    items = some_items(900, draw=draw)
    for start in range(0, 900, 300):
        store.put(items[start : start + 300], vectors[start : start + 300])
        brute.put(items[start : start + 300], vectors[start : start + 300])
    queries = np.concatenate([vectors[:3], on(geometry, clouds(kind, 2, draw))])
    for query, answer in zip(queries, store.search(queries, 10), strict=True):
        assert same(answer, brute.search(query, 10))
    store.close()


CONDITIONS = {
    None: lambda _: True,
    "price<4": lambda item: item.columns["price"] < 4,
    'brand=["x", "z"]': lambda item: item.columns["brand"] in "xz",
    "brand!=x": lambda item: item.columns["brand"] != "x",
}


@st.composite
def histories(draw):
    """Adds, replacements and removals, in any order."""
    steps = draw(
        st.lists(st.tuples(st.sampled_from(["add", "again", "remove"]), st.integers(1, 60)), min_size=1, max_size=8)
    )
    return (
        draw(st.sampled_from(GEOMETRIES)),
        draw(st.sampled_from(["random", "collapsed", "duplicated"])),
        steps,
        draw(st.integers(0, 9)),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    histories(),
    st.integers(1, 30),
    st.sampled_from(list(CONDITIONS)),
    st.sampled_from([None, "label", "price"]),
)
def test_any_history(tmp_path_factory, history, k, where, group):
    geometry, kind, steps, seed = history
    draw = np.random.default_rng(seed)
    store, brute = (
        SqliteStore.create(tmp_path_factory.mktemp("h") / "index", Identity("f", geometry, DIM)),
        Brute(geometry),
    )
    keep = CONDITIONS[where]
    added = 0
    for step, number in steps:
        if step == "remove":
            ids = list(brute.items)[: number // 2]
            assert store.remove(ids) == len(ids)
            brute.remove(ids)
        else:
            items = some_items(number, start=0 if step == "again" else added, draw=draw)
            added += number
            vectors = on(geometry, clouds(kind, number, draw))
            store.put(items, vectors)
            brute.put(items, vectors)
        query = on(geometry, clouds(kind, 1, draw))
        if not brute.items:
            assert store.search(query, k)[0].hits == []
            continue
        conditions = filters.parse(where)
        (answer,) = store.search(query, k, conditions, group)
        assert same(answer, brute.search(query[0], k, keep, group))
        assert store.count(conditions) == sum(map(keep, brute.items.values()))
    store.close()
    again = SqliteStore(store.folder)
    query = on(geometry, clouds(kind, 1, draw))
    assert same(again.search(query, k)[0], brute.search(query[0], k))
    again.close()


def test_a_filter_that_leaves_many_items_masks_the_scan(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "FEW", 10)
    draw = np.random.default_rng(0)
    store, brute = SqliteStore.create(tmp_path / "index", Identity("f", "sphere", DIM)), Brute("sphere")
    items, vectors = some_items(2000, draw=draw), on("sphere", clouds("random", 2000, draw))
    store.put(items, vectors)
    brute.put(items, vectors)
    (answer,) = store.search(vectors[:1], 10, filters.parse("brand=x"))
    assert same(answer, brute.search(vectors[0], 10, lambda item: item.columns["brand"] == "x"))
    store.close()


def test_rounding_is_bounded():
    """The bound of `rounded_scores` holds for every item, and most random queries are proven at once."""
    from lookalike.search import scan

    draw = np.random.default_rng(3)
    for kind, geometry in product(("random", "collapsed"), GEOMETRIES):
        vectors, queries = on(geometry, clouds(kind, 5000, draw)), on(geometry, clouds(kind, 4, draw))
        scores = np.empty((4, 5000), np.float32)
        bounds = scan.rounded_scores(scan.round_vectors(vectors, geometry == "sphere"), queries, scores)
        exact = np.stack([scan.exact_scores(vectors, query, geometry == "sphere") for query in queries])
        assert (np.abs(scores - exact).max(1) <= bounds).all()
        assert (bounds < 0.05 * np.ptp(exact, axis=1) + 0.1).all()


def test_items_left_out_do_not_answer(tmp_path):
    draw = np.random.default_rng(0)
    store = SqliteStore.create(tmp_path / "index", Identity("f", "sphere", DIM))
    items, vectors = some_items(50, draw=draw), on("sphere", clouds("random", 50, draw))
    store.put(items, vectors)
    (answer,) = store.search(vectors[:1], 5, leave_out=[items[0].id])
    assert items[0].id not in [hit.id for hit in answer.hits]
    assert len(answer.hits) == 5
    store.close()
