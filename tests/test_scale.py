"""The page about scale says what its script computes, from figures that are all used and all have a source."""

import doctest
import json

import pytest

from docs import scale_table
from docs.scale_table import BEGIN, END, FIGURES, PAGE, SIZES, Needs


def facts():
    content = json.loads(FIGURES.read_text())
    return {name: fact["value"] for kind in content.values() for name, fact in kind.items()}


def rows(known):
    return [[cell(Needs(size, known)) for size in SIZES.values()] for cell in scale_table.ROWS.values() if cell]


def test_the_tables_of_the_page_are_those_of_the_script():
    printed = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert printed == scale_table.tables(), "run python -m docs.scale_table --write"


def test_every_figure_has_a_source_and_counts():
    content = json.loads(FIGURES.read_text())
    for kind in content.values():
        for fact in kind.values():
            assert set(fact) == {"what", "value", "unit", "source"}
            assert fact["value"] > 0
            assert fact["source"]
    for name, value in facts().items():
        others = [facts() | {name: factor * value} for factor in (3, 1 / 3)]
        assert any(rows(other) != rows(facts()) for other in others), f"{name} changes nothing"


def test_the_arithmetic_by_hand():
    ten = Needs(
        10,
        facts()
        | {
            "photo_bytes": 1e5,
            "decoded_per_second": 500,
            "embed_ms": 3,
            "server_cores": 10,
            "core_efficiency": 0.5,
            "millions_per_machine": 5,
        },
    )
    assert ten.photo_bytes() == 1e12
    assert ten.core_hours() == pytest.approx(10e6 * 5e-3 / 3600)
    assert ten.embedding_machines() == 2
    assert ten.embedding_hours() == pytest.approx(ten.core_hours() / (2 * 10 * 0.5))
    hundred = Needs(
        100,
        facts()
        | {"scan_bytes": 100, "server_bandwidth": 1e10, "pass_seconds": 0.1, "cache_bytes": 1, "queries_of_a_pass": 1},
    )
    assert hundred.scan_servers() == 10
    assert hundred.scan_answers() == pytest.approx(10)


def test_the_examples_of_the_script():
    assert doctest.testmod(scale_table).failed == 0


def test_the_benchmark_of_postgres_feeds_the_figures(tmp_path):
    """Two sizes and two engines: the larger one of one server counts, and the assumptions become measurements."""
    copy, file = tmp_path / "scale.json", tmp_path / "postgres.json"
    copy.write_text(FIGURES.read_text())
    row = {"question": "all", "width": 128, "cores": 2, "load": 4.0, "build": 0.0, "size": 700.0, "p50": 9.0}
    near = row | {"engine": "PostgreSQL, approximate", "build": 30.0, "size": 1300.0, "p50": 1.0}
    file.write_text(
        json.dumps(
            [
                near | {"rows": 1000},
                row | {"engine": "PostgreSQL, exact", "rows": 1000, "size": 1.0},
                near | {"rows": 100_000},
                row | {"engine": "PostgreSQL, exact", "rows": 100_000},
                near | {"question": "1%"},
                near | {"engine": "PostgreSQL, two shards, approximate", "rows": 100_000, "p50": 5.0},
            ]
        )
    )
    scale_table.take(file, copy)
    scale_table.take(file, copy)  # a second time, too
    content = json.loads(copy.read_text())
    values = {
        name: content["measured"][name]["value"] for name in scale_table.postgres_figures(json.loads(file.read_text()))
    }
    assert values == {
        "row_bytes": 700,
        "graph_bytes": 600,
        "copy_s_per_million": 40,
        "graph_core_s_per_million": 720,
        "graph_query_ms": 1.2,
    }
    assert not values.keys() & content["assumed"].keys()
    assert "100,000 rows" in content["measured"]["row_bytes"]["source"]
    assert "to be measured" not in copy.read_text()
    file.write_text("[]")
    with pytest.raises(SystemExit, match=r"run benchmarks\.postgres"):
        scale_table.take(file, copy)
