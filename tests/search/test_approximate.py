"""What a client remembers of its graph from one search to the next, without a server."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
from psycopg.pq import TransactionStatus

from lookalike.search.items import Identity
from lookalike.search.stores.postgres.approximate import (
    AGREEMENT,
    COUNTED,
    FEW,
    FILTERS,
    MOST,
    WIDEN,
    HnswGraph,
    SearchMemory,
    graph_for,
)
from lookalike.search.stores.postgres.building import WIDTHS, narrowest

pytestmark = pytest.mark.plain  # a search is described by a few fields here
GRAPH = HnswGraph(width=80, recall=0.99, items=10_000, date="today")


class Connection:
    """A server that counts as it is told, and notes what it was asked."""

    def __init__(self):
        self.rows, self.statements, self.widths = 0, [], []
        self.info = SimpleNamespace(transaction_status=TransactionStatus.IDLE)

    def execute(self, statement, parameters=()):
        if statement == WIDEN:
            self.widths += parameters
        else:
            self.statements.append(statement)
        return SimpleNamespace(fetchone=lambda: (self.rows,))


@pytest.fixture
def connection():
    return Connection()


def search(condition="price < 3", generation=1, k=10, graph=None, connection=None):
    identity = Identity(None, "sphere", 4, generation)
    snapshot = SimpleNamespace(identity=identity, graph=graph, connection=connection)
    return SimpleNamespace(
        snapshot=snapshot,
        condition=condition,
        table="items",
        k=k,
        filtered=bool(condition),
    )


def test_a_filter_leaves_few_items_up_to_a_multiple_of_the_root(connection):
    most = int(FEW * 100)
    for connection.rows, few in ((0, True), (most, True), (most + 1, False)):
        assert SearchMemory().few(search(connection=connection), GRAPH) is few
    assert f"WHERE price < 3 LIMIT {most + 1}" in connection.statements[0]


def test_a_count_is_remembered_for_its_condition_and_generation(connection):
    now = [50.0]
    memory, asked = SearchMemory(lambda: now[0]), partial(search, connection=connection)
    assert memory.few(asked(), GRAPH)
    connection.rows, now[0] = 10**6, 50 + COUNTED - 1
    assert memory.few(asked(), GRAPH)
    assert not memory.few(asked(generation=2), GRAPH)
    assert not memory.few(asked("price < 4"), GRAPH)
    now[0] += 1
    assert not memory.few(asked(), GRAPH)
    assert len(connection.statements) == 4


def test_not_every_condition_is_remembered(connection):
    memory = SearchMemory()
    for number in (*range(FILTERS + 1), FILTERS, 0):  # the first one is forgotten by the end, the last one is not
        memory.few(search(f"price < {number}", connection=connection), GRAPH)
    assert len(connection.statements) == FILTERS + 2


@pytest.mark.parametrize(
    ("width", "question", "candidates", "searched"),
    [
        (80, search(""), 40, 80),
        (20, search(""), 20, 20),
        (20, search("", k=30), 36, 36),
        (80, search(), 64, 80),
        (20, search(k=300), 1800, 1000),  # pgvector refuses more
    ],
)
def test_how_many_a_graph_names_and_how_widely_it_is_searched(width, question, candidates, searched):
    graph = replace(GRAPH, width=width)
    assert (graph.candidates(question), graph.width_for(question)) == (candidates, searched)


def test_what_status_says_of_a_graph():
    assert str(GRAPH) == "approximate (HNSW, ef 80): recall@10 0.990 on 400 of 10,000 items, today"
    few = str(replace(GRAPH, items=96, recall=0.84))
    assert few.endswith("0.840 on 96 of 96 items, today; that is less than 0.99: --exact drops the graph")


def test_a_graph_answers_unless_there_is_none_or_few_items_or_too_many_hits(connection):
    asked = partial(search, connection=connection)
    text = '{"width": 80, "recall": 0.99, "items": 10000, "date": "today"}'
    assert graph_for(asked(graph=None), SearchMemory()) is None
    assert graph_for(asked(graph=text), SearchMemory()) is None  # few
    assert graph_for(asked("", graph=text, k=MOST + 1), SearchMemory()) is None
    assert connection.widths == []
    assert graph_for(asked("", graph=text), SearchMemory()) == GRAPH
    connection.rows = 10**6
    assert graph_for(asked(graph=text), SearchMemory()) == GRAPH
    assert connection.widths == ["80"] * 2


@pytest.mark.parametrize("enough", [1, 20, 21, 57, 148, 149, 996])
def test_the_smallest_width_is_found_by_few_trials_each_a_tenth_wider(enough):
    tried = []

    def recall(width):
        tried.append(width)
        return AGREEMENT if width >= enough else AGREEMENT - 1e-9

    assert narrowest(recall) == next(width for width in WIDTHS if width >= enough)
    assert len(tried) <= 6
    assert max(wide / narrow for narrow, wide in pairwise(WIDTHS)) < 1.13


def test_a_graph_that_never_agrees_is_searched_as_widely_as_pgvector_can():
    assert narrowest(lambda _: 0.9) == WIDTHS[-1] <= 1000
