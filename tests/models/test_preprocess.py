"""From any image to the network's input: the same pixels as Pillow and torchvision would make."""

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.errors import UserError
from lookalike.models import Preprocessing
from lookalike.models.backbones.hf_source import from_processor
from lookalike.models.preprocess import GREY, as_pixels, evaluation_view, prepare, scale


def photograph(height=60, width=90, seed=0):
    """Smooth colours: a resize of noise says little."""
    random = np.random.default_rng(seed)
    small = Image.fromarray(random.integers(0, 256, (6, 9, 3), dtype=np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("height", "width"), [(60, 90), (90, 61), (40, 40), (20, 31)])
def test_the_view_is_pillows(interpolation, height, width):
    image = photograph(height, width)
    how = Preprocessing(crop=28, resize=32, interpolation=interpolation)
    view = evaluation_view(as_pixels(image), how)
    short = min(height, width)
    size = (32 * width // short, 32 * height // short)
    resized = image.resize(size, getattr(Image.Resampling, interpolation.upper()))
    left, top = round((size[0] - 28) / 2), round((size[1] - 28) / 2)
    expected = np.asarray(resized.crop((left, top, left + 28, top + 28)))
    difference = np.abs(view.movedim(0, 2).numpy().astype(int) - expected)
    assert difference.max() <= 1


def test_an_image_of_the_right_size_is_only_cut():
    image = photograph(144, 200)
    view = evaluation_view(as_pixels(image), Preprocessing(crop=128, resize=144))
    assert np.array_equal(view.movedim(0, 2).numpy(), np.asarray(image)[8:136, 36:164])


def test_warping_ignores_the_proportions():
    how = Preprocessing(crop=24, resize=32, warp=True)
    view = evaluation_view(as_pixels(photograph(60, 90)), how)
    expected = np.asarray(photograph(60, 90).resize((32, 32), Image.Resampling.BILINEAR).crop((4, 4, 28, 28)))
    assert np.abs(view.movedim(0, 2).numpy().astype(int) - expected).max() <= 1


def test_mean_deviation_and_order_of_colours():
    pixels = torch.tensor([10, 20, 30], dtype=torch.uint8)[None, :, None, None]
    how = Preprocessing(mean=(1.0, 2.0, 3.0), std=(1.0, 2.0, 4.0))
    assert scale(pixels, how).flatten().tolist() == [9.0, 9.0, 6.75]
    backwards = Preprocessing(mean=(1.0, 2.0, 3.0), std=(1.0, 2.0, 4.0), order="BGR")
    assert scale(pixels, backwards).flatten().tolist() == [29.0, 9.0, 1.75]


def test_grey_becomes_colour_and_colour_grey():
    grey = torch.tensor([[[[51]]]], dtype=torch.uint8)
    unit = Preprocessing(mean=(0.0,) * 3, std=(255.0,) * 3)
    torch.testing.assert_close(scale(grey, unit).flatten(), torch.full((3,), 0.2))
    image = photograph()
    luma = scale(as_pixels(image)[None], Preprocessing(mean=(0.0,), std=(1.0,), order="L"))
    assert np.abs(luma[0, 0].numpy() - np.asarray(image.convert("L"))).max() <= 1
    assert GREY.channels == 1


def test_every_kind_of_image_gives_the_same_input():
    image = photograph()
    array = np.asarray(image)
    tensor = torch.from_numpy(array.copy()).movedim(2, 0)
    how = Preprocessing(crop=28, resize=32)
    expected = prepare([image], how)
    for same in (
        [array],
        [tensor],
        [array.astype(np.float32) / 255],
        array[None],
        tensor[None],
        [image.convert("RGBA")],
    ):
        torch.testing.assert_close(prepare(same, how), expected, rtol=0, atol=0.02)
    assert torch.equal(prepare([array], how), expected)


def test_transparency_lies_over_white():
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert (as_pixels(clear) == 255).all()
    solid = Image.new("RGBA", (4, 4), (255, 0, 0, 255))
    assert as_pixels(solid)[:, 0, 0].tolist() == [255, 0, 0]
    assert as_pixels(Image.new("L", (4, 3), 7)).shape == (1, 3, 4)
    assert as_pixels(Image.new("P", (4, 3))).shape == (3, 3, 4)


def test_survives_json():
    import json

    how = Preprocessing(crop=227, mean=(104.0, 117.0, 128.0), std=(1.0, 1.0, 1.0), order="BGR")
    assert Preprocessing.from_dict(json.loads(json.dumps(how.as_dict()))) == how


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crop": 0}, "the crop must have 1 to 8192 pixels, not 0"),
        ({"crop": 100, "resize": 90}, "resized to 90 are smaller than the crop of 100"),
        ({"order": "RBG"}, "order 'RBG': did you mean 'RGB'"),
        ({"interpolation": "nearest"}, "unknown preprocessing.interpolation 'nearest'"),
        ({"order": "L"}, "mean has 3 values for the 1 channels of L"),
        ({"std": (1.0, 0.0, 1.0)}, "std must be positive"),
        ({"warp": True, "resize": None}, "warp needs a size"),
        ({"croop": 3}, "unknown key of preprocessing 'croop': did you mean 'crop'"),
    ],
)
@pytest.mark.plain
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(UserError, match=message):
        Preprocessing.from_dict(settings)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((5, 5, 4), np.uint8), "1 or 3 channels"),
        (np.zeros((0, 5, 3), np.uint8), "has no pixels"),
        (np.zeros((5, 5, 3), np.int64), "uint8 .* or floats in 0 … 1, not torch.int64"),
        (np.full((5, 5, 3), 200.0), "float pixels must lie in 0 … 1, not 200 … 200"),
        (np.full((5, 5, 3), np.nan), "float pixels must lie in 0 … 1"),
        ("a.jpg", "must be a path, a PIL image, an array or a tensor, not str"),
        (Image.new("I;16", (4, 4)), "mode I;16 has no 8-bit pixels"),
    ],
)
@pytest.mark.plain
def test_input_that_is_not_an_image(image, message):
    with pytest.raises(UserError, match=message):
        prepare([image], Preprocessing(crop=4, resize=4))


@pytest.mark.plain
def test_an_image_smaller_than_the_crop():
    with pytest.raises(UserError, match="an image of 5 × 9 is smaller than the crop of 8"):
        prepare([np.zeros((5, 9, 3), np.uint8)], Preprocessing(crop=8, resize=None))


def test_processors_of_transformers():
    vit = from_processor({"size": {"height": 224, "width": 224}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3})
    assert (vit.resize, vit.crop, vit.warp, vit.mean) == (224, 224, True, (127.5,) * 3)
    convnext = from_processor({"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3})
    assert (convnext.resize, convnext.crop, convnext.interpolation) == (256, 224, "bicubic")
    clip = from_processor({"size": 224, "crop_size": 224, "do_center_crop": True})
    assert (clip.resize, clip.crop, clip.warp) == (224, 224, False)
    raw = from_processor({"size": 32, "do_rescale": False, "do_normalize": False})
    assert (raw.mean, raw.std) == ((0.0,) * 3, (1.0,) * 3)
