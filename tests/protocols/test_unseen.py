"""What is measured on unseen classes against `evaluate` called by hand."""

import numpy as np
import pytest
import torch

from lookalike.data import arrays
from lookalike.evaluation import evaluate
from lookalike.features import embed, features, pixels
from lookalike.models import Architecture, Model
from lookalike.protocols.unseen import baselines, gains, judge


@pytest.fixture
def scene():
    draw = np.random.default_rng(0)
    names = np.repeat([f"class {number}" for number in range(6)], 5)
    images = draw.integers(0, 256, (30, 20, 24), dtype=np.uint8)
    kinds = np.where(np.arange(30) < 15, "first", "second")
    vectors = torch.from_numpy(draw.standard_normal((30, 7)).astype("f"))
    return images, names, kinds, vectors


def test_everybody_asks_and_everybody_else_is_searched(scene):
    images, names, kinds, vectors = scene
    judged = judge("mine", "model", vectors, arrays(images, names, categories=kinds), "sphere")
    expected = evaluate(vectors, names, categories=kinds)
    assert dict(judged.result) == dict(expected)
    entry = judged.as_json()
    assert (entry["name"], entry["role"], entry["metrics"]) == ("mine", "model", dict(expected))
    assert entry["intervals"]["map@r"] == list(expected.interval("map@r"))


@pytest.mark.parametrize("geometry", ["sphere", "none"])
def test_queries_search_the_gallery_where_the_data_say_so(scene, geometry):
    images, names, _, vectors = scene
    roles = np.where(np.arange(30) % 5 < 2, "query", "gallery")
    judged = judge(
        "mine", "model", vectors, arrays(images, names, roles=roles.tolist()), geometry, ["recall@1", "map@r"]
    )
    queries = roles == "query"
    expected = evaluate(
        vectors[queries],
        names[queries],
        gallery=vectors[~queries],
        gallery_labels=names[~queries],
        normalise=geometry,
        metrics=["recall@1", "map@r"],
    )
    assert dict(judged.result) == dict(expected)
    assert judged.result.facts["queries"] == 12
    assert judged.result.facts["gallery"] == 18


def test_embeddings_are_those_of_encode_and_baselines_those_of_their_names(scene):
    images, names, _, _ = scene
    data, model = arrays(images, names), Model.create(Architecture("conv4", {"channels": 1}, dim=5))
    assert torch.allclose(embed(model, data), model.encode(list(images)), atol=1e-5)
    raw = features(model, data)
    assert raw.shape == (30, 64)
    assert torch.allclose(torch.nn.functional.normalize(model.embedder.head(raw), dim=1), embed(model, data), atol=1e-5)
    thumbnails = pixels(data, model.preprocessing)
    assert thumbnails.shape == (30, 28 * 28)
    untrained = Model.create(Architecture("conv4", {"channels": 1}, dim=5), seed=1)
    plain, pixel = baselines(embed(untrained, data), False, model.preprocessing, data, ["map@r"], judge)
    assert (plain.name, pixel.name) == ("untrained network", "raw pixels")
    assert dict(plain.result) == dict(evaluate(embed(untrained, data), names, metrics="map@r"))
    assert dict(pixel.result) == dict(evaluate(thumbnails, names, metrics="map@r"))
    frozen, _ = baselines(features(untrained, data), True, model.preprocessing, data, ["map@r"], judge)
    assert frozen.name == "frozen backbone, 64-D"
    assert dict(frozen.result) == dict(evaluate(features(untrained, data), names, metrics="map@r"))


def test_gains_are_paired_differences(scene):
    images, names, _, vectors = scene
    data = arrays(images, names)
    ours = judge("this model", "model", vectors, data, "sphere")
    other = judge("raw pixels", "baseline", vectors.roll(1, 0), data, "sphere")
    differences = gains([ours, other])
    assert [(gain["against"], gain["metric"]) for gain in differences] == [
        ("raw pixels", "recall@1"),
        ("raw pixels", "map@r"),
    ]
    for gain in differences:
        metric = gain["metric"]
        mean = np.mean(np.asarray(ours.result.per_query[metric]) - np.asarray(other.result.per_query[metric]))
        assert gain["mean"] == pytest.approx(float(mean))
        assert gain["interval"][0] <= gain["mean"] <= gain["interval"][1]
