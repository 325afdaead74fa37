"""Every kind of file becomes the same kind of tensor."""

from contextlib import suppress
from io import BytesIO

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from lookalike.data.images.decode import Encoded, resize
from lookalike.image_files import MAX_PIXELS, UnreadableError
from tests.fixtures.png import png


def photo(height=60, width=80):
    random = np.random.default_rng(1)
    coarse = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def decode(data):
    return Encoded(data).decode()


def encoded(image, form, **settings):
    file = BytesIO()
    image.save(file, form, **settings)
    return file.getvalue()


def difference(tensor, image):
    return np.abs(tensor.permute(1, 2, 0).numpy().astype(int) - np.asarray(image.convert("RGB")).astype(int)).mean()


@pytest.mark.parametrize("form", ["PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG", "JPEG2000"])
def test_formats(form):
    image = photo()
    lossless = {"WEBP": {"lossless": True}}.get(form, {})
    tensor = decode(encoded(image, form, **lossless))
    assert tensor.shape == (3, 60, 80)
    assert tensor.dtype == torch.uint8
    assert difference(tensor, image) < {"JPEG": 4, "GIF": 12}.get(form, 0.6)


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
def test_jpeg_of_every_colour_space_is_read_as_pillow_does(mode):
    data = encoded(photo().convert(mode), "JPEG", quality=95)
    assert difference(decode(data), Image.open(BytesIO(data)).convert("RGB")) < 0.6


@pytest.mark.parametrize("settings", [{"progressive": True}, {"subsampling": 0}, {"quality": 30}])
def test_jpeg_variants(settings):
    data = encoded(photo(), "JPEG", **settings)
    assert difference(decode(data), Image.open(BytesIO(data))) < 0.6


def test_palette_one_bit_and_grey():
    image = photo()
    for mode in ("P", "1", "L"):
        converted = image.convert(mode)
        assert difference(decode(encoded(converted, "PNG")), converted) < 0.6


def test_transparent_pixels_lie_over_white():
    image = photo().convert("RGBA")
    image.putalpha(Image.new("L", image.size, 0))
    assert int(decode(encoded(image, "PNG")).min()) == 255
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    assert 126 <= int(decode(encoded(half, "PNG")).float().mean()) <= 128
    palette = Image.new("P", (4, 4), 0)
    assert int(decode(encoded(palette, "PNG", transparency=0)).min()) == 255
    grey = Image.new("LA", (4, 4), (0, 0))
    assert int(decode(encoded(grey, "PNG")).min()) == 255


def test_sixteen_bits_keep_their_brightness():
    values = np.array([[0, 257 * 100, 65535]], np.uint16)
    for form in ("PNG", "TIFF"):
        assert decode(encoded(Image.fromarray(values), form))[0].tolist() == [[0, 100, 255]]
    dark = np.array([[0, 100]], np.uint16)  # nearly black, not 8-bit grey
    assert decode(encoded(Image.fromarray(dark), "PNG"))[0].tolist() == [[0, 0]]
    share = np.array([[0.0, 0.5, 1.0]], np.float32)
    assert decode(encoded(Image.fromarray(share), "TIFF"))[0].tolist() == [[0, 128, 255]]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_photos_are_turned_upright(orientation, form):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(photo(), form, exif=exif)
    upright = ImageOps.exif_transpose(Image.open(BytesIO(data)))
    picture = Encoded(data)
    assert (picture.width, picture.height) == upright.size
    assert difference(picture.decode(), upright) < 0.6


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("scale", [1.0, 0.6, 0.5, 0.25, 0.2, 0.12, 0.05])
def test_reduced_decoding_keeps_enough(orientation, scale):
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = Encoded(encoded(photo(240, 400), "JPEG", exif=exif, quality=95))
    small = picture.decode(scale)
    assert small.shape[1] >= int(picture.height * scale)
    assert small.shape[2] >= int(picture.width * scale)
    if scale <= 0.25:
        assert small.shape[1] <= picture.height // 2
    target = int(240 * scale), int(400 * scale)
    assert (resize(small, *target).float() - resize(picture.decode(), *target).float()).abs().mean() < 1


def test_resizing_agrees_with_pillow():
    image = photo(90, 120)
    tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    for height, width in ((30, 50), (224, 224), (90, 60)):
        other = image.resize((width, height), Image.Resampling.BILINEAR)
        assert difference(resize(tensor, height, width), other) < 1


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"this is no image at all", "not an image"),
        (encoded(photo(), "JPEG")[:900], "truncated"),
        (encoded(photo(), "PNG")[:-200], "truncated"),
        (b"\xff\xd8\xff\xe0 garbage", "truncated"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "not an image"),
        (encoded(photo(), "GIF")[:60], "not an image"),
    ],
)
def test_kinds_of_bad_files_are_distinguished(data, kind):
    with pytest.raises(UnreadableError) as caught:
        decode(data)
    assert caught.value.kind == kind


def test_bombs_are_not_decoded():
    side = int(MAX_PIXELS**0.5)
    for width in (side + 100, 3 * side):  # Pillow itself warns of the first and refuses the second
        with pytest.raises(UnreadableError, match="bomb"):
            Encoded(png(width, side))


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF", b"BM", b"II*\0"]),
)
def test_no_bytes_crash_the_decoder(data, beginning):
    with suppress(UnreadableError):
        assert decode(beginning + data).shape[0] == 3


@given(st.integers(0, 2000), st.integers(0, 255))
def test_a_damaged_byte_never_crashes(place, value):
    data = bytearray(encoded(photo(), "JPEG"))
    data[place % len(data)] = value
    with suppress(UnreadableError):
        assert decode(bytes(data)).dtype == torch.uint8
