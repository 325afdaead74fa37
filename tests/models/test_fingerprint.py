"""A fingerprint names a model: the same for its copies, another for whatever embeds differently."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing

OLD = Path(__file__).with_name("saved_by_0_1_0")  # written by version 0.1.0, which knew no fingerprints
DRAWINGS = (np.arange(2 * 24 * 30) % 251).reshape(2, 24, 30).astype(np.uint8)


def small(**settings):
    architecture = Architecture("conv4", {"channels": 1, "width": 4}, dim=3, **settings)
    return Model.create(architecture, seed=5, preprocessing=Preprocessing(16, 20, mean=(1.0,), std=(2.0,), order="L"))


def test_it_survives_the_folder_and_stands_in_it(tmp_path):
    model = small()
    model.save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "model.json").read_text())["fingerprint"] == model.fingerprint
    assert Model.load(tmp_path / "m").fingerprint == model.fingerprint


def test_what_changes_an_embedding_changes_it():
    model = small()
    others = [small(pooling="avg_max"), small(layer_norm=True), small(), small(), small(), small()]
    others[2].geometry = "ball"
    others[3].preprocessing = replace(model.preprocessing, crop=17)
    with torch.no_grad():
        weight = others[4].embedder.head.linear.weight
        weight[0, 0] = torch.nextafter(weight[0, 0], torch.tensor(10.0))
        others[5].embedder.backbone.block1[1].running_mean += 1
    assert len({model.fingerprint, *(other.fingerprint for other in others)}) == 7


def test_what_changes_no_embedding_leaves_it():
    model = small()
    other = small()
    other.classes, other.metrics, other.recipe = ("hen",), {"recall@1": 1.0}, "seed = 1\n"
    other.embedder.backbone.block1[1].num_batches_tracked += 3
    assert other.fingerprint == model.fingerprint


def test_a_flipped_bit_in_the_weights_is_noticed(tmp_path):
    small().save(tmp_path / "m")
    file = tmp_path / "m" / "weights.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match="is damaged: its files changed after it was saved"):
        Model.load(tmp_path / "m")


def test_a_folder_of_version_0_1_0_loads_and_gets_one(tmp_path):
    model = Model.load(OLD)
    expected = [[-0.83452624, 0.34106186, 0.43271542], [-0.83483762, 0.34481126, 0.42912844]]
    np.testing.assert_allclose(model.encode(DRAWINGS), expected, atol=1e-6)
    assert model.fingerprint == "f661f2ff7c44464fbe1ac6286d944edc"
    assert (model.classes, model.metrics, model.recipe) == (("hen", "owl"), {"recall@1": 0.5}, "seed = 5\n")
    shutil.copytree(OLD, tmp_path / "copy")
    assert Model.load(tmp_path / "copy").fingerprint == model.fingerprint
    model.save(tmp_path / "again")
    assert Model.load(tmp_path / "again").fingerprint == model.fingerprint
