"""Cuts: the numbers of the protocols, and pixels that come out right."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.data.images.augment import ASPECT, PRESETS, Augmentation, apply, preset
from lookalike.data.images.source import DecodedImage
from lookalike.errors import UserError

sides = st.integers(1, 700)


@given(st.sampled_from(sorted(PRESETS)), st.booleans(), sides, sides, st.integers(0, 99))
def test_every_cut_is_within_the_image(name, training, height, width, seed):
    part = preset(name).train if training else preset(name).evaluation
    cut = part.cut(height, width, torch.Generator().manual_seed(seed))
    top, left, rows, columns = cut.box
    assert top >= 0
    assert left >= 0
    assert 1 <= rows <= cut.whole[0] - top
    assert 1 <= columns <= cut.whole[1] - left


@pytest.mark.parametrize(
    ("name", "size", "whole"),
    [("roth", 224, (300, 500)), ("mlrc", 227, (256, 426)), ("ms", 227, (256, 426)), ("fastap", 224, (256, 256))],
)
def test_training_cuts_have_the_numbers_of_the_protocol(name, size, whole):
    train = preset(name).train
    low = {"roth": 0.08, "mlrc": 0.16, "ms": 0.16}.get(name)
    generator = torch.Generator().manual_seed(0)
    cuts = [train.cut(300, 500, generator) for _ in range(3000)]
    assert {(cut.size, cut.whole) for cut in cuts} == {(size, whole)}
    assert 0.46 < sum(cut.flip for cut in cuts) / len(cuts) < 0.54
    boxes = torch.tensor([cut.box for cut in cuts], dtype=torch.float64)
    if low is None:
        assert boxes[:, 2:].eq(224).all()
        assert {int(value) for value in boxes[:, :2].flatten()} == set(range(33))
        return
    area = boxes[:, 2] * boxes[:, 3] / (whole[0] * whole[1])
    aspect = boxes[:, 3] / boxes[:, 2]
    assert low * 0.97 <= area.min() < low + 0.05
    assert area.max() > 0.75
    assert ASPECT[0] * 0.97 <= aspect.min() < 0.78
    assert 1.28 < aspect.max() <= ASPECT[1] * 1.03


@pytest.mark.parametrize(
    ("name", "whole", "box"),
    [
        ("roth", (256, 341), (16, 58, 224, 224)),
        ("mlrc", (256, 341), (14, 57, 227, 227)),
        ("ms", (256, 341), (14, 57, 227, 227)),
        ("fastap", (256, 256), (16, 16, 224, 224)),
    ],
)
def test_evaluation_is_the_centre(name, whole, box):
    cut = preset(name).evaluation.cut(300, 400, torch.Generator())
    assert (cut.whole, cut.box, cut.flip) == (whole, box, False)


def test_a_preset_is_warped_or_not_as_asked():
    photo = (300, 500, torch.Generator().manual_seed(0))
    warped = preset("roth").resized(112, 128, warp=True)
    assert warped.train.cut(*photo).whole == (128, 128) == warped.evaluation.cut(*photo).whole
    plain = preset("fastap").resized(112, 128, warp=False)
    assert plain.train.cut(*photo).whole == (128, 213) == plain.evaluation.cut(*photo).whole
    assert preset("roth").resized(112, 128, warp=False) == preset("roth").resized(112, 128)
    assert preset("fastap").resized(112, 128, warp=True) == preset("fastap").resized(112, 128)


def test_extreme_shapes_fall_back_to_the_centre():
    cut = Augmentation(8, area=(1.0, 1.0)).cut(10, 1000, torch.Generator().manual_seed(0))
    assert cut.box == (0, 493, 10, 13)


def test_a_strip_does_not_fill_the_memory():
    assert preset("mlrc").train.cut(1, 10_000, torch.Generator()).whole == (256, 4096)
    assert preset("roth").evaluation.cut(10_000, 1, torch.Generator()).whole == (4096, 256)


def test_pixels_are_those_of_the_box():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    cut = Augmentation(8).cut(20, 30, torch.Generator())
    whole = Augmentation(20).cut(20, 30, torch.Generator())
    assert cut.whole == (20, 30)
    assert torch.equal(apply(DecodedImage(image), cut), torch.from_numpy(image[6:14, 11:19]).permute(2, 0, 1))
    flipped = apply(DecodedImage(image), whole._replace(flip=True))
    assert torch.equal(flipped, torch.from_numpy(image[:, 5:25][:, ::-1].copy()).permute(2, 0, 1))
    assert flipped.is_contiguous()


def test_small_images_grow():
    tiny = DecodedImage(np.full((3, 5, 3), 9, np.uint8))
    for name in PRESETS:
        for part in (preset(name).train, preset(name).evaluation):
            cut = part.cut(3, 5, torch.Generator())
            assert apply(tiny, cut).unique().tolist() == [9]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_grow_beyond_their_own_short_side(name):
    assert preset(name).resized(288, 329).evaluation.size == 288


def test_presets_resize():
    small = preset("mlrc").resized(128, short_side=144)
    assert (small.train.size, small.train.short_side, small.train.area) == (128, 144, (0.16, 1.0))
    assert preset("fastap").resized(64, 72).evaluation.cut(99, 50, torch.Generator()).box == (4, 4, 64, 64)
    assert preset("roth").resized(128, 144).train.short_side is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: preset("rot"), "unknown augmentation 'rot': did you mean 'roth'"),
        (lambda: Augmentation(0), "size must be positive"),
        (lambda: Augmentation(224, short_side=200), "short_side 200 is smaller than the crop of 224"),
        (lambda: Augmentation(8, area=(0.0, 1.0)), "area is a range"),
        (lambda: Augmentation(8, flip=2.0), "flip is a probability"),
        (lambda: Augmentation(8, warp=9, short_side=9), "not both"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()
