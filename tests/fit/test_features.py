"""A run under [features]: the backbone sees every image once, for all runs; the result is an ordinary model."""

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.features import embed
from lookalike.fit import fit
from lookalike.models import Conv4, Model
from lookalike.runs.log import read_log
from lookalike.search.calibration.foreign import NUMBER
from lookalike.training.train import StoppedError
from tests.cli.photos import folder
from tests.fit.stopping import Stop

RECIPE = {
    "data": {"validation": 0.0},  # the last weights are kept
    "features": {"views": 2, "backend": "torch"},
    "images": {"preset": "glyphs", "size": 16, "short_side": 16},
    "model": {"backbone": "conv4", "width": 4, "dim": 4},
    "loss": {"name": "multi_similarity"},
    "optimiser": {"lr": 0.01},
    "sampler": {"name": "class_balanced", "batch_size": 4, "per_class": 2},
    "train": {"steps": 12, "validate_every": 4},
}

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def source(tmp_path):
    return folder(tmp_path / "photos")


@pytest.fixture
def passes(monkeypatch):
    """The number of images in every batch that goes through the backbone."""
    sizes, real = [], Conv4.forward

    def counted(self, images, after=None):
        sizes.append(len(images))
        return real(self, images, after)

    monkeypatch.setattr(Conv4, "forward", counted)
    return sizes


def weights(run):
    return (run / "model" / "weights.safetensors").read_bytes()


def test_the_backbone_runs_once_for_all_runs(source, tmp_path, passes):
    first = fit(source, tmp_path / "first", recipe=RECIPE)
    assert passes
    passes.clear()
    second = fit(source, tmp_path / "second", recipe=RECIPE, overrides=["loss.name=triplet", "train.steps=5"])
    assert sum(passes) == NUMBER  # pictures of nothing, by which the run is calibrated
    assert weights(first.folder) != weights(second.folder)
    third = fit(source, tmp_path / "third", recipe=RECIPE)
    assert weights(third.folder) == weights(first.folder)
    assert dict(third.result) == dict(first.result)


def test_the_model_is_like_any_other(source, tmp_path):
    run = fit(source, tmp_path / "run", recipe=RECIPE, overrides=["model.hidden=7"])
    model = Model.load(run.folder / "model")
    images = data.decoded(data.folder(source), 16)
    rows = {images.images.name(row): row for row in range(len(images))}
    with np.load(run.folder / "test.npz") as content:
        vectors = embed(model, images.subset([rows[path] for path in content["paths"].tolist()]))
        torch.testing.assert_close(vectors, torch.from_numpy(content["embeddings"]), atol=1e-5, rtol=0)
    assert "[features]" in model.recipe
    untrained, trained = (each.embedder.state_dict() for each in (Model.create(model.architecture), model))
    changed = {name for name in trained if not torch.equal(trained[name], untrained[name])}
    assert changed == {"head.hidden.weight", "head.hidden.bias", "head.linear.weight", "head.linear.bias"}


def test_a_stopped_run_ends_as_if_it_had_not_been(source, tmp_path):
    settings = ["data.validation=0.3", "train.log_every=1"]
    whole = fit(source, tmp_path / "whole", recipe=RECIPE, overrides=settings)
    stop = Stop(6)
    with pytest.raises(StoppedError):
        fit(source, tmp_path / "parts", recipe=RECIPE, overrides=settings, tell=stop.tell, stop=stop)
    resumed = fit(source, tmp_path / "parts", resume=True)
    assert weights(resumed.folder) == weights(whole.folder)
    figures = [
        [(event["step"], event["map@r"]) for event in read_log(run.folder / "log.jsonl").of("validation")]
        for run in (whole, resumed)
    ]
    assert figures[0] == figures[1]
    assert [step for step, _ in figures[0]] == [0, 4, 8, 12]
    assert len({value for _, value in figures[0]}) > 1, "validation follows the head"
