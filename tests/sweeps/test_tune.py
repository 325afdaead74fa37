"""A real search on tiny images: its files, going on after a stop, and what is refused before anything begins."""

import json

import pytest

from lookalike.errors import UserError
from lookalike.fit import fit
from lookalike.recipe import as_tree, load
from lookalike.recipe.protocol import tasks
from lookalike.runs.log import ignore, read_log
from lookalike.sweeps import Search, search, write
from lookalike.sweeps.trial import until_validated
from lookalike.sweeps.tune import FOLD, _study
from lookalike.training import StoppedError
from tests.sweeps.searching import RECIPE, images, recipe

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return str(images(tmp_path_factory.mktemp("images") / "noise"))


def test_a_search_ends_with_the_best_recipe_and_a_page(data, tmp_path):
    chosen_search = Search.read(recipe(tmp_path), tmp_path / "out", data)
    result = search(chosen_search, 2, ignore)
    assert [trial["state"] for trial in result.trials] == ["complete", "complete"]
    assert result.best["value"] == max(trial["value"] for trial in result.trials)
    best = load(tmp_path / "out" / "best.toml")
    assert best.optimiser.lr == result.best["params"]["optimiser.lr"]
    assert best.loss.name == result.best["params"]["loss.name"]
    assert best.protocol.name == "class_disjoint"  # the user's own
    text = write(result, chosen_search.ranges, tmp_path / "out").read_text()
    assert "setting_optimiser_lr" in text
    fold = next((tmp_path / "out" / "trials").glob("0000/fold*"))
    assert (fold / "log.jsonl").is_file()
    assert not (fold / "result.json").exists()  # test was not looked at
    again = search(Search.read(recipe(tmp_path), tmp_path / "out", data), 2, ignore)
    assert again.trials == result.trials


def test_a_trial_is_judged_by_the_weights_that_fit_would_deliver(data, tmp_path):
    """Blending included: the figure of a trial is the validation figure of the same recipe under `fit`."""
    longer = ["train.steps=6", "train.validate_every=3", "train.blend=[0.3, 0.6]", "optimiser.lr=0.01"]
    task = Search.read(recipe(tmp_path), tmp_path / "out", data, longer)
    point = task.recipe(["loss.name=triplet"])
    reports = []
    value = until_validated(task.dataset, point, tmp_path / "trial", lambda *args: reports.append(args), ignore, bool)
    (alone,) = tasks(point)
    run = fit(task.dataset, tmp_path / "run", recipe=as_tree(alone.recipe), audit=False, full=False)
    assert value == run.ending.best["map@r"]
    assert len(reports) == 3
    stages = [event["name"] for event in read_log(tmp_path / "trial" / "fold" / "log.jsonl").of("stage")]
    assert "blending with the weights before training" in stages
    assert not (tmp_path / "trial" / "fold" / "checkpoint").exists()


@pytest.mark.parametrize(("fold", "pruned"), [(0, False), (1, True)])
def test_no_trial_is_pruned_before_its_first_fold_is_through(data, tmp_path, fold, pruned):
    """Five trials that report 0.5, then one with 0.1 at the same step."""
    study = _study(Search.read(recipe(tmp_path), tmp_path / "out", data), None)
    for value in (0.5, 0.5, 0.5, 0.5, 0.5, 0.1):
        trial = study.ask()
        trial.report(value, fold * FOLD + 25)
        if value == 0.5:
            study.tell(trial, value)
    assert bool(trial.should_prune()) is pruned


def test_a_stopped_trial_is_resumed(data, tmp_path):
    chosen_search = Search.read(recipe(tmp_path), tmp_path / "out", data)
    asked = iter([False, True])
    with pytest.raises(StoppedError):
        search(chosen_search, 1, ignore, lambda: next(asked, True))
    result = search(chosen_search, 1, ignore)
    first, second = result.trials
    assert (first["state"], second["state"]) == ("fail", "complete")
    assert second["continues"] == 0
    assert second["params"] == first["params"]
    assert [place.name for place in (tmp_path / "out" / "trials").iterdir() if place.is_dir()] == ["0000"]


def test_refused_before_anything_begins(data, tmp_path):
    with pytest.raises(UserError, match="does not say what to search"):
        Search.read(recipe(tmp_path, RECIPE), tmp_path / "out", data)
    with pytest.raises(UserError, match="did you mean 'lr'"):
        Search.read(recipe(tmp_path, RECIPE + '[tune]\n"head.lrr" = {low = 0.1, high = 0.2}'), tmp_path / "out", data)
    with pytest.raises(UserError, match="--storage is an address"):
        Search.read(recipe(tmp_path), tmp_path / "out", data, url="database")


def test_another_recipe_under_the_same_name_is_refused(data, tmp_path):
    search(Search.read(recipe(tmp_path), tmp_path / "out", data, ["protocol.models=1"]), 1, ignore)
    other = Search.read(recipe(tmp_path), tmp_path / "out", data, ["train.steps=3"])
    with pytest.raises(UserError, match="is about another recipe"):
        search(other, 1, ignore)


def test_the_numbers_of_a_page_are_files(tmp_path):
    from lookalike.recipe import of_tree
    from lookalike.sweeps.ranges import Range
    from lookalike.sweeps.tune import SearchResult

    ranges = [
        Range("optimiser.lr", 1e-5, 1e-3, log=True),
        Range("loss.margin", 0.1, 0.5),
        Range("loss.name", choices=("triplet", "<b>")),
    ]
    trials = [
        {
            "number": place,
            "state": "complete",
            "value": place / 10,
            "seconds": 1.0,
            "params": {"optimiser.lr": 1e-5 * (place + 1), "loss.margin": 0.1 + place / 20, "loss.name": "<b>"},
        }
        for place in range(6)
    ]
    plain = of_tree({"loss": {"name": "triplet"}, "sampler": {"name": "class_balanced"}})
    text = write(SearchResult(trials, trials[-1], plain), ranges, tmp_path).read_text()
    assert "<b>" not in text
    landscape = json.loads((tmp_path / "figures" / "landscape_optimiser_lr_loss_margin.json").read_text())
    assert landscape["series"][0]["name"] == "best quarter"
    assert landscape["values"][0] == 0.5
    history = json.loads((tmp_path / "figures" / "history.json").read_text())
    assert history["series"][1]["y"] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
