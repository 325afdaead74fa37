"""`lookalike analyse`: tables, JSON, files, and mistakes in one line."""

import json
import os
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from lookalike.cli import app
from lookalike.errors import UserError


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["analyse", *map(str, arguments)])
    assert result.exit_code == code, result.exception
    return result.stdout


def mistake(*arguments):
    result = CliRunner().invoke(app, ["analyse", *map(str, arguments)])
    assert isinstance(result.exception, UserError)
    return str(result.exception)


@pytest.fixture
def batch(tmp_path):
    random = np.random.default_rng(0)
    np.savez(tmp_path / "e.npz", embeddings=random.normal(size=(24, 5)).astype("f4"), labels=np.repeat(list("abcd"), 6))
    return tmp_path / "e.npz"


@pytest.mark.parametrize("verb", ["pairs", "batch", "spectrum"])
def test_help_of_every_sub_verb_ends_in_an_example(verb):
    last = run(verb, "--help").strip().split("\n\n")[-1]
    assert last.strip().startswith(f"Example: lookalike analyse {verb}")


def test_pairs_with_settings_and_figures(tmp_path, batch):
    losses = ["nca", "triplet:similarity=cosine,reduction=sum"]
    output = json.loads(run("pairs", *losses, "--trials", 40, "--embeddings", batch, "--out", tmp_path, "--json"))
    assert output["losses"][losses[1]] == {"S": False, "P": True, "N": False}
    assert set(output["curves"]) == set(losses)
    assert 0 < output["maps"]["nca"]["negative pairs moved"] <= 1
    for name in ("pair_weights", "pair_maps"):
        assert all((tmp_path / f"{name}.{kind}").stat().st_size > 500 for kind in ("svg", "png", "json"))
    assert len(json.loads((tmp_path / "pair_maps.json").read_text())["nca"]["gradients"]) == 16
    assert "nca" in run("pairs", "nca", "--trials", 5)


def test_pairs_refuses_by_name():
    assert mistake("pairs", "nca", "proxy_anchor").startswith(
        "ProxyAnchor lies outside General Pair Weighting: it comp"
    )
    assert "did you mean 'triplet'" in mistake("pairs", "tripplet")
    assert "did you mean 'margin'" in mistake("pairs", "triplet:margn=1")
    assert "write triplet:setting=value" in mistake("pairs", "triplet:margin")


def test_batch_of_the_example(tmp_path):
    output = json.loads(run("batch", "class_balanced", "coreset", "--out", tmp_path, "--json"))
    assert output["class_balanced"]["classes"] == {"mean": 4.0, "least": 4, "most": 4}
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["class_balanced.png", "coreset.png"]
    assert all(name in run("batch") for name in ("category_pairs", "one_per_class"))


def test_batch_of_a_folder(tmp_path):
    from PIL import Image

    for name in ("hen", "owl", "$jay$"):
        (tmp_path / "birds" / name).mkdir(parents=True)
        for number in range(6):
            pixels = np.random.default_rng(number).integers(0, 255, (20, 24, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "birds" / name / f"{number}.png")
    settings = ["--data", tmp_path / "birds", "--batch-size", 6, "--per-class", 3, "--out", tmp_path / "out"]
    assert "class_balanced" in run("batch", "class_balanced", *settings)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"class_balanced.svg", "class_balanced_images.png", "batch_distances.json"} <= written
    np.save(tmp_path / "few.npy", np.zeros((2, 3), "f4"))
    assert "one row per image" in mistake("batch", "class_balanced", *settings, "--embeddings", tmp_path / "few.npy")
    os.mkfifo(tmp_path / "pipe.npy")
    for path in (tmp_path / "pipe.npy", "/dev/zero"):
        reason = mistake("batch", "class_balanced", *settings, "--embeddings", path)
        assert "it is not an ordinary file" in reason


def test_batch_mistakes():
    assert "did you mean 'class_balanced'" in mistake("batch", "clas_balanced")
    assert "give --data too" in mistake("batch", "coreset", "--embeddings", "x.npy")


@pytest.mark.parametrize(
    "words", [["theorems", "--cases", "20"], ["toy"], ["coverage", "a run"], ["setting", "--help"]]
)
def test_a_verb_about_a_paper_says_where_it_went(words):
    reason = mistake(*words)
    assert f"run `python -m papers {shlex.join(words)}` in a clone" in reason
    assert "\n" not in reason
    assert words[0] not in run("--help")
