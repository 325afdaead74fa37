"""What one picture may cost: memory in proportion to its pixels, and passes over them that a camera would make."""

import struct
import tracemalloc
import zlib
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.data.images.decode import Encoded
from lookalike.image_files import MAX_PIXELS, UnreadableError
from lookalike.jpeg_markers import MARKERS, structure
from tests.data.test_decode import encoded, photo

SIDE = 1500


def peak(data: bytes) -> float:
    """Bytes per pixel that Python and numpy allocate while a picture is decoded, its pixels included."""
    picture = Encoded(data)
    tracemalloc.start()
    try:
        picture.decode()
        return tracemalloc.get_traced_memory()[1] / (picture.height * picture.width)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mode", ["I;16", "I", "F", "RGBA", "LA", "P", "L", "RGB", "CMYK"])
def test_pixels_are_converted_without_copies_of_the_whole(mode):
    """Three bytes of a pixel are the result; what Pillow holds itself is not counted."""
    if mode in ("I;16", "I", "F"):
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        image = Image.fromarray(np.full((SIDE, SIDE), 900, kind))
    else:
        image = Image.new(mode, (SIDE, SIDE))
    assert peak(encoded(image, "TIFF")) < 4


@pytest.mark.parametrize("kind", [np.int32, np.float32])
@pytest.mark.parametrize(("largest", "full"), [(1, 1), (200, 255), (5000, 65535), (100_000, 100_000)])
def test_the_range_of_deep_pixels_is_that_of_the_whole_picture(kind, largest, full):
    """The largest value stands in the last row: a block before it must not take its own range."""
    values = np.zeros((SIDE, SIDE), kind)
    values[0, 0], values[-1, -1], values[0, 1] = largest // 2, largest, -5
    full = 255 if kind is np.int32 and full == 1 else full
    pixels = Encoded(encoded(Image.fromarray(values), "TIFF")).decode()
    assert [int(pixels[0, 0, 0]), int(pixels[2, -1, -1]), int(pixels[1, 0, 1])] == [
        round(largest // 2 * 255 / full),
        round(largest * 255 / full),
        0,
    ]


def test_strips_are_joined_without_a_seam():
    random = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 4), dtype=np.uint8)
    image = Image.fromarray(random, "RGBA")
    white = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    expected = torch.from_numpy(np.array(white)).permute(2, 0, 1)
    assert torch.equal(Encoded(encoded(image, "PNG", compress_level=1)).decode(), expected)


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def with_scans(count: int, height: int = 40, width: int = 40) -> bytes:
    """A progressive JPEG that claims a size, with this many scans."""
    data = encoded(photo(40, 40), "JPEG", progressive=True)
    frame, last = data.index(b"\xff\xc2"), data.rindex(b"\xff\xda")
    data = data[: frame + 5] + struct.pack(">HH", height, width) + data[frame + 9 :]
    return data[:last] + data[last:-2] * (1 + count - data.count(b"\xff\xda")) + b"\xff\xd9"


def test_scans_times_pixels_are_limited():
    side = int(MAX_PIXELS**0.5)
    Encoded(with_scans(10, side, side))  # as many as libjpeg writes, at the largest size
    with pytest.raises(UnreadableError, match="100 scans") as caught:
        Encoded(with_scans(100, side, side))
    assert caught.value.kind == "bomb"
    assert Encoded(with_scans(100)).decode().shape == (3, 40, 40)


def test_a_jpeg_of_very_many_segments_is_refused():
    data = encoded(photo(), "JPEG")
    Encoded(data[:2] + segment(0xEB, b"") * 1000 + data[2:])
    with pytest.raises(UnreadableError, match="segments") as caught:
        Encoded(data[:2] + segment(0xEB, b"") * MARKERS + data[2:])
    assert caught.value.kind == "bomb"


@pytest.mark.parametrize("form", ["PNG", "GIF"])
def test_a_file_of_very_many_blocks_is_refused(form):
    """Pillow reads chunks of a PNG and comments of a GIF one by one: a body of 20 MB would take it seconds."""
    data = encoded(photo(), form)
    palette = 13 + 3 * 2 ** (data[10] % 8 + 1)
    place, block = {
        "PNG": (33, b"\0\0\0\0zzZz" + struct.pack(">I", zlib.crc32(b"zzZz"))),
        "GIF": (palette, b"!\xfe\x01a\0"),
    }[form]
    assert Encoded(data[:place] + 5000 * block + data[place:]).decode().shape == (3, 60, 80)
    with pytest.raises(UnreadableError, match="blocks") as caught:
        Encoded(data[:place] + 20_000 * block + data[place:])
    assert caught.value.kind == "bomb"


def turned(before: bytes = b"", after: bytes = b"", **settings) -> bytes:
    """A photo on its side whose EXIF says so, with something between its beginning and its EXIF, and after its end."""
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(photo(), "JPEG", exif=exif, **settings)
    return data[:2] + before + data[2:] + after


FAKE = b"\xff\xd9\xff\xda\xff\xc2Exif\x00\x00"  # markers where none belong


@pytest.mark.parametrize("before", [b"", segment(0xE2, bytes(6000)), segment(0xE2, FAKE * 500), b"\xff" * 50])
@pytest.mark.parametrize("progressive", [False, True])
def test_exif_is_found_wherever_it_stands(before, progressive):
    upright = Encoded(turned(progressive=progressive))
    assert (upright.height, upright.width) == (80, 60)
    picture = Encoded(turned(before, progressive=progressive))
    assert (picture.height, picture.width) == (80, 60)
    assert torch.equal(picture.decode(), upright.decode())


@pytest.mark.parametrize("progressive", [False, True])
def test_what_follows_the_end_does_not_count(progressive):
    """Motion Photos carry a film there, and phones a second picture."""
    plain = Encoded(turned(progressive=progressive))
    moving = turned(after=(b"ftypmp42" + FAKE * 3) * 5000, progressive=progressive)
    assert torch.equal(Encoded(moving).decode(), plain.decode())
    assert structure(moving) == structure(turned(progressive=progressive))
    assert Encoded(encoded(photo(), "JPEG") + FAKE).orientation == 1


def test_markers_are_counted_as_libjpeg_reads_them():
    assert structure(encoded(photo(), "JPEG")).scans == 1
    progressive = encoded(photo(), "JPEG", progressive=True)
    assert structure(progressive).scans == progressive.count(b"\xff\xda") > 5
    restarts = encoded(photo(200, 300), "JPEG", progressive=True, restart_marker_rows=1)
    assert structure(restarts).scans == structure(progressive).scans
    assert b"\xff\xd0" in restarts


@pytest.mark.parametrize("length", range(0, 700, 7))
def test_a_jpeg_that_is_cut_off_has_a_structure_too(length):
    assert structure(turned()[:length]).scans in (0, 1)


def test_a_film_of_a_phone_is_read_by_pillow_too():
    assert Image.open(BytesIO(turned(after=FAKE * 1000))).size == (80, 60)
