"""Comparing runs: who is one method, which differences are called clear, what stands on page and terminal."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lookalike.cli import app
from lookalike.errors import UserError
from lookalike.report.compare import as_text, collect, compare, write
from lookalike.report.compare.published import datasets, of_dataset
from tests.report.compared import finished, study


def test_seeds_are_one_method_and_other_settings_another(tmp_path):
    runs = [finished(tmp_path / f"good-seed-{seed}", 0.2, seed) for seed in (0, 1)]
    runs.append(finished(tmp_path / "other", 0.2, 0, loss="margin"))
    collection = collect(runs)
    assert [(method.name, len(method.runs)) for method in collection.methods] == [("good", 2), ("other", 1)]
    assert collection.differing() == {"loss.name": ["triplet", "margin"]}
    assert [name for name, _ in collection.named_runs()] == ["good, seed 0", "good, seed 1", "other"]
    assert [method.optimistic for method in collection.methods] == [False, False]
    assert collect(runs[2:]).differing() == {}


def test_the_same_run_twice_is_two_methods(tmp_path):
    collection = collect([finished(tmp_path / name, 0.2) for name in ("a", "b")])
    assert [method.name for method in collection.methods] == ["a", "b"]


def test_folds_are_averaged_query_by_query(tmp_path):
    for fold in (1, 2):
        finished(tmp_path / "run" / f"fold-{fold}", 0.9, 0, fold=fold, draw=fold)
    (method,) = collect([tmp_path / "run"]).methods
    values = [run.results["model"].per_query["map@r"] for run in method.runs]
    assert not np.array_equal(*values)
    assert np.allclose(method.results()[0].per_query["map@r"], np.mean(values, 0))


def test_a_study_has_its_rows_and_its_baseline(tmp_path):
    content = compare([study(tmp_path)])
    assert [row.name for row in content.rows] == ["Loss: margin", "Loss: triplet"]
    rows = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(rows | {"rows": rows["rows"][::-1]}))
    assert [method.name for method in collect([tmp_path]).methods] == ["Loss: triplet", "Loss: margin"]
    assert content.collection.title == "Losses"
    gap = next(gap for gap in content.gaps if gap.metric == "map@r")
    assert (gap.name, gap.against) == ("Loss: triplet", "Loss: margin")
    assert gap.spread.seeds == 2
    assert gap.spread.over_seeds is not None


def test_the_difference_is_the_mean_over_pairs_and_clear_only_if_it_is(tmp_path):
    base = finished(tmp_path / "base", 0.9)
    good, twin = finished(tmp_path / "good", 0.1, loss="margin"), finished(tmp_path / "twin", 0.9, loss="nca")
    gaps = {gap.name: gap for gap in compare([base, good, twin], ["map@r"]).gaps}
    methods = {method.name: method.results()[0] for method in collect([base, good, twin]).methods}
    mean = np.mean(methods["good"].per_query["map@r"] - methods["base"].per_query["map@r"])
    assert gaps["good"].spread.mean == pytest.approx(mean)
    assert (gaps["good"].verdict, gaps["twin"].verdict) == ("better", "within the noise")
    assert gaps["twin"].spread.over_queries == (0.0, 0.0)


def test_other_test_images_are_not_paired(tmp_path):
    runs = [finished(tmp_path / "a", 0.1), finished(tmp_path / "b", 0.9, loss="nca", classes=6)]
    (gap,) = compare(runs, ["map@r"]).gaps
    assert gap.spread.over_queries is None
    assert gap.verdict.startswith("cannot tell")


def test_only_embeddings_will_do(tmp_path):
    run = finished(tmp_path / "a", 0.4)
    whole = compare([run, finished(tmp_path / "b", 0.4, loss="nca")]).rows[0].metrics["map@r"].mean
    for name in ("measured.json", "recipe.toml", "log.jsonl", "result.json"):
        (run / name).unlink()
    assert compare([run]).rows[0].metrics["map@r"].mean == pytest.approx(whole)


def test_page_table_and_figures(tmp_path):
    runs = [
        finished(tmp_path / "<i>a", 0.9),
        finished(tmp_path / "b", 0.2, loss="margin"),
        finished(tmp_path / "c", 0.5, loss="nca"),
    ]
    content = compare(runs, dataset="cub200")
    text = write(content, tmp_path / "out").read_text()
    assert "<i>a" not in text
    assert "&lt;i&gt;a" in text
    assert text.count("published: ") == len(of_dataset("cub200"))
    assert "Revisiting Training Strategies and Generalization Performance" in text
    names = {path.stem for path in (tmp_path / "out" / "figures").glob("*.svg")}
    assert {"results", "difference_map_at_r", "curves_validation", "curves_loss", "cost_seconds"} <= names
    assert not list((tmp_path / "out" / "figures").glob("*.png"))
    cost = (tmp_path / "out" / "figures" / "cost_seconds.svg").read_text()
    assert all(f'class="halo">{name}<' in cost for name in ("&lt;i&gt;a", "b", "c"))  # the dots carry names
    numbers = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert "001_8fcd70de3c9af582.txt" in {row["document"] for row in numbers["published"]}
    assert {gap["verdict"] for gap in numbers["differences"]} <= {"better", "worse", "within the noise"}
    assert "published, not measured here" in as_text(content)


def test_the_verb(tmp_path):
    runs = [str(finished(tmp_path / name, noise, loss=name)) for name, noise in (("nca", 0.9), ("margin", 0.1))]
    shown = CliRunner().invoke(app, ["compare", *runs, "--out", str(tmp_path / "out"), "--against", "margin"])
    assert shown.exit_code == 0, shown.exception
    assert "worse" in shown.stdout
    assert shown.stdout.splitlines()[-1].endswith("compare.html")


def test_files_that_a_study_keeps_beside_its_cells_are_ignored(tmp_path):
    """`compare study/cells/*` names them too."""
    run = finished(tmp_path / "cells" / "nca-seed-0-0123456789", 0.4, loss="nca")
    for name in ("nca-seed-0-0123456789.claim", "margin-seed-0-0123456789.failed"):
        (run.parent / name).write_text("process 7\n")
    assert len(compare(sorted(run.parent.iterdir())).rows) == 1


def test_mistakes_are_one_line(tmp_path):
    run = finished(tmp_path / "a", 0.4)
    for wrong, words in (
        (lambda: compare([tmp_path / "nowhere"]), "is not a folder"),
        (lambda: compare([run], ["nmi"]), "not every run has measured 'nmi'. Possible: recall@1, map@r"),
        (lambda: compare([run], baseline="b"), "there is no 'b' to compare with. Possible: a"),
        (lambda: compare([run], dataset="cub20"), "did you mean 'cub200'"),
    ):
        with pytest.raises(UserError, match=words):
            wrong()


def test_published_rows_name_document_protocol_and_backbone():
    for name in datasets():
        for row in of_dataset(name):
            assert row.document.endswith(".txt")
            assert row.protocol
            assert row.backbone
            assert all(0 <= value <= 1 for value in row.metrics.values())
