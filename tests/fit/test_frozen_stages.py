"""In little time the later stages learn on maps of the first ones; a resumed run does the same."""

import json

import pytest
import torch

from lookalike import data
from lookalike.fit import fit
from lookalike.models import Architecture, Model
from lookalike.recipe import load
from lookalike.runs import checkpoint
from lookalike.training.train import StoppedError
from tests.fit.stopping import Stop

SMALL = [
    "images.size=16",
    "images.short_side=18",
    "model.width=16",
    "model.dim=16",
    "train.steps=30",
    "train.minutes=4",
    "train.validate_every=10",
    "train.log_every=1",
    "sampler.batch_size=32",
    "sampler.per_class=4",
    "train.dim=16",
]

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def characters():
    glyphs = data.load("glyphs")
    some = glyphs.subset(glyphs.labels % 20 == 0).dense()
    return some.subset(some.labels < 24).dense()


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A network whose weights were not drawn for this run, and no time to train all of it."""
    monkeypatch.setattr("lookalike.fit.frozen_stages.ENOUGH", 10**9)
    Model.create(Architecture("conv4", {"channels": 1, "width": 16}, dim=16), seed=5).save(tmp_path / "weights")
    return [*SMALL, f"model.weights={tmp_path / 'weights'}"]


def test_where_there_is_no_room_for_maps_of_all_photos_fewer_teach(characters, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "lookalike.fit.frozen_stages.BYTES", 100 * 2 * 16 * 4 * 4
    )  # maps of 16 × 4 × 4 in half precision
    notes = []
    run = fit(
        characters,
        tmp_path / "run",
        overrides=[*settings, "sampler.batch_size=16"],
        audit=False,
        full=False,
        tell=lambda event: notes.append(event.get("text", "")),
    )
    assert any("on maps of 1 view of 100 of the train images" in note for note in notes)
    assert json.loads((tmp_path / "run" / "decisions.json").read_text())["maps"] == {"views": 1, "images": 100}
    assert run.content["training"]["steps"] == 30
    assert run.content["data"]["train_images"] > 100


def learnt(run):
    """The last weights, delivered or not."""
    state = checkpoint.load(run.folder / "checkpoint")["loop"]["network"]
    return {name.removeprefix("embedder."): value for name, value in state.items()}


def test_the_first_stages_stay_and_training_is_resumed(characters, settings, tmp_path):
    notes, stop = [], Stop(13)
    whole = fit(
        characters,
        tmp_path / "whole",
        overrides=settings,
        audit=False,
        full=False,
        tell=lambda event: notes.append(event.get("text", "")),
    )
    assert any("the stages after block2 learn, on maps of 5 views" in note for note in notes)
    maps = json.loads((tmp_path / "whole" / "decisions.json").read_text())["maps"]
    assert maps == {"views": 5, "images": whole.content["data"]["train_images"]}
    assert load(tmp_path / "whole" / "recipe.toml").features.upto == "block2"
    assert whole.content["training"]["steps"] == 30
    before = Model.load(tmp_path / "weights").embedder.state_dict()
    after = learnt(whole)
    kept = {name for name, value in after.items() if torch.equal(value, before[name])}
    assert {name for name in after if name.startswith(("backbone.block1", "backbone.block2"))} <= kept
    assert not {"backbone.block3.0.weight", "backbone.block4.0.weight"} & kept

    with pytest.raises(StoppedError):
        fit(
            characters,
            tmp_path / "parts",
            overrides=settings,
            audit=False,
            full=False,
            tell=stop.tell,
            stop=stop,
        )
    resumed = fit(characters, tmp_path / "parts", resume=True, audit=False, full=False)
    again = learnt(resumed)
    assert all(torch.equal(value, again[name]) for name, value in after.items())
    assert resumed.content["verdict"]["delivered"] == whole.content["verdict"]["delivered"]
