"""Readings of a network, folds of classes and samples: each against what it stands for."""

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.evaluation import evaluate
from lookalike.features import embed, features
from lookalike.fit import readouts
from lookalike.fit.folds import judge_by_folds
from lookalike.fit.prepare import LabelledFeatures
from lookalike.fit.sample import evenly
from lookalike.models import Architecture, Model
from lookalike.recipe import of_tree

TABLES = {
    "model": {"backbone": "conv4", "width": 16, "dim": 8},
    "loss": {"name": "multi_similarity"},
    "sampler": {"name": "class_balanced", "batch_size": 16, "per_class": 4},
    "train": {"steps": 1},
}
RECIPE = of_tree(TABLES)


@pytest.fixture(scope="module")
def characters():
    glyphs = data.load("glyphs")
    return glyphs.subset(glyphs.labels < 12).dense()


@pytest.fixture(scope="module")
def model():
    return Model.create(Architecture("conv4", {"channels": 1, "width": 16}, dim=8))


def test_a_reading_gives_the_vectors_of_its_model(characters, model, tmp_path):
    points = features(model, characters)
    kinds = list(readouts.with_own_head(RECIPE, model, LabelledFeatures(points, characters.labels)))
    assert {readout.name for readout in kinds} >= {"whitened features", "whitened components", "head on the features"}
    for readout in kinds:
        own = readout.model(model)
        own.save(tmp_path / readout.name)
        loaded = Model.load(tmp_path / readout.name)
        vectors = torch.nn.functional.normalize(readout.vectors(model, points))
        assert torch.allclose(embed(loaded, characters), vectors, atol=1e-5), readout.name


def test_a_head_learns_and_leaves_the_network_alone(characters, model):
    before = {name: value.clone() for name, value in model.embedder.state_dict().items()}
    points = features(model, characters)
    head = readouts.trained_head(RECIPE, model, LabelledFeatures(points, characters.labels))
    assert all(torch.equal(value, before[name]) for name, value in model.embedder.state_dict().items())
    with torch.no_grad():
        trained, start = (
            evaluate(vectors, characters.labels, metrics=["map@r"], normalise="sphere")["map@r"]
            for vectors in (head(points), points)
        )
    assert trained > start


def test_the_recipe_says_how_fast_proxies_learn_beside_a_head(characters, model):
    taught = LabelledFeatures(features(model, characters), characters.labels)
    loss = {"loss": {"name": "proxy_anchor"}}
    heads = [
        readouts.trained_head(of_tree(TABLES | loss | {"optimiser": rate}), model, taught)
        for rate in ({"loss_lr": 1e-2}, {"loss_lr": 1e-3})
    ]
    assert not torch.equal(*(head[-1].weight for head in heads))


def test_folds_judge_each_class_once_and_by_the_others():
    labels = torch.arange(40) // 4
    points = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    folds = []

    def vectors(others, own):
        assert not set(labels[others].tolist()) & set(labels[own].tolist())
        folds.append(own)
        return {"": points[own]}

    result = judge_by_folds(labels, 3, 0, vectors, ["map@r"])[""]
    assert torch.stack(folds).sum(0).tolist() == [1] * 40
    alone = [evaluate(points[own], labels[own], metrics=["map@r"], normalise="sphere") for own in folds]
    assert result["map@r"] == pytest.approx(np.concatenate([each.per_query["map@r"] for each in alone]).mean())
    assert result.labels == [label for each in alone for label in each.labels]


@pytest.mark.parametrize("seed", range(8))
def test_every_fold_has_a_pair(seed):
    """Six classes with two images, twenty with one."""
    labels = torch.cat((torch.arange(6).repeat(2), torch.arange(6, 26)))
    points = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0))
    result = judge_by_folds(labels, 3, seed, lambda _, own: {"": points[own]}, ["map@r"])[""]
    assert np.isfinite(result.per_query["map@r"]).sum() == 12


def test_a_sample_has_as_many_of_each_class(characters):
    few = evenly(characters, 8 * 12, seed=0)
    assert few.class_sizes().tolist() == [8] * 12
    fewer = evenly(characters, 24, seed=0)  # no room for all classes
    assert sorted(fewer.class_sizes().tolist(), reverse=True)[:4] == [8, 8, 8, 0]
    assert evenly(characters, len(characters), seed=0) is characters
