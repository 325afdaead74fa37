"""What version 0.2.0 wrote: its runs are read, compared and resumed; its decisions are taken over from its log."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from lookalike.data import arrays
from lookalike.evaluation import evaluate
from lookalike.fit import fit
from lookalike.models import Model
from lookalike.report.compare import compare
from lookalike.runs import read
from lookalike.runs.log import read_log
from lookalike.training import StoppedError

DATA = Path(__file__).parents[1] / "written_by_0_2_0" / "runs"


def photos(classes, each, noise=40):
    """The images of those runs."""
    draw = np.random.default_rng(0)
    patterns = draw.integers(0, 256, (classes, 1, 16, 16, 3))
    blur = draw.integers(-noise, noise + 1, (classes, each, 16, 16, 3))
    pixels = np.clip(patterns + blur, 0, 255).astype(np.uint8).reshape(-1, 16, 16, 3)
    return arrays(pixels, np.repeat(np.arange(classes), each).tolist(), name="photos")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))
    return lambda name: shutil.copytree(DATA / name, tmp_path / name)


def decisions(run):
    return json.loads((run / "decisions.json").read_text())


def test_a_finished_run_is_read_and_its_model_embeds_alike(run):
    folder, images = run("finished"), photos(16, 4)
    finished = read(folder)
    with np.load(folder / "test.npz") as test:
        names, labels = test["paths"].tolist(), test["labels"].tolist()
        stored = torch.from_numpy(test["embeddings"])
    rows = [row for row in range(len(images)) if images.images.name(row) in names]
    vectors = Model.load(folder / "model").encode(torch.stack([images.images.open(row).decode() for row in rows]))
    assert torch.allclose(vectors, stored, atol=1e-6)
    result = evaluate(stored, labels, metrics=["recall@1", "map@r"])
    assert dict(result) == pytest.approx({name: finished.results["model"][name] for name in result})
    assert compare([folder]).rows[0].name == "finished"


def test_a_killed_run_goes_on_with_the_images_and_steps_it_had_decided_on(run):
    """It was killed at step 18, after the checkpoint of step 10; the plans of steps 12 and 15 are followed again."""
    folder = run("killed")
    planned = {event["step"]: event["steps"] for event in read_log(folder / "log.jsonl").of("plan")[1:]}
    (split,) = [event["text"] for event in read_log(folder / "log.jsonl").of("note")]
    assert (list(planned), split[:15]) == ([2, 3, 12, 15], "train 6 classes")
    steps, told = [], []

    def watch(event):
        told.append(event)
        if event["event"] == "step":
            steps.append(event["step"])

    with pytest.raises(StoppedError):
        fit(
            photos(16, 250, 200),
            folder,
            resume=True,
            audit=False,
            full=False,
            tell=watch,
            stop=lambda: bool(steps) and steps[-1] >= 15,
        )
    assert steps == [11, 12, 13, 14, 15]
    assert {event["step"]: event["steps"] for event in told if event["event"] == "plan"} == {12: 38, 15: 40}
    assert not any(event["event"] == "sample" for event in told)
    assert split in [event["text"] for event in told if event["event"] == "note"]  # as many images as before
    assert {event["step"]: event["steps"] for event in read_log(folder / "log.jsonl").of("plan")[1:]} == planned
    assert decisions(folder)["sample"] == 1405
    assert dict(decisions(folder)["plan"]["steps"]) == {0: 130} | planned


def test_a_run_that_was_too_short_to_train_does_not_train_when_resumed(run):
    folder = run("too_short")
    log = (folder / "log.jsonl").read_text()
    (folder / "log.jsonl").write_text(log.replace('"minutes": 1,', '"minutes": 7,'))  # as on a slower machine
    finished = fit(photos(30, 4, 900), folder, resume=True, audit=False, full=False)
    assert finished.ending.steps == 0
    assert "fine-tuning would need about 7 minutes" in " ".join(finished.content["verdict"]["sentences"])
    assert decisions(folder) == {"minutes_needed": 7, "delivered": "raw pixels, 768-D"}
