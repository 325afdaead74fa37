"""The built-in data set."""

import sys

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.data.formats.glyph_fonts import draw, glyph_classes
from lookalike.data.formats.glyphs import distort
from lookalike.errors import UserError
from tests.data import glyph_shapes


@pytest.fixture
def shared(glyph_cache, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_CACHE", str(glyph_cache))


def raw_recall(dataset):
    pixels = torch.from_numpy(np.array(dataset.images.stack[dataset.images.rows])).float().flatten(1)
    unit = torch.nn.functional.normalize(pixels - pixels.mean(1, keepdim=True), dim=1)
    scores = unit @ unit.T
    scores.fill_diagonal_(-9)
    return float((dataset.labels[scores.argmax(1)] == dataset.labels).float().mean())


@pytest.mark.usefixtures("shared")
def test_it_is_well_formed():
    dataset = data.load("glyphs")
    assert dataset.classes == dataset.present > 750
    assert int(dataset.class_sizes().min()) >= 12
    assert int(dataset.class_sizes().max()) <= 16
    assert {"Latin", "Greek", "Cyrillic", "Armenian", "Georgian"} <= set(dataset.category_names)
    assert dataset.images.open(0).decode().shape == (3, 32, 32)
    train, test = dataset.where(split="train"), dataset.where(split="test")
    assert len(train) + len(test) == len(dataset)
    assert not set(train.labels.tolist()) & set(test.labels.tolist())
    for name in dataset.category_names:
        halves = [part.where(category=name).present for part in (train, test)]
        assert abs(halves[0] - halves[1]) <= 1
    heart = dataset.categories[dataset.labels == dataset.label_id("♥")]
    assert {dataset.category_names[place] for place in heart.tolist()} == {"Shapes"}


@pytest.mark.usefixtures("shared")
def test_raw_pixels_are_far_from_solving_it():
    test = data.glyphs().where(split="test")
    some = raw_recall(test.subset(test.labels % 3 == 0))  # fewer classes are easier; the docs give the figure of all
    assert 0.2 < some < 0.45


def test_the_same_seed_gives_the_same_images(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[data.glyphs.__module__], "FONTS", ("DejaVuSans.ttf", "STIXGeneral.ttf"))
    calls = []
    datasets = []
    for place, seed in (("a", 3), ("b", 3), ("c", 4)):
        monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / place))
        datasets.append(data.glyphs(seed=seed, progress=lambda done, total: calls.append((done, total))))
    one, again, other = datasets
    assert np.array_equal(one.images.stack, again.images.stack)
    assert torch.equal(one.splits, again.splits)
    assert not np.array_equal(one.images.stack, other.images.stack)
    assert not torch.equal(one.splits, other.splits)
    assert calls[-1] == (4, 4)


def test_difficulty_and_seed_change_the_images():
    plain = torch.from_numpy(draw(["R", "ß"], "DejaVuSans.ttf", 64)).float()[:, None] / 255
    images = [
        distort(plain, hard, 32, torch.Generator().manual_seed(seed)) for hard, seed in ((0.0, 0), (0.6, 0), (0.6, 1))
    ]
    assert not torch.equal(images[1], images[2])
    # without difficulty the only change is the size: the print stays dark on white
    assert int(images[0].max()) == 255
    assert int(images[0].min()) < 60
    for image in images:
        assert image.shape == (2, 32, 32)
        assert image.dtype == torch.uint8


def test_nothing_of_a_character_is_cut_off_when_plain():
    characters = [character for character, _ in glyph_classes()][::25]
    plain = torch.from_numpy(draw(characters, "DejaVuSans.ttf", 64)).float()[:, None] / 255
    images = distort(plain, 0.0, 32, torch.Generator())
    edge = torch.cat([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], 1)
    assert int(edge.min()) == 255


@pytest.mark.parametrize("settings", [{"difficulty": 1.5}, {"size": 4}, {"size": 100}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UserError):
        data.glyphs(**settings)


def test_look_alikes_across_scripts_are_measured_as_one_shape():
    same = glyph_shapes.same_shape(["A", "Α", "А", "B", "c", "C", "ж", "ს", "∑"])
    assert same[0, 1]
    assert same[0, 2]
    assert same[4, 5]
    others = [0, 3, 4, 6, 7, 8]
    assert int(same[others][:, others].sum()) == len(others)


def test_no_two_classes_of_a_sample_have_one_shape():
    characters = [character for character, _ in glyph_classes()][::10]
    assert int(glyph_shapes.same_shape(characters).sum()) == len(characters)


@pytest.mark.slow
def test_the_list_of_classes_is_what_measuring_gives():
    """Each character is compared with those before it, so the first ones can be measured without the rest."""
    candidates = glyph_shapes.candidates()
    assert len(candidates) > 1500
    some = candidates[:450]
    measured = glyph_shapes.first_of_each_shape(some)
    listed = {character for character, _ in glyph_classes()} & set(some)
    assert len(listed) > 200
    assert len(listed & set(measured)) / len(listed | set(measured)) > 0.97


def test_scripts_of_the_list_are_those_of_the_characters():
    assert all(glyph_shapes.script(character) == name for character, name in glyph_classes())
