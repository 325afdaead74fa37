"""Several seeds and folds as one run: put together rightly, resumed between and inside folds, marked if optimistic."""

import json

import pytest
import torch

from lookalike.data import arrays
from lookalike.evaluation import evaluate
from lookalike.fit import fit
from lookalike.protocols.cross_validation import parts, side_by_side
from lookalike.runs.embeddings import load_embeddings
from lookalike.training import StoppedError

VALUES = {
    "data": {"validation": 0.2},
    "images": {"preset": "glyphs", "size": 16},
    "model": {"backbone": "conv4", "channels": 1, "width": 4, "dim": 4},
    "loss": {"name": "triplet"},
    "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2},
    "optimiser": {"lr": 0.01},
    "train": {"steps": 4, "validate_every": 2},
    "evaluation": {"metrics": ["recall@1", "map@r"], "geometry": "ball"},
}


@pytest.fixture(scope="module")
def shapes():
    """24 classes of noisy 16 × 16 pictures."""
    generator = torch.Generator().manual_seed(0)
    looks = torch.randint(0, 256, (24, 1, 16, 16), generator=generator).repeat_interleave(4, 0)
    noise = 40 * torch.randn(96, 1, 16, 16, generator=generator)
    pixels = (looks + noise).clamp(0, 255).to(torch.uint8).expand(-1, 3, -1, -1)
    return arrays(pixels.permute(0, 2, 3, 1).numpy(), torch.arange(96) // 4, name="shapes")


def run(shapes, out, *changes, **how):
    return fit(shapes, out, recipe=VALUES, overrides=list(changes), audit=False, full=False, **how)


def steps(log) -> str:
    """Which steps a log tells of."""
    events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return " ".join(f"step {event['step']}" for event in events if event["event"] == "validation")


CROSS = ("protocol.name=cross_validation", "protocol.folds=3", "protocol.seeds=2")


def test_folds_are_put_side_by_side_and_averaged(shapes, tmp_path):
    outcome = run(shapes, tmp_path / "run", *CROSS)
    test = parts(shapes, 3, 1).test
    places = [[tmp_path / f"run/seed-{seed}-fold-{fold}" for fold in (1, 2, 3)] for seed in (0, 1)]
    wide, mean = outcome.content["results"]
    assert wide["name"] == "12-D, 3 models side by side"
    assert mean["name"] == "4-D, mean of 3 models"
    expected = []
    for seed in places:
        joined = side_by_side([load_embeddings(place / "test.npz", test) for place in seed], "ball")
        expected.append(evaluate(joined, test.labels, metrics=["map@r"], normalise="ball")["map@r"])
    assert wide["metrics"]["map@r"] == pytest.approx(sum(expected) / 2)
    assert wide["std"]["map@r"] == pytest.approx(abs(expected[0] - expected[1]) / 2**0.5)
    alone = [
        json.loads((place / "result.json").read_text())["results"][0]["metrics"] for seed in places for place in seed
    ]
    assert mean["metrics"]["map@r"] == pytest.approx(sum(each["map@r"] for each in alone) / 6)
    assert len({each["map@r"] for each in alone}) > 1


def test_a_run_stopped_inside_and_between_folds_ends_the_same(shapes, tmp_path):
    whole = run(shapes, tmp_path / "whole", *CROSS[:2])
    for fold in (1, 2):  # inside each of two folds
        begun = (tmp_path / "parts/recipe.toml").exists()
        log = tmp_path / f"parts/fold-{fold}/log.jsonl"
        with pytest.raises(StoppedError):
            run(shapes, tmp_path / "parts", *CROSS[:2], resume=begun, stop=lambda log=log: "step 2" in steps(log))
    kept = tmp_path / "parts/fold-1/result.json"
    stamp = kept.stat().st_mtime_ns
    resumed = run(shapes, tmp_path / "parts", *CROSS[:2], resume=True)
    assert kept.stat().st_mtime_ns == stamp  # a finished fold is not run again
    assert resumed.content["results"] == whole.content["results"]


def test_the_maximum_over_test_is_marked_and_right(shapes, tmp_path):
    outcome = run(shapes, tmp_path / "run", "protocol.select=test_max", "train.select=recall@1")
    chosen, tops = outcome.content["results"]
    assert all(row["optimistic"] and "optimistic" in row["name"] for row in (chosen, tops))
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    looks = [line for line in lines if line["event"] == "validation"]
    assert [look["step"] for look in looks] == [0, 2, 4]
    assert all(look["on"] == "test" for look in looks)
    for metric in ("recall@1", "map@r"):
        assert tops["metrics"][metric] == pytest.approx(max(look[metric] for look in looks))
    assert chosen["metrics"]["recall@1"] == pytest.approx(max(look["recall@1"] for look in looks))
    assert outcome.content["data"]["validation_classes"] == 0


def test_by_default_nothing_is_optimistic(shapes, tmp_path):
    outcome = run(shapes, tmp_path / "run", 'evaluation.train=["rho"]')
    assert [row["role"] for row in outcome.content["results"]] == ["model", "train"]
    assert "optimistic" not in json.dumps(outcome.content)
    assert outcome.content["results"][1]["metrics"]["rho"] > 0
