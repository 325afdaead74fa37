"""Caches are complete or absent, however their builders end."""

import multiprocessing
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookalike import data
from lookalike.cache import built, cache_folder, loaded
from lookalike.data.images.decoded_cache import Decoded, decoded
from lookalike.data.images.digests import content_digests, pixel_digest
from lookalike.errors import UserError
from lookalike.image_files import UnreadableError
from tests.cli.processes import Python

SLOW_BUILDER = """
import sys, time
from lookalike.cache import built
def build(folder):
    for part in range(30):
        (folder / f"{part}.txt").write_text("x")
        print(part, flush=True)
        time.sleep(float(sys.argv[1]))
print(len(list(built("things", "one", build).iterdir())), "kept", flush=True)
"""


def start(pause):
    return Python(SLOW_BUILDER, pause, LOOKALIKE_CACHE=cache_folder())


def test_a_killed_builder_leaves_nothing_that_looks_finished():
    builder = start(60)  # it is killed long before the second part
    assert builder.output.readline() == "0\n"
    builder.killed()
    assert not (cache_folder() / "things" / "one").exists()
    assert list((cache_folder() / "things").glob(".one.*.partial"))
    place = built("things", "one", lambda folder: (folder / "a.txt").write_text("whole") and None)
    assert [file.name for file in place.iterdir()] == ["a.txt"]
    assert not list((cache_folder() / "things").glob(".one.*.partial"))


def test_a_second_builder_waits_for_the_first():
    first = start(0.02)
    assert first.output.readline() == "0\n"
    second = start(0.02)
    assert first.ended()[1].endswith("30 kept\n")
    assert second.ended() == (0, "30 kept\n")


def test_threads_of_one_process_build_once():
    calls = []

    def build(folder):
        calls.append(folder)
        time.sleep(0.05)
        (folder / "a").write_text("x")

    with ThreadPoolExecutor(4) as pool:
        places = set(pool.map(lambda _: built("things", "two", build), range(4)))
    assert len(places) == len(calls) == 1


def test_a_failing_builder_may_try_again():
    def fail(folder):
        (folder / "half").write_text("x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        built("things", "three", fail)
    assert [file.name for file in (cache_folder() / "things").iterdir()] == ["three.lock"]
    built("things", "three", lambda folder: (folder / "whole").write_text("x") and None)


def test_a_full_or_closed_disk_is_one_line(monkeypatch, tmp_path):
    def full(_folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match=r"No space left on device.*LOOKALIKE_CACHE"):
        built("things", "four", full)
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "file"))
    with pytest.raises((UserError, NotADirectoryError)):
        built("things", "five", full)


def test_the_folder_of_the_user_is_used_without_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("LOOKALIKE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert cache_folder() == tmp_path / "lookalike"


@pytest.fixture
def photos(pictures):
    for place in range(6):
        pictures.save(f"hen/{place}.png", pictures.pixels(40 + place, 60))
    pictures.save("owl/small.png", pictures.pixels(10, 12))
    (pictures.root / "owl" / "bad.jpg").write_bytes(b"nothing")
    return pictures


def test_the_decoded_cache_holds_reduced_images(photos):
    calls = []
    reduced = decoded(data.folder(photos.root), 20, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (8, 8)
    assert len(reduced) == 7
    assert [(problem.path, problem.kind) for problem in reduced.problems] == [("owl/bad.jpg", "not an image")]
    sizes = [tuple(reduced.images.open(row).decode().shape) for row in range(7)]
    assert sizes[0] == (3, 20, 30)
    assert sizes[6] == (3, 10, 12)
    assert [reduced.images.name(row) for row in (0, 6)] == ["hen/0.png", "owl/small.png"]
    plain = data.folder(photos.root).images.open(7).decode()
    assert (reduced.images.open(6).decode() == plain).all()


def test_the_cache_is_used_again_and_follows_the_content(photos, monkeypatch):
    first = decoded(data.folder(photos.root), 20)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[decoded.__module__], "_write", lambda *_: pytest.fail("built again"))
        again = decoded(data.folder(photos.root), 20)
    assert (again.images.open(3).decode() == first.images.open(3).decode()).all()
    moved = photos.root.rename(photos.root.parent / "moved")
    assert decoded(data.folder(moved), 20).images.pixels.filename == first.images.pixels.filename
    photos.root = moved
    photos.save("hen/3.png", photos.pixels(43, 60))
    changed = decoded(data.folder(moved), 20)
    assert changed.images.pixels.filename != first.images.pixels.filename
    assert (changed.images.open(3).decode() != first.images.open(3).decode()).any()
    assert decoded(data.folder(moved), 21).images.pixels.filename != changed.images.pixels.filename


@pytest.mark.parametrize("name", ["mlrc", "ms"])
def test_protocols_that_resize_first_see_the_same_crops(pictures, name):
    pictures.save("hen/a.jpg", pictures.pixels(90, 131), quality=95)
    pictures.save("hen/b.jpg", pictures.pixels(700, 310), quality=95)
    dataset = data.folder(pictures.root)
    train = data.preset(name).train
    plain, reduced = data.AugmentedImages(dataset, train), data.AugmentedImages(decoded(dataset, 256), train)
    assert (plain[1].image == reduced[1].image).all()
    assert (plain[0].image == reduced[0].image).all()


def _shape(source: Decoded) -> tuple[int, ...]:
    return tuple(source.open(0).decode().shape)


def test_worker_processes_map_the_file_again(photos):
    reduced = decoded(data.folder(photos.root), 20).subset([5, 1])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_shape, (reduced.images,)) == _shape(reduced.images)
    view = data.AugmentedImages(reduced, data.preset("roth").resized(16, 20).train)
    [sample] = data.loader(view, data.Tickets([[0, 1]]), workers=1)
    assert sample.image.shape == (2, 3, 16, 16)


def test_data_in_memory_needs_no_cache():
    import numpy as np

    dataset = data.arrays(np.zeros((1, 4, 4), np.uint8), ["a"])
    assert decoded(dataset) is dataset


def test_images_in_the_cache_know_the_digests_of_their_pixels(photos):
    images = decoded(data.folder(photos.root), 20).subset([3, 0]).images
    assert len(images.digests) == 2
    pictures = [images.open(row).decode().permute(1, 2, 0).contiguous().numpy() for row in range(2)]
    assert [digest.tobytes() for digest in content_digests(images)] == [pixel_digest(picture) for picture in pictures]
    assert (images.digests[0] != images.digests[1]).any()


def test_a_renamed_file_is_reported_under_its_new_name(photos):
    decoded(data.folder(photos.root), 20)
    (photos.root / "owl" / "bad.jpg").rename(photos.root / "owl" / "bald.jpg")
    (photos.root / "hen" / "5.png").rename(photos.root / "hen" / "6.png")
    again = decoded(data.folder(photos.root), 20)
    assert [problem.path for problem in again.problems] == ["owl/bald.jpg"]
    assert [again.images.name(row) for row in (5, 6)] == ["hen/6.png", "owl/small.png"]


def flipped(file, position):
    content = bytearray(file.read_bytes())
    content[position] ^= 16
    file.write_bytes(content)


DAMAGES = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file: file.write_bytes(b""),
    "gone": lambda file: file.unlink(),
    "flipped": lambda file: flipped(file, file.stat().st_size // 2),
    "other": lambda file: file.write_bytes(b"nothing of the kind"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["index.npz", "pixels.bin", "digests.npz"])
def test_a_damaged_cache_is_built_again(photos, name, damage):
    expected = decoded(data.folder(photos.root), 20)
    pictures = [expected.images.open(row).decode().clone() for row in range(len(expected))]
    (file,) = cache_folder().rglob(name)
    DAMAGES[damage](file)
    again = decoded(data.folder(photos.root), 20)
    assert again.problems == expected.problems
    assert all((again.images.open(row).decode() == picture).all() for row, picture in enumerate(pictures))
    assert [again.images.name(row) for row in range(7)] == [expected.images.name(row) for row in range(7)]


def test_a_damaged_picture_whose_file_is_gone_is_one_line(photos):
    dataset = decoded(data.folder(photos.root), 20)
    (file,) = cache_folder().rglob("pixels.bin")
    flipped(file, 5)
    (photos.root / "hen" / "0.png").unlink()
    with pytest.raises(UnreadableError):
        decoded(dataset, 20).images.open(0)
    assert dataset.images.open(1).decode().shape == (3, 20, 29)


def test_damaged_glyphs_are_drawn_again(monkeypatch):
    monkeypatch.setattr(sys.modules[data.glyphs.__module__], "FONTS", ("DejaVuSans.ttf", "STIXGeneral.ttf"))
    expected = data.load("glyphs")
    (kept,) = cache_folder().glob("glyphs/*/glyphs.npz")
    DAMAGES["flipped"](kept)
    again = data.load("glyphs")
    assert (again.labels == expected.labels).all()
    assert (again.images.open(77).decode() == expected.images.open(77).decode()).all()


def test_a_pipe_in_the_place_of_a_kept_file_is_built_again():
    def build(folder):
        (folder / "note.txt").write_text("kept")

    def load(folder):
        return (folder / "note.txt").read_text()

    file = built("notes", "pipe", build) / "note.txt"
    file.unlink()
    os.mkfifo(file)
    assert loaded("notes", "pipe", build, load) == "kept"
    assert file.is_file()
