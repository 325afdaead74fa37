"""What a client remembers of its graph from one search to the next, without a server."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lookalike.search.items import Identity
from lookalike.search.stores.postgres import approximate
from lookalike.search.stores.postgres.approximate import COUNTED, FEW, FILTERS, HnswGraph, SearchMemory, graph_for

pytestmark = pytest.mark.plain  # a search is described by a few fields here
GRAPH = HnswGraph(width=80, recall=0.99, items=10_000, date="today")


def search(condition="price < 3", generation=1, k=10, graph=None):
    identity = Identity(None, "sphere", 4, generation)
    snapshot = SimpleNamespace(identity=identity, graph=graph, connection="connection")
    return SimpleNamespace(
        snapshot=snapshot, condition=condition, table="items", k=k, filtered=bool(condition),
    )  # fmt: skip


@pytest.fixture
def counts(monkeypatch):
    """How many items a condition leaves, the statements that counted them, and the time."""
    state = SimpleNamespace(rows=0, statements=[], now=50.0)

    def one(_snapshot, statement):
        state.statements.append(statement)
        return state.rows

    monkeypatch.setattr(approximate.rows, "one", one)
    monkeypatch.setattr(approximate, "time", SimpleNamespace(monotonic=lambda: state.now))
    return state


def test_a_filter_leaves_few_items_up_to_a_multiple_of_the_root(counts):
    most = int(FEW * 100)
    for rows, few in ((0, True), (most, True), (most + 1, False)):
        counts.rows = rows
        assert SearchMemory().few(search(), GRAPH) is few
    assert f"WHERE price < 3 LIMIT {most + 1}" in counts.statements[0]


def test_a_count_is_remembered_for_its_condition_and_generation(counts):
    memory = SearchMemory()
    assert memory.few(search(), GRAPH)
    counts.rows, counts.now = 10**6, counts.now + COUNTED - 1
    assert memory.few(search(), GRAPH)
    assert not memory.few(search(generation=2), GRAPH)
    assert not memory.few(search("price < 4"), GRAPH)
    counts.now += 1
    assert not memory.few(search(), GRAPH)
    assert len(counts.statements) == 4


def test_not_every_condition_is_remembered(counts):
    memory = SearchMemory()
    for number in range(FILTERS + 1):
        memory.few(search(f"price < {number}"), GRAPH)
    assert len(memory._few) == 1
    assert len(counts.statements) == FILTERS + 1


@pytest.mark.parametrize(
    ("width", "question", "candidates", "searched"),
    [
        (80, search(""), 40, 80), (20, search(""), 20, 20), (20, search("", k=30), 36, 36),
        (80, search(), 64, 80), (20, search(k=300), 1800, 1000),  # pgvector refuses more
    ],
)  # fmt: skip
def test_how_many_a_graph_names_and_how_widely_it_is_searched(width, question, candidates, searched):
    graph = replace(GRAPH, width=width)
    assert (graph.candidates(question), graph.width_for(question)) == (candidates, searched)


def test_what_status_says_of_a_graph():
    assert str(GRAPH) == "approximate (HNSW, ef 80): recall@10 0.990 on 100 of 10,000 items, today"
    few = str(replace(GRAPH, items=96, recall=0.84))
    assert few.endswith("0.840 on 96 of 96 items, today; that is less than 0.99: --exact drops the graph")


def test_a_graph_answers_unless_there_is_none_or_few_items_or_too_many_hits(counts, monkeypatch):
    widened = []
    monkeypatch.setattr(SearchMemory, "widen", lambda _, *how: widened.append(how))
    text = '{"width": 80, "recall": 0.99, "items": 10000, "date": "today"}'
    assert graph_for(search(graph=None), SearchMemory()) is None
    assert graph_for(search(graph=text), SearchMemory()) is None  # few
    assert graph_for(search("", graph=text, k=approximate.MOST + 1), SearchMemory()) is None
    assert widened == []
    assert graph_for(search("", graph=text), SearchMemory()) == GRAPH
    counts.rows = 10**6
    assert graph_for(search(graph=text), SearchMemory()) == GRAPH
    assert widened == [("connection", 80)] * 2
