"""Pictures of every form become the same pixels; examples become one vector."""

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.errors import UserError
from lookalike.search.queries import combined, pixels_of, placed
from tests.search.conftest import photo


def test_every_form_of_a_picture_has_the_same_pixels(tmp_path):
    image = photo("figs", 1).crop((0, 0, 30, 20))
    image.save(tmp_path / "a.png")
    array = np.asarray(image)
    expected = torch.from_numpy(array.copy()).permute(2, 0, 1)
    floats = expected / 255
    for query in (tmp_path / "a.png", (tmp_path / "a.png").read_bytes(), image, array, expected, floats):
        assert torch.equal(pixels_of(query), expected)
    assert torch.equal(pixels_of(floats * 2 - 0.5), (floats * 2 - 0.5).clamp(0, 1).mul(255).round().to(torch.uint8))
    grey = array[:, :, 0]
    assert torch.equal(pixels_of(grey), torch.from_numpy(grey.copy()).expand(3, -1, -1))


def test_a_picture_that_was_turned_is_upright():
    image = Image.new("RGB", (4, 2))
    image.getexif()[0x0112] = 6
    assert pixels_of(image).shape == (3, 4, 2)


def test_a_box_is_cut_at_the_edges():
    array = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    whole = pixels_of(array)
    assert torch.equal(pixels_of(array, (1, 2, 3, 1)), whole[:, 2:3, 1:4])
    assert torch.equal(pixels_of(array, (-2, -1, 4, 3)), whole[:, :2, :2])
    assert torch.equal(pixels_of(array, (3, 2, 9, 9)), whole[:, 2:, 3:])
    for outside in ((5, 0, 1, 1), (0, 4, 1, 1), (0, 0, 0, 1), (0, 0, 1, 0), (-2, 0, 2, 1), (0, -2, 1, 2)):
        with pytest.raises(UserError, match="lies outside the picture of 5 × 4"):
            pixels_of(array, outside)


@pytest.mark.parametrize("wrong", [np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)])
def test_other_arrays_are_no_pictures(wrong):
    with pytest.raises(UserError, match="a picture must be an array height × width × 3 of uint8"):
        pixels_of(wrong)


def test_files_that_are_no_pictures(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    for query, message in (
        (tmp_path / "none.png", "there is no image"),
        (tmp_path / "a.png", "cannot be searched for"),
    ):
        with pytest.raises(UserError, match=message):
            pixels_of(query)
    with pytest.raises(UserError, match="'the picture' cannot be searched for"):
        pixels_of(b"no picture")


def rows(*values):
    return np.array(values, np.float32)


def test_examples_are_their_mean_away_from_what_is_not_meant():
    one, two, other = [1, 0], [0, 1], [0, -1]
    assert combined(rows(one), None, "sphere") == pytest.approx(rows(one))
    assert combined(rows(one, two), None, "sphere") == pytest.approx(rows([0.5**0.5, 0.5**0.5]))
    assert combined(rows(one), rows(other), "sphere") == pytest.approx(rows([1, 0.5]) / 1.25**0.5)
    assert combined(rows([3, 0], [1, 0]), None, "none") == pytest.approx(rows([2, 0]))
    assert combined(rows([2, 0]), rows([0, 2]), "none") == pytest.approx(rows([3, -1]))
    assert combined(rows([0.5, 0], [0.1, 0]), None, "ball") == pytest.approx(rows([0.3, 0]))
    assert combined(rows([0.9, 0]), rows([-0.9, 0]), "ball") == pytest.approx(rows(one))
    with pytest.raises(UserError, match="cancel each other out"):
        combined(rows(one, [-1, 0]), None, "sphere")


def test_vectors_made_elsewhere_take_the_geometry_of_the_index():
    vector = rows([3, 4])
    assert placed(vector, "sphere") == pytest.approx(rows([0.6, 0.8]))
    assert placed(vector, "none") == pytest.approx(vector)
    assert vector.tolist() == [[3, 4]]
