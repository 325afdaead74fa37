"""Shapes over runs: on train where there is, on test otherwise; correlations."""

import json

import pytest
from typer.testing import CliRunner

from lookalike.analysis.spectra import correlations, draw_spectra, shapes
from lookalike.cli import app
from lookalike.evaluation import evaluate
from lookalike.runs.finished import load_test
from tests.fixtures.figure_rules import assert_readable
from tests.report.compared import finished, study

NOISES = (0.1, 0.6, 1.1)


@pytest.fixture
def runs(tmp_path):
    return [finished(tmp_path / f"r{place}", noise, loss=f"l{place}") for place, noise in enumerate(NOISES)]


def test_test_vectors_are_measured_where_train_is_not(runs):
    result = shapes(runs)
    arrays = load_test(runs[1])
    expected = evaluate(arrays["embeddings"], arrays["labels"].tolist(), metrics=["rho", "intra", "inter"])
    assert {shape.on for shape in result} == {"test"}
    for name in ("rho", "intra", "inter"):
        assert result[1].measures[name] == pytest.approx(expected[name], rel=1e-4)


def test_correlation_of_recall_with_tightness(runs):
    result = correlations(shapes(runs))
    assert result["intra"] < -0.8  # wider classes, fewer hits
    assert correlations(shapes(runs[:2])) == {}


def test_a_study_is_measured_on_train(tmp_path):
    result = shapes([study(tmp_path)])
    assert [shape.on for shape in result] == ["train"] * 4
    assert result[0].values is None
    assert_readable(draw_spectra(result))


def test_figure_and_verb(runs):
    assert_readable(draw_spectra(shapes(runs)))
    shown = CliRunner().invoke(app, ["analyse", "spectrum", *map(str, runs), "--json"])
    assert set(json.loads(shown.stdout)["correlation with recall@1"]) >= {"rho", "intra_inter"}
