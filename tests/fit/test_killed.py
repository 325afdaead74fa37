"""kill -9 at any moment, then --resume: the same weights to the bit, and a log that has every step once."""

import html
import json
import random
import shlex
import signal

import pytest

from tests.cli.processes import Death, Lookalike

SHORT = [
    "--no-audit",
    "--set",
    "train.deliver=trained",
    "--set",
    "train.steps=12",
    "--set",
    "train.validate_every=4",
    "--set",
    "train.log_every=1",
    "--set",
    "train.patience=none",
    "--set",
    "miner.name=distance_weighted",
    "--set",
    "loss.name=margin",
    "--set",
    "sampler.batch_size=8",
    "--set",
    "sampler.per_class=2",
]
CHECKPOINT = "lookalike.runs.checkpoint"
MOMENTS = {
    "before the split": Death("lookalike.fit.stages", "split"),
    "before the first step": Death("lookalike.training.loop:Loop", "advance"),
    "first save, not yet named": Death(CHECKPOINT, "write_text"),
    "second save, half written": Death(CHECKPOINT, "_write", 2, after=True),
    "second save, not yet named": Death(CHECKPOINT, "write_text", 2),
    "before the last validation": Death("lookalike.training.loop:Loop", "advance", 12, after=True),
    "after training": Death("lookalike.fit.run", "prove"),
    "while the model is saved": Death("lookalike.models.model_folder", "write"),
    "after the model is saved": Death("lookalike.models.model_folder", "write", after=True),
    "before the report": Death("lookalike.fit.prove", "write_report"),
}


def log(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def weights(run):
    return (run / "model" / "weights.safetensors").read_bytes()


def logged_once(run):
    """Of every step, validation and ending exactly one, in order."""
    steps = [event["step"] for event in log(run) if event["event"] == "step"]
    looks = [event["step"] for event in log(run) if event["event"] == "validation"]
    ends = [event for event in log(run) if event["event"] == "end"]
    assert steps == list(range(1, 13))
    assert looks == [0, 4, 8, 12]
    assert len(ends) == 1


@pytest.fixture(scope="module")
def whole(photos, tmp_path_factory):
    """The same run, uninterrupted."""
    place = tmp_path_factory.mktemp("whole")
    ended = Lookalike(place)("fit", photos, "--out", place / "run", *SHORT)
    assert ended.code == 0, ended.error
    logged_once(place / "run")
    return place / "run"


@pytest.mark.slow
def test_killed_at_every_kind_of_moment(lookalike, photos, tmp_path, whole):
    for name, death in MOMENTS.items():
        run = tmp_path / name
        ended = lookalike("fit", photos, "--out", run, *SHORT, death=death)
        assert ended.code == -signal.SIGKILL, (name, ended)
        if name == "before the report":  # nothing but the page is missing: it need not be written for this test
            assert weights(run) == weights(whole)
            continue
        resumed = lookalike("fit", photos, "--out", run, *SHORT, "--resume", death=MOMENTS["before the report"])
        assert resumed.code == -signal.SIGKILL, (name, resumed)
        assert weights(run) == weights(whole), name
        logged_once(run)


@pytest.mark.slow
def test_killed_again_and_again_at_random(lookalike, photos, tmp_path, whole):
    chance = random.Random(0)
    run, words = tmp_path / "random", []
    for _ in range(6):
        death = Death("lookalike.training.loop:Loop", "advance", chance.randint(1, 5), chance.random() < 0.5)
        ended = lookalike("fit", photos, "--out", run, *SHORT, *words, death=death)
        words = ["--resume"]
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL, ended
    ended = lookalike("fit", photos, "--out", run, *SHORT, *words)
    assert ended.code == 0, ended.error
    assert "this model" in ended.out
    assert weights(run) == weights(whole)
    logged_once(run)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_prints_the_command_that_continues(lookalike, photos, tmp_path, whole, number):
    run = tmp_path / "asked"
    request = Death("lookalike.training.loop:Loop", "advance", 3, number=number)
    ended = lookalike("fit", photos, "--out", run, *SHORT, death=request)
    assert ended.code == 130, ended
    assert "Traceback" not in ended.error
    command = ended.error.splitlines()[-1].strip()
    assert "everything is saved. Continue with:" in ended.error
    words = shlex.split(command)
    assert words[0] == "lookalike"
    resumed = lookalike(*words[1:])
    assert resumed.code == 0, resumed.error
    assert weights(run) == weights(whole)
    logged_once(run)
    begun = shlex.join(["lookalike", "fit", str(photos), "--out", str(run), *SHORT])
    assert json.loads((run / "result.json").read_text())["command"] == begun
    assert begun in html.unescape((run / "report.html").read_text())


@pytest.mark.slow
def test_asked_before_training_begins(lookalike, photos, tmp_path):
    run = tmp_path / "early"
    running = lookalike.start("fit", photos, "--out", run, *SHORT[1:])
    assert running.wait_for((run / "recipe.toml").is_file)
    running.signal(signal.SIGINT)
    ended = running.end()
    assert ended.code == 130, ended
    assert "--resume" in ended.error.splitlines()[-1]
