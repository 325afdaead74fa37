"""`lookalike train`: the recipe of a run repeats it bit for bit; a recipe for other data says so."""

import signal

import pytest

from tests.cli.photos import folder
from tests.cli.processes import Death

TRAINED = Death("lookalike.fit.prove", "write_report")  # everything but the page


def weights(run):
    return (run / "model" / "weights.safetensors").read_bytes()


def test_the_recipe_of_a_run_repeats_it_bit_for_bit(lookalike, finished, tmp_path):
    run, _ = finished
    again = tmp_path / "again"
    completed = lookalike("train", run / "recipe.toml", "--out", again, death=TRAINED)
    assert completed.code == -signal.SIGKILL, completed
    assert weights(again) == weights(run)
    lines = [line for line in (run / "recipe.toml").read_text().splitlines() if not line.startswith("#")]
    assert lines == [line for line in (again / "recipe.toml").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.slow
def test_a_run_that_the_clock_measured_keeps_its_steps(lookalike, tmp_path):
    timed, many = tmp_path / "timed", folder(tmp_path / "many", classes=30, each=4, noise=200)
    words = ("--no-audit", "--minutes", 5, "--set", "sampler.batch_size=8", "--set", "sampler.per_class=2")
    dying = Death("lookalike.training.loop:Loop", "advance", 12)  # a few are taken to see how long they take
    completed = lookalike("fit", many, "--out", timed, *words, death=dying)
    assert completed.code == -signal.SIGKILL, completed
    recipe = (timed / "recipe.toml").read_text()
    steps = next(line for line in recipe.splitlines() if line.startswith("steps = ") and line != "steps = 0")
    again = tmp_path / "again"
    completed = lookalike(
        "train", timed / "recipe.toml", "--out", again, death=Death("lookalike.training.train:_Training", "step")
    )
    assert completed.code == -signal.SIGKILL, completed
    assert steps in (again / "recipe.toml").read_text().splitlines()


def test_a_recipe_for_other_data(lookalike, photos, finished, tmp_path):
    run, _ = finished
    recipe = tmp_path / "birds.toml"
    recipe.write_text((run / "recipe.toml").read_text().replace("[data]\n", '[data]\nname = "cub200"\n'))
    completed = lookalike("train", recipe, photos, "--out", tmp_path / "new")
    completed.refused("this recipe is for cub200, these data are", "--set data.name=")
    text = "\n".join(line for line in recipe.read_text().splitlines() if not line.startswith("source"))
    recipe.write_text(text)
    lookalike("train", recipe, "--out", tmp_path / "new").refused("this recipe is for cub200: say where its images are")
    lookalike("train", tmp_path / "none.toml").refused("there is no recipe")
    assert not (tmp_path / "new").exists()


def test_a_changed_file_is_not_resumed(lookalike, finished, tmp_path):
    run, _ = finished
    changed = tmp_path / "changed.toml"
    changed.write_text((run / "recipe.toml").read_text().replace("\ndim = ", "\ndim = 1", 1))
    lookalike("train", changed, "--out", run, "--resume").refused("holds another run: model.dim was")


def test_help_ends_in_an_example(lookalike):
    for verb in ("fit", "train", "embed", "evaluate", "export"):
        completed = lookalike(verb, "--help")
        assert completed.code == 0
        assert f"Example: lookalike {verb}" in completed.out
