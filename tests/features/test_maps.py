"""Maps of frozen stages in the place of images: the same training, without computing those stages again."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.data.images.digests import content_digests
from lookalike.errors import UserError
from lookalike.features import CENTRE, FeatureViews, View, embed, embed_maps, feature_maps
from lookalike.fit import fit
from lookalike.fit.prepare import train_features
from lookalike.models import Conv4
from lookalike.recipe import build, of_tree
from lookalike.training import Plan, train
from lookalike.training.train import StoppedError
from tests.cli.photos import folder

RECIPE = {
    "data": {"validation": 0.3},
    "features": {"views": 2, "backend": "torch", "upto": "block2", "half": False},
    "images": {"preset": "roth", "size": 20, "short_side": 22},
    "model": {"backbone": "conv4", "width": 8, "dim": 4, "batch_norm": "frozen_statistics"},
    "loss": {"name": "multi_similarity"},
    "optimiser": {"lr": 0.01},
    "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2},
    "train": {"steps": 12, "validate_every": 4, "log_every": 1},
}


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))
    return folder(tmp_path / "photos", side=24)


class Whole(torch.nn.Module):
    """The network on inputs that come as rows."""

    def __init__(self, embedder, side=20):
        super().__init__()
        self.embedder, self.side = embedder, side

    def forward(self, rows):
        return self.embedder(rows.reshape(-1, 3, self.side, self.side))


def inputs(photos, views, how, seed):
    """The same views of the same images as the network takes them."""
    digests = [digest.tobytes() for digest in content_digests(photos.images)]
    rows = [
        torch.stack([view.inputs(photos.images.open(row), digests[row], how).flatten() for view in views])
        for row in range(len(photos))
    ]
    return FeatureViews(torch.stack(rows), photos.labels, seed)


@pytest.mark.parametrize(("half", "tolerance"), [(False, 1e-5), (True, 3e-2)])
def test_the_same_weights_as_without_a_cache(source, half, tolerance):
    recipe = of_tree(RECIPE | {"features": RECIPE["features"] | {"half": half}})
    photos = data.decoded(data.folder(source), 22)
    weights = []
    for cached in (True, False):
        model = build.model(recipe)
        loop = build.loop(recipe, model, photos, train_features(recipe, model, photos))
        if not cached:
            crop = build.views(recipe, model.preprocessing).train
            views = [CENTRE, *(View(crop, number) for number in (1, 2))]
            images = inputs(photos, views, model.preprocessing, recipe.seed)
            loop = replace(loop, network=Whole(model.embedder), dataset=images)
        train(loop, Plan(12, seed=0))
        weights.append(model.embedder.state_dict())
    untrained = build.model(recipe).embedder.state_dict()
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], atol=tolerance, rtol=0, msg=name)
        learns = not name.startswith(("backbone.block1", "backbone.block2")) and value.is_floating_point()
        assert torch.equal(value, untrained[name]) != (learns and "running" not in name), name


def test_frozen_stages_see_every_view_once(source, tmp_path, monkeypatch):
    seen, real = [], Conv4.steps.fget

    def counted(self):
        (first, step), *others = real(self)

        def counting(images):
            seen.append(len(images))
            return step(images)

        return [(first, counting), *others]

    monkeypatch.setattr(Conv4, "steps", property(counted))
    first = fit(source, tmp_path / "first", recipe=RECIPE, audit=False, full=False)
    before = sum(seen)
    fit(source, tmp_path / "second", recipe=RECIPE, overrides=["train.steps=24"], audit=False, full=False)
    assert sum(seen) - before < before / 2, "only the evaluation computes whole networks again"
    vectors = embed(first.model, first_test(source, first))
    torch.testing.assert_close(vectors, first.entries[0].embeddings, atol=1e-5, rtol=0)


def first_test(source, run):
    images = data.decoded(data.folder(source), 22)
    rows = {images.images.name(row): row for row in range(len(images))}
    with np.load(run.folder / "test.npz") as content:
        return images.subset([rows[path] for path in content["paths"].tolist()])


def test_a_stopped_run_ends_as_if_it_had_not_been(source, tmp_path):
    whole = fit(source, tmp_path / "whole", recipe=RECIPE, audit=False, full=False)
    steps = []

    def tell(event):
        if event["event"] == "step":
            steps.append(event["step"])

    with pytest.raises(StoppedError):
        fit(source, tmp_path / "parts", recipe=RECIPE, audit=False, full=False, tell=tell, stop=lambda: len(steps) > 5)
    resumed = fit(source, tmp_path / "parts", resume=True, audit=False, full=False)
    one, other = ((run.folder / "model" / "weights.safetensors").read_bytes() for run in (whole, resumed))
    assert one == other


def test_maps_give_the_embeddings_of_the_whole_network(source, tmp_path):
    photos, model = data.decoded(data.folder(source), 22), build.model(of_tree(RECIPE))
    maps = feature_maps(model, photos, "block2", half=False, backend="torch")
    assert maps.shape == (8, 5, 5)
    rows = maps.rows.clone()
    torch.testing.assert_close(embed_maps(model, maps, "block2"), embed(model, photos), atol=1e-6, rtol=0)
    [file] = (tmp_path / "cache" / "maps").glob("*/maps.npy")
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 64
    file.write_bytes(damaged)
    again = feature_maps(model, photos, "block2", half=False, backend="torch")
    assert torch.equal(again.rows, rows), "a damaged file is computed again"


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(UserError, match="unknown stage 'block9'"):
        build.model(of_tree(RECIPE | {"features": {"upto": "block9"}}))
    pixels = {"model": {"backbone": "pixels", "side": 8, "dim": 4}, "features": {"upto": "block1"}}
    with pytest.raises(UserError, match="unknown stage"):
        build.model(of_tree(RECIPE | pixels))
