"""A study that goes on from another machine's study.json: nothing is run twice, and the table is that of all runs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import difference, spread
from lookalike.runs.log import ignore
from lookalike.sweeps import adopt, gather, read, remaining, work
from lookalike.sweeps.earlier import joined
from tests.sweeps.test_study import STUDY, shapes, write

__all__ = ["shapes", "write"]  # fixtures


@pytest.fixture
def study(write):
    return read(write(STUDY + '[compare]\n"plain" = ["other"]\n'))


def first_seed(study):
    return replace(study, cells=tuple(cell for cell in study.cells if cell.recipe.seed == 0))


def test_what_another_machine_has_done_is_not_run_again(study, shapes, tmp_path):
    there, here, whole = (tmp_path / name for name in ("there", "here", "whole"))
    work(first_seed(study), shapes, there, ignore, lambda: False)
    (tmp_path / "study.json").write_text(json.dumps(gather(study, there)))
    adopt(study, tmp_path / "study.json", here)
    left = remaining(study, here)
    assert [(cell.row, cell.recipe.seed) for cell in left.cells] == [("plain", 1), ("other", 1)]
    work(left, shapes, here, ignore, lambda: False)
    work(study, shapes, whole, ignore, lambda: False)
    ours, truth = gather(study, here), gather(study, whole)
    assert (ours["done"], ours["cells"], ours["digest"]) == (4, 4, truth["digest"])
    for own, other in zip(ours["rows"] + ours["compare"], truth["rows"] + truth["compare"], strict=True):
        for kind in ("metrics", "differences"):
            for metric, spread_there in other.get(kind, {}).items():
                for name in ("mean", "std", "over_seeds", "seeds"):
                    np.testing.assert_allclose(own[kind][metric][name], spread_there[name], atol=1e-12)
        assert own.get("seeds") == other.get("seeds")
        for one, two in zip(own.get("runs", []), other.get("runs", []), strict=True):
            assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_the_interval_over_queries_is_never_narrower_than_that_of_all_runs_together():
    """Two rows with four runs on 300 queries: half of the runs in each part."""
    noise = np.random.default_rng(0)
    common = noise.normal(size=300)

    def result(shift):
        values = shift + 0.2 * common + 0.3 * noise.normal(size=300)
        return Result({"map@r": float(values.mean())}, {"map@r": values}, list(range(300)), {})

    own, other = [result(0.6) for _ in range(4)], [result(0.5) for _ in range(4)]
    parts = [content(own, other, runs) for runs in (range(2), range(2, 4))]
    together = joined(parts[1], parts[0])
    row = next(row for row in together["rows"] if row["name"] == "own")
    for ours, truth in ((row["metrics"], spread(own, "map@r")), (row["differences"], difference(own, other, "map@r"))):
        figure = ours["map@r"]
        assert figure["mean"] == pytest.approx(truth.mean)
        low, high = figure["over_queries"]
        assert high - low >= truth.over_queries[1] - truth.over_queries[0]
        assert high - low <= 1.5 * (truth.over_queries[1] - truth.over_queries[0])
        assert low < truth.mean < high
    assert row["differences"]["map@r"]["clear"] is True


def content(own, other, runs):
    """What a machine with these runs would write."""
    rows = []
    for name, results in (("own", own), ("other", other)):
        mine, base = [results[run] for run in runs], [other[run] for run in runs]
        gap = {"map@r": difference(mine, base, "map@r").as_json()} if name == "own" else {}
        rows.append(
            {
                "name": name,
                "seeds": list(runs),
                "seconds": [1.0] * len(mine),
                "failed": {},
                "differences": gap,
                "metrics": {"map@r": spread(mine, "map@r").as_json()},
                "runs": [{"seed": run, "seconds": 1.0, "metrics": {"map@r": results[run]["map@r"]}} for run in runs],
            }
        )
    return {"baseline": "other", "metrics": ["map@r"], "rows": rows, "compare": [], "cells": 8, "done": 4}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"digest": "x"}', '{"digest": "x", "rows": [{"name": "plain", "runs": [{"seed": 0}]}]}']
)
def test_a_file_that_is_not_of_a_study_is_refused(study, tmp_path, text):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(UserError, match=r"is not the study\.json of a study"):
        adopt(study, tmp_path / "study.json", tmp_path / "out")
    with pytest.raises(UserError, match=r"is not the study\.json of a study"):
        adopt(study, tmp_path / "missing.json", tmp_path / "out")


def test_results_of_another_plan_are_refused_and_what_was_adopted_stays(study, write, tmp_path):
    file, out = tmp_path / "study.json", tmp_path / "out"
    file.write_text(json.dumps({"digest": study.digest, "rows": [], "compare": []}))
    other = read(write(STUDY.replace("contrastive", "multi_similarity")))
    with pytest.raises(UserError, match="another study, or its recipe has changed"):
        adopt(other, file, out)
    assert not out.exists()
    adopt(study, file, out)
    before = (out / "earlier.json").read_text()
    file.write_text("another one")
    adopt(study, file, out)
    assert (out / "earlier.json").read_text() == before


def test_a_digest_does_not_depend_on_where_the_images_are(write):
    file = write()
    assert read(file, "here").digest == read(file, "there").digest == read(file).digest
    assert read(file, overrides=["train.steps=3"]).digest != read(file).digest


def test_a_pair_of_which_each_machine_has_one_run_counts_in_the_mean():
    runs = {"own": [0.6, 0.7, 0.9], "other": [0.5, 0.5, 0.5]}
    earlier, here = (
        {
            "baseline": "other",
            "metrics": ["map@r"],
            "compare": [],
            "cells": 6,
            "rows": [
                {
                    "name": name,
                    "failed": {},
                    "seeds": [],
                    "seconds": [],
                    "metrics": {},
                    "differences": {},
                    "runs": [{"seed": run, "seconds": 1.0, "metrics": {"map@r": runs[name][run]}} for run in own[name]],
                }
                for name in runs
            ],
        }
        for own in ({"own": [0, 1], "other": [0, 1, 2]}, {"own": [2], "other": []})
    )
    span = {"mean": 0.15, "seeds": 2, "over_queries": [0.1, 0.25]}
    earlier["rows"][0]["differences"] = {"map@r": span}
    gap = joined(here, earlier)["rows"][0]["differences"]["map@r"]
    assert (gap["seeds"], gap["mean"]) == (3, pytest.approx(0.7 / 3))
    assert gap["over_queries"] == pytest.approx((0.7 / 3 - 0.05, 0.7 / 3 + 0.1))
