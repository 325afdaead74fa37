"""Vectors of a data set: those of `encode`, found again by content, the same views each time."""

import shutil
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn

from lookalike.cache import in_memory
from lookalike.data import Augmentation, arrays, folder
from lookalike.errors import UserError
from lookalike.features import View, embed, extract, features
from lookalike.models import Architecture, Model, Preprocessing
from tests.features import scenes

extracting = import_module("lookalike.features.extract")  # the name is that of a function, too


def computed(*given, **settings):
    """The vectors, and how many of them the network computed."""
    calls = [(0, 0)]
    vectors = extract(*given, **settings, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1]
    return vectors, calls[-1][0]


def test_vectors_are_those_of_encode_and_kept():
    model, data = scenes.model(), scenes.dataset()
    vectors, count = computed(model, data)
    assert count == len(data)
    torch.testing.assert_close(vectors, model.encode(list(scenes.images())), atol=1e-6, rtol=0)
    again, count = computed(model, data)
    assert count == 0
    assert torch.equal(again, vectors)


def test_runs_of_a_sweep_read_vectors_once(cache, monkeypatch):
    model, data = scenes.model(), scenes.dataset()
    with in_memory():
        vectors, count = computed(model, data)
        assert count == len(data)
        shutil.rmtree(cache / "features")
        again, count = computed(model, data.subset(torch.tensor([7, 3])))
        assert count == 0
        assert torch.equal(again, vectors[[7, 3]])
        monkeypatch.setattr(extracting, "IN_MEMORY", 0)
        other = scenes.model(seed=1)
        assert [computed(other, data)[1], shutil.rmtree(cache / "features"), computed(other, data)[1]] == [
            len(data),
            None,
            len(data),
        ]
    shutil.rmtree(cache / "features")
    assert computed(model, data)[1] == len(data)


def test_a_vector_does_not_depend_on_what_is_computed_beside_it(monkeypatch, tmp_path):
    model, data = scenes.model(), scenes.dataset()
    vectors = extract(model, data)
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "another"))
    rows = torch.tensor([140, 3, 77])
    assert torch.equal(extract(model, data.subset(rows)), vectors[rows])


def test_other_orders_and_more_images_compute_only_what_is_new():
    model = scenes.model()
    vectors, _ = computed(model, scenes.dataset(100))
    more, count = computed(model, scenes.dataset())
    assert count == scenes.ROWS - 100
    assert torch.equal(more[:100], vectors)
    doubled = scenes.dataset().subset(torch.tensor([5, 149, 5]))
    again, count = computed(model, doubled)
    assert count == 0
    assert torch.equal(again, more[[5, 149, 5]])


@pytest.mark.parametrize(
    "other",
    [
        scenes.model(seed=1),
        scenes.model(pooling="gem"),
        Model(
            scenes.model().embedder,
            Preprocessing(16, 18, mean=(0.0,), std=(9.0,), order="L"),
            scenes.model().architecture,
        ),
    ],
)
def test_another_network_or_preprocessing_computes_anew(other):
    extract(scenes.model(), scenes.dataset())
    vectors, count = computed(other, scenes.dataset())
    assert count == scenes.ROWS
    torch.testing.assert_close(vectors, other.encode(list(scenes.images())), atol=1e-6, rtol=0)


def test_models_that_differ_in_the_head_share_their_features():
    data = scenes.dataset()
    one = scenes.model(layer_norm=True)
    other = Model.create(Architecture("conv4", {"channels": 1, "width": 8}, dim=9, bias=False))
    vectors, _ = computed(one.headless(), data)
    shared, count = computed(other.headless(), data)
    assert count == 0
    assert torch.equal(vectors, shared)
    torch.testing.assert_close(vectors, features(one, data), atol=1e-6, rtol=0)
    expected = nn.functional.normalize(one.embedder.head(vectors), dim=1)
    torch.testing.assert_close(expected, embed(one, data), atol=1e-6, rtol=0)


def test_a_network_without_a_name_is_not_kept(cache):
    own = Model(nn.Flatten(), Preprocessing(8, 8, mean=(0.0,), std=(1.0,), order="L"))
    vectors, count = computed(own, scenes.dataset())
    assert count == scenes.ROWS
    torch.testing.assert_close(vectors, own.encode(list(scenes.images())), atol=1e-6, rtol=0)
    assert not (cache / "features").exists()


def test_views_are_the_same_for_equal_images_wherever_they_are():
    model, data = scenes.model(), scenes.dataset()
    augmentation = Augmentation(16, area=(0.3, 0.8), flip=0.5)
    first = extract(model, data, View(augmentation, number=1))
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    shuffled, count = computed(model, data.subset(rows), View(augmentation, number=1))
    assert count == 0
    assert torch.equal(shuffled, first[rows])
    for other in (View(augmentation, 2), View(augmentation, 1, seed=1), View(Augmentation(16, area=(0.1, 0.2)), 1)):
        vectors, count = computed(model, data, other)
        assert count == len(data)
        same = torch.isclose(vectors, first).all(1)
        assert same.float().mean() < 0.02  # two crops of a small image may be the same by chance


def test_files_are_known_by_content(tmp_path):
    from PIL import Image

    for row, image in enumerate(scenes.images(6)):
        place = tmp_path / "photos" / f"class {row % 2}" / f"{row}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    model = scenes.model()
    vectors, count = computed(model, folder(tmp_path / "photos"))
    assert count == 6
    (tmp_path / "photos").rename(tmp_path / "moved")
    again, count = computed(model, folder(tmp_path / "moved"))
    assert count == 0
    assert torch.equal(again, vectors)
    changed = sorted((tmp_path / "moved").rglob("*.png"))[0]
    Image.fromarray(255 - np.array(Image.open(changed))).save(changed)
    _, count = computed(model, folder(tmp_path / "moved"))
    assert count == 1
    data = folder(tmp_path / "moved")
    changed.write_bytes(b"no image at all")
    with pytest.raises(UserError, match=r"cannot read .*\.png .*lookalike audit"):
        extract(model, data)


def test_images_of_equal_bytes_and_another_shape_are_different():
    model = Model(nn.Flatten(), Preprocessing(4, 4, warp=True, mean=(0.0,), std=(1.0,), order="L"))
    bare = scenes.model()
    flat = scenes.images(1).reshape(1, 24, 20)
    for each in (model, bare):
        one, other = extract(each, scenes.dataset(1)), extract(each, arrays(flat, ["a"]))
        assert not torch.equal(one, other)


@pytest.mark.plain
@pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxscript", "onnxruntime"))), reason="ONNX is not installed (extra: export)"
)
def test_onnx_computes_the_same_vectors_which_are_kept_apart():
    model, data = scenes.model(), scenes.dataset()
    vectors, count = computed(model, data, backend="auto")
    assert count == len(data)
    expected, count = computed(model, data, backend="torch")
    assert count == len(data)
    assert not torch.equal(vectors, expected)
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)
    again, count = computed(model, data, backend="onnx")
    assert count == 0
    assert torch.equal(again, vectors)
