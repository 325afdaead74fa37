"""Pictures from strangers, function by function."""

import struct
from io import BytesIO

import pytest
import torch
from PIL import Image

from lookalike.models.preprocess import Preprocessing
from lookalike.search.serve.pictures import BULKY, KEPT, SCANS, Upload, check_header, decoded, inputs_of, kept_picture
from lookalike.search.serve.refusals import Refusal
from tests.fixtures.png import png
from tests.search.serve.broken import many_scans, scanned
from tests.search.serve.conftest import encoded

HOW = Preprocessing(resize=32, crop=32)


def test_a_digest_is_that_of_the_picture_and_its_box():
    digests = {Upload(b"a").digest, Upload(b"b").digest, Upload(b"a", (0, 0, 1, 1)).digest}
    assert len(digests) == 3
    assert Upload(b"a").digest == Upload(b"a").digest
    assert len(Upload(b"a").digest) == 32


def status_of(content, most=10**6):
    with pytest.raises(Refusal) as refused:
        check_header(content, most)
    return refused.value.status


def test_headers_are_read_before_pixels():
    for kind in ("JPEG", "PNG", "WEBP", "GIF"):
        check_header(encoded(kind=kind), 1600)  # 40 × 40
        assert status_of(encoded(kind=kind), 1599) == 413
    for wrong in (b"", b"text", b"RIFF\x00\x00\x00\x00WAVEfmt ", b"%!PS-Adobe", encoded(kind="BMP")):
        assert status_of(wrong) == 415
    assert status_of(many_scans()) == 422
    assert status_of(png(50_000, 50_000)) == 413
    assert status_of(b"\xff\xd8\xff") == 422


def test_as_many_scans_as_a_camera_writes():
    check_header(scanned(SCANS), 10**6)
    assert status_of(scanned(SCANS + 1)) == 422
    check_header(scanned(16), 1600)
    assert status_of(scanned(17), 1600) == 422  # of the largest picture that is allowed


def test_what_follows_a_photo_is_no_scan():
    check_header(encoded(kind="JPEG") + b"\xff\xda" * 1000, 10**6)


def test_large_pictures_are_known_by_their_headers():
    """By what they would take to decode, not by the size of the file."""
    for width, large in ((2000, False), (3000, True)):
        content = png(width, 5000)
        assert check_header(content, 10**8) is large
        assert check_header(content + bytes(BULKY), 10**8) is True
    assert check_header(scanned(10), 10**6) is False
    header = b"RIFF\x16\0\0\0WEBPVP8L\x0a\0\0\0\x2f"
    webp = [header + struct.pack("<I", 9999 | (height - 1) << 14) + bytes(5) for height in (400, 600, 3001)]
    assert [check_header(each, 10**8) for each in webp[:2]] == [False, True]
    assert status_of(webp[2], 10**8) == 413  # 20 bytes of memory for a pixel


def test_a_box_is_cut_out_and_a_bad_one_refused():
    upload = Upload(encoded(kind="PNG"), (5, 6, 20, 10))
    whole = decoded(Upload(upload.content))
    assert torch.equal(decoded(upload), whole[:, 6:16, 5:25])
    for wrong, status in ((Upload(upload.content, (400, 0, 5, 5)), 400), (Upload(encoded(kind="PNG")[:200]), 422)):
        with pytest.raises(Refusal) as refused:
            decoded(wrong)
        assert refused.value.status == status


def test_the_network_takes_a_picture_and_its_mirror_image():
    upload = Upload(encoded(kind="PNG"))
    one, two = inputs_of(upload, HOW, flip=False), inputs_of(upload, HOW, flip=True)
    assert (one.shape, two.shape) == ((1, 3, 32, 32), (2, 3, 32, 32))
    assert torch.equal(two[:1], one)
    assert torch.allclose(two[1].flip(2), one[0], atol=0.05)
    assert not torch.equal(two[1], one[0])


def test_a_marked_query_is_kept_as_a_jpeg_of_moderate_size():
    file = BytesIO()
    Image.new("RGB", (3000, 600), "red").save(file, "PNG")
    kept = Image.open(BytesIO(kept_picture(Upload(file.getvalue()))))
    assert (kept.format, kept.size) == ("JPEG", (KEPT, round(KEPT / 5)))
    red, green, blue = kept.convert("RGB").getpixel((9, 9))
    assert red > 240
    assert max(green, blue) < 20
