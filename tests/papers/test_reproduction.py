"""The reproduction: every claim names what exists, verdicts follow the figures, the page is the one that is drawn."""

import json
import re
import signal
import sys
import time
from functools import cache
from typing import Any

import pytest

from lookalike.sweeps import read
from papers.reproduction import pictures
from papers.reproduction.figures import Kept
from papers.reproduction.page import PAGE, claims, draw
from papers.reproduction.pictures import FOLDER
from papers.reproduction.planned import ROOT, SEARCH, STUDIES
from papers.reproduction.run import kept_whole
from papers.reproduction.untrained import BEDS, starts
from papers.reproduction.verdicts import CONTRADICTED, NOISE, NOT_HERE, NOT_RUN, REPRODUCED, judge
from tests.cli.processes import Python


def kept(**rows):
    """A study with such values of map@r per run, and rows named by keyword."""
    return Kept(
        "x",
        {
            "baseline": None,
            "rows": [
                {
                    "name": name,
                    "runs": [
                        {"seed": 0, "fold": fold, "best_step": 100 + fold, "metrics": {"map@r": value}}
                        for fold, value in enumerate(values, start=1)
                    ],
                }
                for name, values in rows.items()
            ],
        },
    )


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
    study.content["compare"] = [{**pair, "row": "base", "against": "other"}]  # the study compared them the other way
    assert judge(claim, lambda _: study).word == NOISE
    pair["differences"]["map@r"]["over_queries"] = [-0.03, -0.01]
    study.content["compare"] = [{**pair, "row": "base", "against": "other"}]
    assert judge(claim, lambda _: study).word == REPRODUCED


def test_both_intervals_are_printed_where_there_are_two():
    study = kept(base=[0.30, 0.30, 0.30], other=[0.31, 0.311, 0.312])
    study.content["compare"] = [
        {"row": "other", "against": "base", "differences": {"map@r": {"over_queries": [-0.01, 0.03]}}}
    ]
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r"}
    ours = judge(claim, lambda _: study).ours
    assert ours == "30.00 → 31.10, +1.10 [+0.85, +1.35] [−1.00, +3.00], 3 runs"


def test_proxies_that_were_never_renewed_say_nothing_about_several_instances():
    study = kept(base=[0.30, 0.30], other=[0.31, 0.311])  # best steps 101 and 102
    study.content.update(cells=4, done=4)
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r"}
    for later, word, count in ((150, NOT_HERE, 0), (102, REPRODUCED, 1)):
        for run in study.content["rows"][1]["runs"]:
            run["instances"] = [{"step": 0}, {"step": later}]
        verdict = judge(claim | {"renewal": True}, lambda _: study)
        assert verdict.word == word
        assert verdict.ours.endswith(f"2 runs; proxies renewed in {count} of 2 runs")
        assert judge(claim, lambda _: study).word == REPRODUCED


def test_a_doubted_claim_is_not_testable_whatever_its_figures():
    study = kept(base=[0.30, 0.30], other=[0.31, 0.311])
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r"}
    claim["doubt"] = "no negatives"
    verdict = judge(claim, lambda _: study)
    assert verdict.word == NOT_HERE
    assert verdict.ours.startswith("30.00 → 31.05, +1.05")
    assert verdict.ours.endswith("; no negatives")
    assert judge(claim | {"row": "missing"}, lambda _: study).word == NOT_RUN


def test_a_row_that_never_got_better_than_its_start_is_no_opponent():
    study = kept(base=[0.30, 0.30, 0.30], other=[0.31, 0.311, 0.312])
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r"}
    for run, step in zip(study.content["rows"][0]["runs"], (0, 0, 25), strict=True):
        run["best_step"] = step
    assert judge(claim, lambda _: study).word == REPRODUCED
    study.content["rows"][0]["runs"][2]["best_step"] = 0
    verdict = judge(claim, lambda _: study)
    assert verdict.word == NOT_HERE
    assert verdict.ours.endswith("3 runs; base never got better than its start")


def of_metric(name, **rows):
    """As `kept`, of another metric."""
    study = kept(**rows)
    for row in study.content["rows"]:
        for run in row["runs"]:
            run["metrics"] = {name: run["metrics"]["map@r"]}
    return study


@pytest.mark.parametrize(
    ("start", "word"),
    [
        ({"precision@1": 0.309}, REPRODUCED),
        ({"precision@1": 0.311}, NOT_HERE),  # its nearest neighbours were no better than before
        ({"precision@1": 0.309, "map": 0.311}, NOT_HERE),  # what the claim is judged by was not
        ({"precision@1": 0.309, "map": 0.309, "nmi": 0.9}, REPRODUCED),  # another metric says nothing
    ],
)
def test_a_baseline_that_ends_no_better_than_an_untrained_head_is_no_opponent(start, word):
    values = {"Contrastive": [0.30, 0.31, 0.32], "Top-k precision": [0.35, 0.36, 0.38]}
    study = kept(**values)
    for row in study.content["rows"]:
        for run in row["runs"]:
            run["metrics"] = dict.fromkeys(("precision@1", "map", "nmi"), run["metrics"]["map@r"])
    studies = {"cub_top_k": study, "cub_untrained": kept(**{"dim 128": [0.0]})}
    studies["cub_untrained"].content["rows"][0]["runs"][0]["metrics"] = start
    claim = {"kind": "pair", "study": "cub_top_k", "row": "Top-k precision", "against": "Contrastive", "metric": "map"}
    verdict = judge(claim, studies.__getitem__)
    assert verdict.word == word
    assert ("Contrastive ended no better than an untrained head" in verdict.ours) is (word == NOT_HERE)


def test_a_row_is_compared_with_the_untrained_head_of_its_own_dimension():
    assert starts("cub_ms_ablation_printed")["MS"].row == "dim 64"
    assert starts("cars_ccp")["C1"] == ("cars_untrained", "dim 128")
    rows = {bed: set(read(ROOT / "papers" / "reproduction" / f"{bed}.toml").rows) for bed in BEDS.values()}
    for claim in claims():
        if claim.get("kind") == "pair" and (start := starts(claim["study"]).get(claim["against"])):
            assert start.row in rows[start.study], claim


@pytest.mark.parametrize(("start", "word"), [(0.09, REPRODUCED), (0.106, NOT_HERE)])
def test_losses_are_not_close_where_one_of_them_learned_nothing(start, word):
    study = of_metric("recall@1", NPair=[0.1, 0.11], MS=[0.2, 0.19])
    studies = {"cub_roth_losses": study, "cub_untrained": of_metric("recall@1", **{"dim 128": [start]})}
    claim = {"kind": "span", "study": "cub_roth_losses", "metric": "recall@1", "count": 2, "at_most": 0.3}
    assert judge(claim, studies.__getitem__).word == word


def test_what_is_said_about_mixup_is_what_its_source_says():
    said = [claim for claim in claims() if claim.get("study") == "cub_mixup" and claim["metric"] == "recall@1"]
    assert len(said) == 3
    assert all(not claim["rises"] and "level" not in claim and "costs" in claim["says"] for claim in said)


def test_every_claim_of_cars_has_five_paired_runs_or_more():
    judged = [claim for claim in claims() if claim.get("study", "").startswith("cars_")]
    gaps = [Kept.read(claim["study"]).gap(claim["row"], claim["against"], claim["metric"]) for claim in judged]
    assert gaps
    assert all(gap is not None and gap.seeds >= 5 and gap.over_queries is not None for gap in gaps)


def test_a_trend_of_gaps_is_judged_by_the_gaps():
    study = kept(one=[0.1, 0.1], two=[0.1, 0.1], three=[0.1, 0.1], a=[0.2, 0.21], b=[0.19, 0.19], c=[0.18, 0.17])
    claim = TREND | {"study": "x", "rows": ["a", "b", "c"], "against": ["one", "two", "three"], "rises": False}
    verdict = judge(claim, lambda _: study)
    assert verdict.word == REPRODUCED
    assert verdict.ours.startswith("+10.50 → +9.00 → +7.50; r = −1.00")


ROWS = {"a": [0.1, 0.11], "b": [0.2, 0.19], "c": [0.3, 0.31]}
RISING = {"a": [0.1, 0.11], "b": [0.2, 0.21], "c": [0.3, 0.31]}
WAVY = {"a": [0.1, 0.3], "b": [0.2, 0.2], "c": [0.3, 0.1]}
TREND = {"kind": "trend", "rows": ["a", "b", "c"], "metric": "map@r"}
SPAN = {"kind": "span", "metric": "map@r", "count": 3}


@pytest.mark.parametrize(
    ("claim", "rows", "word"),
    [
        (TREND, RISING, REPRODUCED),
        (TREND | {"rises": False}, RISING, CONTRADICTED),
        (TREND, WAVY, NOISE),
        (TREND | {"rows": ["a", "z"]}, ROWS, NOT_RUN),
        (SPAN | {"at_most": 0.1}, ROWS, CONTRADICTED),
        (SPAN | {"at_most": 0.3}, ROWS, REPRODUCED),
        (SPAN | {"at_most": 0.21}, ROWS, NOISE),  # 0.2 ± 0.03
        (SPAN | {"at_most": 0.3, "count": 4}, ROWS, NOT_RUN),
        ({"untestable": "no data"}, ROWS, NOT_HERE),
        ({"known": "by a test", "verdict": REPRODUCED}, ROWS, REPRODUCED),
    ],
)
def test_every_verdict_on_trends_and_spans(claim, rows, word):
    study = kept(**rows)
    assert judge(claim | {"study": "x"}, lambda _: study).word == word


def test_a_trend_shows_the_interval_it_is_judged_by():
    wavy = judge(TREND | {"study": "x"}, lambda _: kept(**WAVY))
    assert wavy.ours == "20.00 → 20.00 → 20.00; r = +0.00 [−1.00, +1.00], 2 runs"
    rising = {"a": [0.1, 0.1, 0.1], "b": [0.2, 0.19, 0.11], "c": [0.25, 0.31, 0.3]}
    assert judge(TREND | {"study": "x"}, lambda _: kept(**rising)).ours.endswith("r = +0.98 [+0.10, +1.00], 3 runs")


@pytest.mark.parametrize(
    ("steps", "rises", "word"),
    [
        ([130, 133, 136], True, REPRODUCED),
        ([130, 133, 136], False, CONTRADICTED),
        ([90, 102, 114], True, NOISE),
        ([130], True, NOT_RUN),
    ],
)
def test_every_verdict_on_steps(steps, rises, word):
    study = kept(base=[0.1, 0.1, 0.1], other=[0.1] * len(steps))  # the base takes 101 to 103
    for run, step in zip(study.content["rows"][1]["runs"], steps, strict=True):
        run["best_step"] = step
    claim = {"kind": "steps", "study": "x", "row": "other", "against": "base", "rises": rises}
    assert judge(claim, lambda _: study).word == word


@pytest.mark.parametrize(
    ("ends", "rises", "word"),
    [
        ((0.40, 0.41), False, REPRODUCED),
        ((0.40, 0.41), True, CONTRADICTED),
        ((0.40, 0.60), False, NOISE),
    ],
)
def test_every_verdict_on_instances(ends, rises, word):
    study = kept(a=[0.1, 0.1])
    for run, end in zip(study.content["rows"][0]["runs"], ends, strict=True):
        run["instances"] = [{"step": step, "radius": value} for step, value in ((0, 9.0), (40, 0.5), (80, end))]
    claim = {"kind": "instances", "study": "x", "row": "a", "figure": "radius", "rises": rises}
    assert judge(claim, lambda _: study).word == word


def test_nothing_happens_where_little_can():
    claim = {"kind": "pair", "study": "x", "row": "other", "against": "base", "metric": "map@r", "rises": False}
    level = claim | {"level": 0.01}
    near, wide = kept(base=[0.3] * 3, other=[0.299, 0.3, 0.301]), kept(base=[0.3] * 3, other=[0.27, 0.3, 0.33])
    above, far = (kept(base=[0.3] * 3, other=other) for other in ([0.302, 0.302, 0.303], [0.32, 0.32, 0.321]))
    studies = (near, wide, above, far)
    plain = [judge(claim, lambda _, study=study: study).word for study in studies]
    assert plain == [NOISE, NOISE, CONTRADICTED, CONTRADICTED]
    limited = [judge(level, lambda _, study=study: study).word for study in studies]
    assert limited == [REPRODUCED, NOISE, REPRODUCED, CONTRADICTED]


@pytest.mark.parametrize(
    ("recalls", "rises", "word"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.61], True, REPRODUCED),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.61], False, CONTRADICTED),
        ([0.3, 0.1, 0.5, 0.2, 0.4, 0.3], True, NOISE),
        ([0.1, 0.2, 0.3], True, NOT_RUN),
    ],
)
def test_every_verdict_on_correlations(recalls, rises, word):
    study = kept(**{f"row {number}": [0.1 * number] for number in range(len(recalls))})
    for row, recall in zip(study.content["rows"], recalls, strict=True):
        row["runs"][0]["metrics"]["recall@1"] = recall
    claim = {"kind": "correlation", "study": "x", "metrics": ["recall@1", "map@r"], "rows": 6, "rises": rises}
    assert judge(claim, lambda _: study).word == word


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((0.3, 0.29), REPRODUCED),
        ((0.29, 0.3), CONTRADICTED),
        ((0.299, 0.3), NOISE),
        ((0.3, None), NOT_RUN),
        ((None, 0.3), NOT_RUN),
    ],
)
def test_every_verdict_on_a_search(values, word):
    """Two trials inside the claimed limits, the better one first, and one outside."""
    inside, outside = values
    trials = [
        {"value": inside, "params": {"ccp.pull": 1e-2, "ccp.proxies": 8}},
        {"value": inside and inside - 0.1, "params": {"ccp.pull": 1e-3, "ccp.proxies": 2}},
        {"value": outside, "params": {"ccp.pull": 0.5, "ccp.proxies": 8}},
    ]
    claim = {"kind": "search", "study": "x", "within": {"ccp.pull": [1e-5, 1e-1]}, "apart": 0.003}
    verdict = judge(claim, lambda _: Kept("x", {"rows": [], "trials": trials}))
    assert verdict.word == word
    if word == REPRODUCED:
        assert verdict.ours == (
            "validation map@r 30.00 (pull 0.01, proxies 8), the best of 2 inside; "
            "29.00 (pull 0.5, proxies 8), the best of 1 outside"
        )


def test_a_figure_of_an_instance_can_be_relative_to_another():
    study = kept(a=[0.1, 0.1])
    for run, end in zip(study.content["rows"][0]["runs"], (0.41, 0.40), strict=True):
        run["instances"] = [
            {"step": step, "radius": value, "apart": value**2} for step, value in ((40, 0.5), (80, end))
        ]
    claim = {"kind": "instances", "study": "x", "row": "a", "figure": "radius", "rises": False}
    assert judge(claim, lambda _: study).word == REPRODUCED
    assert judge(claim | {"relative_to": "apart"}, lambda _: study).word == CONTRADICTED


def test_instances_count_up_to_the_weights_that_were_kept():
    instances = [{"step": step, "radius": radius} for step, radius in ((0, 9.0), (40, 0.5), (80, 0.4), (200, 0.9))]
    study = kept(a=[0.1, 0.1])
    for fold, run in enumerate(study.content["rows"][0]["runs"]):
        run["instances"] = [each | {"radius": each["radius"] + 0.001 * fold * each["step"]} for each in instances]
    claim = {"kind": "instances", "study": "x", "row": "a", "figure": "radius", "rises": False}
    verdict = judge(claim, lambda _: study)
    assert (verdict.word, verdict.ours.split(" ")[0]) == (NOISE, "−15.6%")  # of −20% and −11.1%
    del study.content["rows"][0]["runs"][0]["instances"][1]
    assert judge(claim, lambda _: study).ours.startswith("−11.1%")


@pytest.mark.parametrize(("done", "word"), [(1, NOT_RUN), (2, NOT_HERE)])
def test_a_whole_study_in_which_no_second_instance_ended_says_so(done, word):
    study = kept(a=[0.1, 0.1])
    study.content.update(cells=2, done=done)
    for run in study.content["rows"][0]["runs"]:
        run["instances"] = [{"step": step, "radius": 0.5} for step in (0, 40, 200)]
    claim = {"kind": "instances", "study": "x", "row": "a", "figure": "radius", "rises": False}
    verdict = judge(claim, lambda _: study)
    assert verdict.word == word
    assert ("in none of 2 runs" in verdict.ours) is (word == NOT_HERE)


def test_every_claim_names_rows_and_metrics_that_its_study_has():
    studies = {planned.name: read(planned.file) for planned in STUDIES}
    for claim in claims():
        if "untestable" in claim or "known" in claim or claim["study"] == SEARCH:
            continue
        study = studies[claim["study"]]
        named = [claim[key] for key in ("row", "against") if isinstance(claim.get(key), str)]
        named += [row for key in ("rows", "against") if isinstance(claim.get(key), list) for row in claim[key]]
        assert set(named) <= set(study.rows), claim
        assert {claim.get("metric", study.metrics[0]), *claim.get("metrics", [])} <= set(study.metrics), claim
        if "rows_of" in claim:
            assert sum(row.startswith(claim["rows_of"]) for row in study.rows) == claim["count"]


def test_the_page_is_drawn_from_what_is_kept():
    assert PAGE.read_text(encoding="utf-8") == draw()


def test_the_first_screen_says_nothing_that_the_tables_do_not():
    _, first, rest = PAGE.read_text(encoding="utf-8").split("\n## ", 2)
    said = re.findall(r"[+−]\d+\.\d+\s\[[^\]]+\]", first)
    assert len(said) > 5
    assert [figure for figure in said if " ".join(figure.split()) not in rest] == []
    assert len(first.splitlines()) < 45


def test_the_pictures_are_drawn_from_what_is_kept(tmp_path):
    pictures.write(Kept.read, tmp_path)
    drawn, shipped = ({file.name: file.read_text() for file in folder.glob("*.svg")} for folder in (tmp_path, FOLDER))
    assert drawn == shipped


def test_every_picture_can_be_drawn(tmp_path):
    """With made-up runs of all studies that have one; then without, and nothing of the first time is left."""

    def run(row: int, fold: int) -> dict[str, Any]:
        course = [{"step": step, "recall@1": 0.3 + 0.01 * row, "map@r": 0.1 + 1e-5 * step} for step in (0, 25, 50)]
        instances = [
            {"step": 50 * number, "unseen_covering_radius": 1 - 0.1 * number, "unseen_between_classes": 1.0}
            for number in range(3)
        ]
        metrics = {"recall@1": 0.3 + 0.01 * row, "train:rho": 0.5 - 0.02 * row + 0.01 * fold}
        metrics |= {"map@r": 0.2 + 0.01 * row, "train:intra_inter": 0.9 - 0.01 * row}
        return {
            "seed": 0,
            "fold": fold,
            "best_step": 25 * row + fold,
            "metrics": metrics,
            "course": course,
            "class_spectrum": [4.0, 2.0, 1.0],
            "instances": instances,
        }

    @cache
    def find(name: str) -> Kept:
        names = read(next(planned.file for planned in STUDIES if planned.name == name)).rows
        rows = [{"name": each, "runs": [run(row, fold) for fold in (1, 2)]} for row, each in enumerate(names)]
        return Kept(name, {"rows": rows})

    names = {chart.name for chart in pictures.charts(find)}
    assert names == {
        "recall_against_rho",
        "class_spectra",
        "ccp_covering_radius",
        "ccp_between_classes",
        "ccp_steps",
        "ccp_course",
        "top_k_course",
        "fastap_course",
        "precision_against_tightness",
    }
    (cloud,) = (chart for chart in pictures.charts(find) if chart.name == "recall_against_rho")
    assert "r = −1.00" in cloud.caption
    pictures.write(find, tmp_path)
    assert {file.stem for file in tmp_path.glob("*.svg")} == names
    pictures.write(lambda name: Kept(name, {"rows": []}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_page_can_be_drawn_before_anything_was_run(tmp_path):
    text = draw(tmp_path)
    assert "not run yet" in text
    assert "**reproduced**" in text  # what is known from elsewhere
    assert "Progress: 0 of" in text
    assert "`cub_finetuned`" in text.split("Not begun:")[1].split("\n")[0]
    assert "`cub_ccp_search`" in text.split("Not begun:")[1].split("\n")[0]


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
    assert "Under way: `cub_ccp` (4 of 160)." in text
    assert "25.00 → 25.00, +0.00 [+0.00, +0.00], 2 runs | **within noise** so far |" in text


def test_the_trials_of_the_search_are_drawn_with_the_best_one_first(tmp_path):
    trials = [
        {"number": number, "value": value, "params": {"ccp.pull": 10.0**-number, "ccp.proxies": 1 + number}}
        for number, value in enumerate((0.27, None, 0.28))
    ]
    (tmp_path / "cub_ccp_search.json").write_text(json.dumps({"rows": [], "trials": trials}))
    lines = draw(tmp_path).split("| trial | λ | proxies | validation map@r |")[1].splitlines()[2:5]
    assert lines == ["| 3 | 1.0e-02 | 3 | 28.00 |", "| 1 | 1.0e+00 | 1 | 27.00 |", "| 2 | 1.0e-01 | 2 | given up |"]


def test_the_results_in_the_repository_are_of_the_studies_as_they_are_planned():
    """Else all of them would be run again: a new key of a recipe has to begin with None."""
    assert [study.name for study in STUDIES if not kept_whole(study)] == []


def test_a_study_that_is_kept_whole_is_not_run_again_unless_its_plan_has_changed(tmp_path):
    study = STUDIES[0]
    content = {"cells": 25, "done": 25, "rows": [], "digest": read(study.file).digest}
    assert not kept_whole(study, tmp_path)
    for change, whole in (({}, True), ({"done": 24}, False), ({"digest": read(STUDIES[1].file).digest}, False)):
        (tmp_path / f"{study.name}.json").write_text(json.dumps(content | change))
        assert kept_whole(study, tmp_path) is whole


WORKER = f"""#!{sys.executable}
import os, signal, sys, time
helper = os.fork() == 0
name = "helper" if helper else "worker"
signal.signal(signal.SIGINT, lambda *_: (open(f"{{sys.argv[0]}}.{{name}}.stopped", "w"), sys.exit(130)))
open(f"{{sys.argv[0]}}.{{name}}", "w")
time.sleep(60)
"""
PARENT = "import sys; from papers.reproduction import run; sys.executable = sys.argv[1]; sys.exit(run._lookalike([]))"


def test_a_signal_to_the_reproduction_alone_reaches_all_workers_and_ends_without_a_traceback(tmp_path):
    worker = tmp_path / "study"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    parent = Python(PARENT, worker)
    until(lambda: all((tmp_path / f"study.{name}").exists() for name in ("worker", "helper")))
    parent.send_signal(signal.SIGINT)
    code, printed = parent.ended()
    assert code == 130
    assert "Traceback" not in printed
    until((tmp_path / "study.helper.stopped").exists)


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
