"""The answer of a store is that of float64 brute force: ids, order and scores, after any sequence of changes."""

import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookalike.search import filters
from lookalike.search.items import Identity
from lookalike.search.stores import places
from lookalike.search.stores.sqlite import segments
from lookalike.search.stores.sqlite.store import SqliteStore
from lookalike.search.things import ThingSearch
from tests.search.brute import Brute, on, same, same_things, some_items

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
def test_every_space(new_place, geometry, kind):
    draw = np.random.default_rng(7)
    store, brute = places.created(new_place(), Identity("f", geometry, DIM)), Brute(geometry)
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


ANY = given(
    histories(),
    st.integers(1, 30),
    st.sampled_from(list(CONDITIONS)),
    st.sampled_from(["label", "price", "sku"]),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(2, 40),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@ANY
def test_any_history_in_a_folder(tmp_path_factory, history, k, where, thing, asked, pooled, start):
    check_history(tmp_path_factory.mktemp("h") / "index", history, k, where, thing, asked, pooled, start)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@ANY
def test_any_history_on_a_server(new_address, history, k, where, thing, asked, pooled, start):
    check_history(new_address(), history, k, where, thing, asked, pooled, start)


def check_history(place, history, k, where, thing, asked, pooled, start):
    geometry, kind, steps, seed = history
    draw = np.random.default_rng(seed)
    store, brute = places.created(place, Identity("f", geometry, DIM)), Brute(geometry)
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
        queries = on(geometry, clouds(kind, asked, draw))
        query = queries[:1]
        if not brute.items:
            assert store.search(query, k)[0].hits == []
            continue
        conditions = filters.parse(where)
        assert same(store.search(query, k, conditions)[0], brute.search(query[0], k, keep))
        things = ThingSearch(store, thing, queries, k, pooled, conditions, start=start).found()
        assert same_things(things, brute.things(queries, k, thing, pooled, keep))
        assert store.count(conditions) == sum(map(keep, brute.items.values()))
    store.close()
    again = places.opened(place)
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
    from lookalike.search.scan import rounded as scan

    draw = np.random.default_rng(3)
    for kind, geometry in product(("random", "collapsed"), GEOMETRIES):
        vectors, queries = on(geometry, clouds(kind, 5000, draw)), on(geometry, clouds(kind, 4, draw))
        scores = np.empty((4, 5000), np.float32)
        rounded = scan.round_vectors(vectors, geometry == "sphere")
        shifts, bounds = scan.rounded_scores(rounded, queries, scores)
        exact = np.stack([scan.exact_scores(vectors, query, geometry == "sphere") for query in queries])
        assert (np.abs(scores + shifts[:, None] - exact / rounded.unit**2).max(1) <= bounds).all()
        assert (bounds * rounded.unit**2 < 0.05 * np.ptp(exact, axis=1) + 0.1).all()


def in_time(work, seconds=100):
    """What `work` returns, on a thread that is left behind where it never does."""
    results = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, "no answer"
    return results[0]


@pytest.mark.parametrize("dead", [0, 2900])
def test_one_picture_very_many_times(tmp_path, dead):
    """More equal scores than a shortlist holds, above and below the others; also where few items of a segment live."""
    draw = np.random.default_rng(0)
    store, brute = SqliteStore.create(tmp_path / "index", Identity("f", "sphere", DIM)), Brute("sphere")
    vectors = on("sphere", draw.standard_normal((3000, DIM)))
    vectors[draw.permutation(3000)[:2500]] = vectors[0]
    items = some_items(3000, draw=draw)
    for part in (slice(0, 2990), slice(2990, 3000)):
        store.put(items[part], vectors[part])
        brute.put(items[part], vectors[part])
        in_time(lambda: store.search(vectors[:1], 10))  # a segment of its own
    gone = [item.id for item in items[:dead]]
    store.remove(gone)
    brute.remove(gone)
    queries = on("sphere", draw.standard_normal((35, DIM)))
    for query, answer in zip(queries, in_time(lambda: store.search(queries, 10)), strict=True):
        assert same(answer, brute.search(query, 10))
    store.close()


SCALES = (1e-44, 1e-38, 1e-30, 1e-25, 1e-21, 1e-18, 1e-10, 1e5, 1e14)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_scale(new_place, geometry):
    """Squares of small numbers vanish in float32; in float64 they do not."""
    draw = np.random.default_rng(1)
    for scale in SCALES if geometry == "none" else SCALES[:-2]:
        store, brute = places.created(new_place(), Identity("f", geometry, DIM)), Brute(geometry)
        vectors = (scale * (1 + clouds("random", 400, draw) * draw.choice([1e-3, 1.0], (400, 1)))).astype(np.float32)
        items = some_items(400, draw=draw)
        store.put(items, vectors)
        brute.put(items, vectors)
        queries = np.concatenate([vectors[:2], (scale * clouds("random", 2, draw)).astype(np.float32)])
        for query, answer in zip(queries, store.search(queries, 10), strict=True):
            assert same(answer, brute.search(query, 10)), scale
        store.close()


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_scales_side_by_side(tmp_path, geometry):
    """Segments, items and queries of every length in one index."""
    draw = np.random.default_rng(2)
    store, brute = SqliteStore.create(tmp_path / "index", Identity("f", geometry, DIM)), Brute(geometry)
    for number, scales in enumerate(([1e-40], [1e-20, 1e-10], [1e-30], [1e12, 1e-12])):
        count = 400 >> number
        vectors = clouds("random", count, draw) * draw.choice(scales, (count, 1))
        store.put(some_items(count, 1000 * number), vectors.astype(np.float32))
        brute.put(some_items(count, 1000 * number), vectors.astype(np.float32))
        store.search(np.zeros((1, DIM), np.float32), 1)  # a segment of its own
    queries = clouds("random", 10, draw) * np.logspace(-44, 14, 10)[:, None]
    queries = np.concatenate([queries, np.zeros((1, DIM))]).astype(np.float32)
    for query, answer in zip(queries, store.search(queries, 10), strict=True):
        assert same(answer, brute.search(query, 10))
    store.close()


def test_a_query_too_long_for_float32(tmp_path):
    """In units of such short vectors the query is 1e54: most scores would be −∞, as if the items were removed."""
    draw = np.random.default_rng(3)
    store, brute = SqliteStore.create(tmp_path / "index", Identity("f", "sphere", 1)), Brute("sphere")
    vectors = np.concatenate([np.full(200, 4), 0.1 * draw.random(1800)])[:, None] * 1e-40
    store.put(some_items(2000), vectors.astype(np.float32))
    brute.put(some_items(2000), vectors.astype(np.float32))
    query = np.full((1, 1), 1e14, np.float32)
    assert same(store.search(query, 210)[0], brute.search(query[0], 210))
    store.close()


def test_items_left_out_do_not_answer(new_place):
    draw = np.random.default_rng(0)
    store = places.created(new_place(), Identity("f", "sphere", DIM))
    items, vectors = some_items(50, draw=draw), on("sphere", clouds("random", 50, draw))
    store.put(items, vectors)
    (answer,) = store.search(vectors[:1], 5, leave_out=[items[0].id])
    assert items[0].id not in [hit.id for hit in answer.hits]
    assert len(answer.hits) == 5
    store.close()


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", ["random", "collapsed", "duplicated"])
def test_many_queries_in_one_pass(tmp_path, geometry, kind):
    """Several blocks, a segment that is no multiple of one, removed items, more queries than go together."""
    draw = np.random.default_rng(5)
    store, brute = SqliteStore.create(tmp_path / "index", Identity("f", geometry, DIM)), Brute(geometry)
    items, vectors = some_items(9500, draw=draw), on(geometry, clouds(kind, 9500, draw))
    for part in (slice(0, 9000), slice(9000, 9500)):
        store.put(items[part], vectors[part])
        brute.put(items[part], vectors[part])
    gone = [item.id for item in items[4090:4100]]
    store.remove(gone)
    brute.remove(gone)
    queries = np.concatenate([vectors[4080:4100], on(geometry, clouds(kind, 3, draw))])
    for query, answer in zip(queries, store.search(queries, 7), strict=True):
        assert same(answer, brute.search(query, 7))
    store.close()


@pytest.mark.parametrize("width", [16, 20, 128, 1280])
def test_both_ways_to_multiply_agree(width):
    """Products by the processor's instructions and by the loop: the same integers, so the same scores."""
    from lookalike.search.scan import dot_products
    from lookalike.search.scan import rounded as scan

    draw = np.random.default_rng(width)
    rounded = scan.round_vectors(on("sphere", draw.standard_normal((9001, width))), True)
    queries = on("sphere", draw.standard_normal((7, width)))
    scores = np.empty((2, 7, 9001), np.float32)
    scan.rounded_scores(rounded, queries, scores[0])
    for few in (slice(0, 4), slice(4, 7)):
        assert len(queries[few]) < dot_products.LEAST  # the loop
        scan.rounded_scores(rounded, queries[few], scores[1, few])
    assert np.abs(scores[0] - scores[1]).max() <= 2**-22


def test_a_processor_that_multiplies_wrongly_is_not_used(monkeypatch):
    import torch

    from lookalike.search.scan import dot_products

    monkeypatch.setattr(torch, "_int_mm", lambda one, other: (one.int() @ other.int()).clamp(-32768, 32767))
    assert not dot_products.exact.__wrapped__(128)


def test_products_are_those_of_integers():
    from lookalike.search.scan import dot_products

    draw = np.random.default_rng(0)
    queries, items = (draw.integers(-5, 6, (rows, 16), dtype=np.int8) for rows in (32, dot_products.ROWS))
    assert np.array_equal(dot_products.products(queries, items), queries.astype(np.int32) @ items.astype(np.int32).T)


def test_only_large_blocks_are_multiplied_by_the_processors_own_way():
    from lookalike.search.scan import dot_products

    def usable(*sizes):
        return dot_products.usable(*sizes, exact=lambda width: width != 32)

    least = (dot_products.LEAST, dot_products.ROWS, dot_products.NARROWEST)
    assert usable(*least)
    for place in range(3):
        assert not usable(*(size - (number == place) for number, size in enumerate(least)))
    assert not usable(*least[:2], 18)
    assert not usable(*least[:2], 32)


def test_hidden_scores_reach_no_floor():
    from lookalike.search.scan import rounded as scan

    scores = np.array([-np.inf, 2.0, -1e38, -np.inf, 3.0], np.float32)
    assert scan.places_above(scores, -np.inf).tolist() == [1, 2, 4]
    assert scan.places_above(scores, 2.0).tolist() == [1, 4]
