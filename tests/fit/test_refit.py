"""Once proven, what is delivered can be made of all classes: the figures stay those of the proof."""

import json

import pytest
import torch

from lookalike import data
from lookalike.errors import UserError
from lookalike.fit import fit
from lookalike.fit.choose import choose
from lookalike.models import Model
from lookalike.training.train import StoppedError
from tests.fit.stopping import Stop

SMALL = [
    "images.size=16",
    "images.short_side=16",
    "model.width=16",
    "model.dim=16",
    "train.steps=100",
    "train.validate_every=50",
    "sampler.batch_size=32",
    "sampler.per_class=4",
]
REFIT = "train.refit_on_all=true"

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def characters():
    glyphs = data.load("glyphs")
    some = glyphs.subset(glyphs.labels % 20 == 0).dense()
    return some.subset(some.labels < 40).dense()


def weights(run):
    return (run.folder / "model" / "weights.safetensors").read_bytes()


def test_all_classes_teach_and_the_figures_stay(characters, tmp_path):
    proven = fit(characters, tmp_path / "proven", overrides=SMALL, audit=False, full=False)
    run = fit(characters, tmp_path / "run", overrides=[*SMALL, REFIT], audit=False, full=False)
    assert run.content["verdict"]["delivered"].startswith("trained network")
    assert dict(run.result) == dict(proven.result)
    assert weights(run) != weights(proven)
    assert len(proven.model.classes) < len(run.model.classes) == 40
    assert "the figures are those of the proof" in run.content["verdict"]["sentences"][-1]
    loaded = Model.load(tmp_path / "run" / "model")
    assert loaded.metrics["recall@1"] == proven.result["recall@1"]
    images = torch.randint(0, 255, (3, 1, 40, 40), dtype=torch.uint8)
    assert torch.equal(loaded.encode(images), run.model.encode(images))
    settings, stop = {"overrides": [*SMALL, REFIT], "audit": False, "full": False}, Stop(15)
    with pytest.raises(StoppedError):
        fit(characters, tmp_path / "parts", tell=stop.tell, stop=stop, **settings)
    again = fit(characters, tmp_path / "parts", resume=True, audit=False, full=False)
    assert weights(again) == weights(run)
    assert json.loads((tmp_path / "parts" / "result.json").read_text())["verdict"] == run.content["verdict"] | {
        "candidates": again.content["verdict"]["candidates"]
    }


def test_what_is_not_trained_is_fitted_again(characters, tmp_path):
    """Raw pixels, which nothing teaches, stay; the choice says so all the same."""
    run = fit(characters, tmp_path / "run", overrides=[*SMALL, "train.minutes=0.001", REFIT], audit=False, full=False)
    assert run.content["verdict"]["delivered"].startswith("raw pixels")
    assert len(run.model.classes) == 40


def test_several_runs_have_no_one_model(characters):
    with pytest.raises(UserError, match="refit_on_all is for one run"):
        choose(characters, None, [*SMALL, REFIT, "protocol.seeds=2"])
