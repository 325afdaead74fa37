"""Runs put together as methods: by settings, by rows of a study, under names that tell them apart."""

import json

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.report.compare import collect
from lookalike.report.compare.methods import _common
from tests.report.compared import finished, study


def names(*paths, **how):
    return [method.name for method in collect(paths, **how).methods]


def test_methods_of_one_name_are_told_apart_by_their_folders(tmp_path):
    losses = {"a/run": "nca", "b/run": "margin", "c/run": "snr"}
    places = [finished(tmp_path / place, 0.4, loss=loss) for place, loss in losses.items()]
    assert names(*places) == ["a/run", "b/run", "c/run"]
    assert names(places[0], places[0]) == ["a/run #1", "a/run #2"]
    assert names(places[0]) == ["run"]
    assert collect([places[0]]).title == "run"


def test_seeds_in_folders_of_their_own_are_one_method_in_their_order(tmp_path):
    for seed in (1, 0):
        finished(tmp_path / "run" / f"seed-{seed}", 0.4, seed)
    (tmp_path / "run" / "seed-2").mkdir()  # not finished
    (method,) = collect([tmp_path / "run"]).methods
    assert (method.name, list(method.results())) == ("run", [0, 1])
    assert "seed" not in method.settings
    assert method.settings["loss.name"] == "triplet"
    assert method.results("baseline") == {}


def test_a_folder_named_after_its_seed_alone_keeps_its_name(tmp_path):
    assert names(finished(tmp_path / "seed-3", 0.4, 3)) == ["seed-3"]
    assert names(finished(tmp_path / "nca_seed_4", 0.4, 4)) == ["nca"]


def test_a_gap_is_how_much_higher_the_first_is(tmp_path):
    good, bad = (finished(tmp_path / loss, noise, loss=loss) for loss, noise in (("nca", 0.1), ("snr", 0.9)))
    one, other = collect([good, bad]).methods
    results = [method.results()[0].per_query["map@r"] for method in (one, other)]
    assert one.gap(other, "map@r").mean == pytest.approx(np.mean(results[0] - results[1]))
    assert one.gap(other, "map@r").mean > 0


def test_rows_of_a_study_stay_apart_even_where_their_settings_agree(tmp_path):
    for row, seed in (("Old way", 0), ("New way!", 1)):
        slug = row.lower().replace(" ", "-").strip("!")
        finished(tmp_path / "cells" / f"{slug}-seed-{seed}-0123456789", 0.4, seed)
    (tmp_path / "study.json").write_text(json.dumps({"rows": [{"name": "Old way"}, {"name": "New way!"}]}))
    assert names(tmp_path) == ["Old way", "New way!"]
    assert collect([tmp_path]).title == "Old way, New way!"


def test_the_baseline_is_the_one_named_or_that_of_the_study(tmp_path):
    collection = collect([study(tmp_path)])
    assert (collection.title, collection.baseline.name) == ("Losses", "Loss: margin")
    assert collect([tmp_path], baseline="Loss: triplet").baseline.name == "Loss: triplet"
    with pytest.raises(UserError, match=r"there is no 'x' to compare with. Possible: Loss: margin, Loss: triplet"):
        collect([tmp_path], baseline="x")


def test_an_optimistic_run_makes_its_method_optimistic(tmp_path):
    place = finished(tmp_path / "run", 0.4)
    rows = json.loads((place / "measured.json").read_text())
    (place / "measured.json").write_text(json.dumps([rows[0] | {"optimistic": True}]))
    assert [method.optimistic for method in collect([place]).methods] == [True]


def test_a_clock_decides_on_the_steps():
    settings = {"seed": 1, "protocol": {"fold": 2, "name": "p"}, "train": {"steps": 9}}
    assert _common(settings) == {"protocol.name": "p", "train.steps": 9}
    assert _common(settings | {"train": {"steps": 9, "minutes": 3}}) == {"protocol.name": "p", "train.minutes": 3}


def test_folders_without_anything_are_refused(tmp_path):
    (tmp_path / "cells").mkdir()
    for paths, message in (
        ([], "give the folder of a run"),
        ([tmp_path / "nowhere"], "is not a folder"),
        ([tmp_path], "no cell of the study in .* is finished yet"),
    ):
        with pytest.raises(UserError, match=message):
            collect(paths)
