"""Folders as attackers and broken disks leave them: nothing hangs, nothing fills the memory, nothing stops the scan."""

import json
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike import data
from lookalike.cache import cache_folder
from lookalike.data.images.decode import Encoded
from lookalike.errors import UserError
from lookalike.files import printable, read_regular
from lookalike.image_files import FORMATS, UnreadableError, open_image, read
from tests.cli.processes import Python

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n0 setgray showpage\n"
LATIN = os.fsdecode(b"caf\xe9")  # bytes that are not UTF-8


@pytest.fixture
def hostile(pictures):
    """Two good classes, and one of every special file among them."""
    for kind in ("hen", "owl"):
        for place in range(2):
            pictures.save(f"{kind}/{place}.jpg")
    root = pictures.root
    os.mkfifo(root / "hen" / "pipe.jpg")
    os.symlink(root / "hen" / "pipe.jpg", root / "hen" / "to_pipe.jpg")
    os.symlink("/dev/zero", root / "hen" / "zero.jpg")
    os.symlink("loop.jpg", root / "hen" / "loop.jpg")
    os.symlink("loop", root / "loop")
    os.mkfifo(root / "hen" / "pipe.dat")
    with (root / "hen" / "sparse.jpg").open("wb") as file:
        file.truncate(1 << 40)
    (root / "hen" / "drawing.jpg").write_bytes(POSTSCRIPT)
    (root / LATIN).mkdir()
    for place in range(2):
        pictures.save(f"owl/{place}.png")
        os.rename(root / "owl" / f"{place}.png", root / LATIN / f"{LATIN} {place}.png")
    return pictures


KINDS = {
    "hen/drawing.jpg": "not an image",
    "hen/loop.jpg": "missing",
    "hen/pipe.jpg": "not a file",
    "hen/sparse.jpg": "too large",
    "hen/to_pipe.jpg": "not a file",
    "hen/zero.jpg": "link",  # it leads out of the folder
}


def alone(code, argument):
    """The exit code and output of a process of its own, which is killed if it hangs and may use two gigabytes."""
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))\n" + code
    return Python(limited, argument, LOOKALIKE_CACHE=cache_folder()).ended()


def test_every_special_file_is_listed_and_none_is_opened(hostile):
    code = (
        "import json, sys; from lookalike import data; print(json.dumps(data.audit(data.load(sys.argv[1])).as_json()))"
    )
    ended, printed = alone(code, hostile.root)
    assert ended == 0, printed
    report = json.loads(printed)
    listed = {
        item["path"]: item["kind"] for finding in report["findings"] for item in finding["items"] if "kind" in item
    }
    assert listed == KINDS
    assert report["readable"] == 6
    assert report["usable"]


def test_the_decoded_cache_leaves_them_out(hostile):
    kept = data.decoded(data.load(hostile.root), 16)
    assert {problem.path: problem.kind for problem in kept.problems} == KINDS
    assert len(kept) == 6


def test_postscript_is_not_handed_to_another_program(monkeypatch):
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("Ghostscript was called"))
    with pytest.raises(UnreadableError, match="not an image"):
        Encoded(POSTSCRIPT).decode()
    assert not {"EPS", "WMF", "PSD", "FITS", "GRIB"} & set(FORMATS)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO", "TGA"])
def test_formats_that_remain(form):
    file = BytesIO()
    Image.new("RGB", (16, 16), (200, 10, 10)).save(file, form)
    assert open_image(file.getvalue()).size == (16, 16)


def test_names_that_are_not_utf8_are_printable_everywhere(hostile, tmp_path):
    dataset = data.load(hostile.root)
    assert "caf\\xe9" in dataset.label_names
    rows = [row for row in range(len(dataset)) if "caf" in dataset.images.name(row)]
    assert dataset.images.name(rows[0]) == "caf\\xe9/caf\\xe9 0.png"
    assert dataset.images.open(rows[0]).decode().shape == (3, 24, 32), "the file is still found"
    text = json.dumps({"names": [*dataset.label_names, *map(dataset.images.name, rows)]}, ensure_ascii=False)
    (tmp_path / "names.json").write_text(text, encoding="utf-8")
    (hostile.root / f"{LATIN}.jpg").write_bytes(b"")
    problems = data.load(hostile.root).problems
    assert [problem.path for problem in problems] == ["caf\\xe9.jpg", "hen/zero.jpg"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain ü 日本.jpg", "plain ü 日本.jpg"),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("\ud800", "\\ud800"),
        ("a\u3000b", "a\u3000b"),
    ],
)
def test_printable_names(name, shown):
    assert printable(name) == shown
    printable(name).encode("utf-8")


def test_paths_of_a_table_may_be_anything(pictures):
    pictures.save("a.jpg")
    lines = ["path,label", "a.jpg,x", "a\0b.jpg,x", f"{'x' * 5000}.jpg,x", "/dev/zero,x", "/,x"]
    dataset = data.table(pictures.write("t.csv", lines))
    kinds = [finding.kind for finding in data.audit(dataset).findings]
    assert kinds[:2] == ["missing", "not a file"]
    assert data.decoded(dataset, 16).problems[0].kind == "missing"


def test_a_table_of_one_endless_line_is_refused(tmp_path):
    with (tmp_path / "t.csv").open("wb") as file:
        file.truncate(1 << 36)
    code = "import sys; from lookalike import data; data.load(sys.argv[1])"
    _, printed = alone(code, tmp_path / "t.csv")
    assert "UserError: 't.csv' is not a table: line 1 has over 1,048,576 characters" in printed


def test_a_damaged_parquet_file_is_one_line(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(UserError, match=r"'t\.parquet' cannot be read as Parquet: ") as caught:
        data.load(tmp_path / "t.parquet")
    assert "\n" not in str(caught.value)


def test_only_ordinary_files_below_the_limit_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_regular(tmp_path / "file", 4)
    with pytest.raises(OSError, match="not an ordinary file"):
        read_regular(Path("/dev/null"), 4)
    with pytest.raises(UnreadableError, match="not a file"):
        read(tmp_path)


def test_a_long_strip_is_squeezed_the_same_everywhere():
    from lookalike.models.preprocess import Preprocessing, as_pixels, evaluation_view

    strip = np.random.default_rng(0).integers(0, 256, (1, 30000, 3), dtype=np.uint8)
    view = evaluation_view(as_pixels(strip), Preprocessing(crop=224, resize=256))
    training = data.AugmentedImages(data.arrays([strip], ["a"]), data.preset("roth").evaluation)[0].image
    assert view.shape == training.shape == (3, 224, 224)
    assert (view.float() - training.float()).abs().mean() < 1
