"""The reproduction: every claim names what exists, verdicts follow the figures, the page is the one that is drawn."""

import json

import pytest

from lookalike.sweeps import read
from reproduction.figures import Kept
from reproduction.page import PAGE, claims, draw
from reproduction.planned import SEARCH, STUDIES
from reproduction.verdicts import CONTRADICTED, NOISE, NOT_HERE, NOT_RUN, REPRODUCED, judge


def kept(**rows):
    """A study with such values of map@r per run, and rows named by keyword."""
    return Kept("x", {"baseline": None, "rows": [
        {"name": name, "runs": [{"seed": 0, "fold": fold, "best_step": 100 + fold, "metrics": {"map@r": value}}
                                for fold, value in enumerate(values, start=1)]}
        for name, values in rows.items()
    ]})  # fmt: skip


@pytest.mark.parametrize(
    ("own", "rises", "word"),
    [
        ([0.31, 0.32, 0.33], True, REPRODUCED),
        ([0.31, 0.32, 0.33], False, CONTRADICTED),
        ([0.29, 0.24, 0.23], True, CONTRADICTED),
        ([0.31, 0.29, 0.30], True, NOISE),
        ([0.31], True, NOT_RUN),
        ([], True, NOT_RUN),
    ],
)
def test_a_pair_is_judged_by_the_interval_of_its_differences(own, rises, word):
    study = kept(base=[0.30, 0.305, 0.31] if word != CONTRADICTED or not rises else [0.5, 0.46, 0.44], other=own)
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r", "rises": rises}
    assert judge(claim, lambda _: study).word == word


def test_an_interval_over_queries_must_leave_out_zero_too():
    study = kept(base=[0.30, 0.30, 0.30], other=[0.31, 0.311, 0.312])
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r"}
    assert judge(claim, lambda _: study).word == REPRODUCED
    pair = {"row": "other", "against": "base", "differences": {"map@r": {"over_queries": [-0.01, 0.03]}}}
    study.content["compare"] = [pair]
    assert judge(claim, lambda _: study).word == NOISE


def test_trends_spans_and_steps():
    study = kept(a=[0.1, 0.11], b=[0.2, 0.19], c=[0.3, 0.31])
    trend = {"kind": "trend", "study": "x", "rows": ["a", "b", "c"], "metric": "map@r"}
    assert judge(trend, lambda _: study).word == REPRODUCED
    assert judge(trend | {"rises": False}, lambda _: study).word == CONTRADICTED
    assert judge(trend | {"rows": ["a", "z"]}, lambda _: study).word == NOT_RUN
    span = {"kind": "span", "study": "x", "metric": "map@r", "count": 3, "at_most": 0.1}
    assert judge(span, lambda _: study).word == CONTRADICTED
    assert judge(span | {"at_most": 0.3}, lambda _: study).word == REPRODUCED
    assert judge(span | {"count": 4}, lambda _: study).word == NOT_RUN
    steps = {"kind": "steps", "study": "x", "row": "a", "against": "b"}
    assert judge(steps, lambda _: study).word == NOISE  # equal
    assert judge({"untestable": "no data"}, lambda _: study).word == NOT_HERE


def test_instances_count_up_to_the_weights_that_were_kept():
    instances = [{"step": step, "radius": radius} for step, radius in ((0, 9.0), (40, 0.5), (80, 0.4), (200, 0.9))]
    study = kept(a=[0.1, 0.1])
    for fold, run in enumerate(study.content["rows"][0]["runs"]):
        run["instances"] = [each | {"radius": each["radius"] + 0.001 * fold * each["step"]} for each in instances]
    claim = {"kind": "instances", "study": "x", "row": "a", "figure": "radius", "rises": False}
    verdict = judge(claim, lambda _: study)
    assert (verdict.word, verdict.ours.split(" ")[0]) == (NOISE, "−15.6%")  # of −20 % and −11.1 %
    del study.content["rows"][0]["runs"][0]["instances"][1]
    assert judge(claim, lambda _: study).ours.startswith("−11.1%")


def test_every_claim_names_rows_and_metrics_that_its_study_has():
    studies = {planned.name: read(planned.file) for planned in STUDIES}
    for claim in claims():
        if "untestable" in claim or "known" in claim or claim["study"] == SEARCH:
            continue
        study = studies[claim["study"]]
        named = [claim[key] for key in ("row", "against") if key in claim]
        named += claim["rows"] if isinstance(claim.get("rows"), list) else []
        assert set(named) <= set(study.rows), claim
        assert {claim.get("metric", study.metrics[0]), *claim.get("metrics", [])} <= set(study.metrics), claim
        if "rows_of" in claim:
            assert sum(row.startswith(claim["rows_of"]) for row in study.rows) == claim["count"]


def test_the_page_is_drawn_from_what_is_kept():
    assert PAGE.read_text(encoding="utf-8") == draw()


def test_the_page_can_be_drawn_before_anything_was_run(tmp_path):
    text = draw(tmp_path)
    assert "not run yet" in text
    assert "**reproduced**" in text  # what is known from elsewhere


def test_tables_and_courses_of_a_kept_study_are_drawn(tmp_path):
    run = {
        "seed": 0,
        "fold": 1,
        "best_step": 50,
        "seconds": 2.0,
        "validation": {"map@r": 0.3},
        "metrics": {"recall@1": 0.5, "map@r": 0.25},
    }
    run["course"] = [{"step": 0, "map@r": 0.1}, {"step": 25, "map@r": 0.2}]
    rows = [{"name": name, "runs": [run, run | {"fold": 2}], "seconds": [2.0, 2.0]} for name in ("C1", "C1-CCP-L")]
    content = {"title": "CCP", "metrics": ["recall@1", "map@r"], "cells": 160, "done": 4, "rows": rows}
    (tmp_path / "cub_ccp.json").write_text(json.dumps(content))
    text = draw(tmp_path)
    assert "| C1 | 2 | 50.00 ± 0.00 (paper: 56.21) | 25.00 ± 0.00 (paper: 19.06) | 30.00 | 50 |" in text
    assert "| C1 | 10.00 | 20.00 |" in text
    assert "| `cub_ccp` | 4 of 160 | 0.0 |" in text
    assert "25.00 → 25.00, +0.00 [+0.00, +0.00], 2 runs | **within noise** so far |" in text
