"""Batches in numbers against counting by hand; pictures that can be read, whatever classes are called."""

import json

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.analysis import describe_batches, draw_batches, draw_contact_sheet, draw_distances, draw_places, save
from lookalike.analysis.example import example
from lookalike.errors import UserError
from lookalike.features import centred_pixels
from tests.fixtures.figure_rules import assert_readable

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
CATEGORIES = torch.tensor([0, 0, 0, 0, 0, 1])
BATCHES = [[0, 1, 3], [0, 0, 5], [3, 4, 4]]


def test_numbers_by_hand():
    vectors = torch.arange(6.0)[:, None]
    composition = describe_batches(BATCHES, LABELS, CATEGORIES, vectors)
    assert (composition.batches, composition.batch_size) == (3, 3)
    assert composition.classes == (5 / 3, 1, 2)
    assert composition.images_per_class == (2, 1.5, 3)
    assert composition.categories == (4 / 3, 1, 2)
    assert composition.repeated == (2 / 3, 0, 1)
    assert composition.positive_pairs == pytest.approx(((2 / 6 + 2 / 6 + 1) / 3, 2 / 6, 1))
    assert composition.images_shown == 5 / 6
    assert composition.classes_shown == 1
    assert composition.within == pytest.approx((((1 + 0 + 2 / 3) / 3), 0, 1))
    assert composition.between == pytest.approx(((2.5 + 5) / 2, 2.5, 5))
    # nearest negatives: 3 → 1 is 2, 0 → 3 is 3, 1 → 3 is 2; in the second batch all are 5
    assert composition.nearest_negative == pytest.approx((((3 + 2 + 2) / 3 + 5) / 2, 7 / 3, 5))
    assert json.loads(json.dumps(composition.as_json()))["classes"] == {"mean": 5 / 3, "least": 1, "most": 2}


def test_without_categories_and_vectors():
    composition = describe_batches([[0, 3, 5]], LABELS)
    assert composition.categories is composition.within is composition.between is None
    with pytest.raises(UserError, match="no batches"):
        describe_batches([], LABELS)


def test_one_class_has_no_distance_between():
    assert describe_batches([[0, 1]], LABELS, vectors=torch.eye(6)).between is None


def test_pictures_can_be_read():
    small = example()
    batches = [list(range(12)), [0, 0, 20, 30]]
    assert_readable(draw_batches(batches, small.labels, small.categories))
    assert_readable(draw_batches(batches, torch.arange(68)))
    assert_readable(draw_places(batches, small.labels, small.vectors))
    assert_readable(draw_distances({"a": batches, "b": batches}, small.labels, small.vectors, "places"))
    with pytest.raises(UserError, match="plane"):
        draw_places(batches, small.labels, torch.zeros(68, 3))


def test_a_grid_shows_every_image_of_the_batch_once():
    from matplotlib.colors import to_hex

    figure = draw_batches([[0, 1, 5, 5]], LABELS)
    axis = figure.axes[0]
    coloured = [patch for patch in axis.patches if to_hex(patch.get_facecolor()) != "#e3e3e8"]
    assert (len(axis.patches), len(coloured)) == (6, 3)
    assert [text.get_text() for text in axis.texts] == ["2"]


def test_class_names_are_text(tmp_path):
    names = ("<img src=x onerror=alert(1)>", "$\\frac{1}$", "漢字")
    images = [torch.zeros(3, 8, 9 + at, dtype=torch.uint8) for at in range(6)]
    figure = draw_contact_sheet(images, LABELS, names)
    assert_readable(figure, pictures=True)
    paths = save(figure, {}, tmp_path, "sheet")
    assert "&lt;img src" in paths[0].read_text()
    assert all(path.stat().st_size > 0 for path in paths)


def test_pixels_are_grey_centred_and_of_length_one():
    images = np.random.default_rng(0).integers(0, 255, (3, 40, 50, 3), np.uint8)
    vectors = centred_pixels(data.arrays(images, ["a", "b", "b"]).subset([2, 0]))
    assert vectors.shape == (2, 1024)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    torch.testing.assert_close(vectors.sum(1), torch.zeros(2), atol=1e-4, rtol=0)
