"""Segments on disk: read as they were written, never where they are damaged, and no more of them than are needed."""

import json
import zlib

import numpy as np
import pytest

from lookalike import files
from lookalike.search.stores import cache as module
from lookalike.search.stores.cache import Cache, checksum
from lookalike.search.stores.segments import NOTHING, Segment, View, build

DIM = 6


def segment(first, count, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return build(np.arange(first, first + count), vectors, spherical=False)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


@pytest.fixture
def view():
    removed = segment(1, 50).without(np.array([3, 7]))
    return View((removed, segment(60, 20, seed=1)), 2, 9, "token", False)


def content(one: Segment):
    rounded = one.rounded
    arrays = (one.keys, one.vectors, one.dead, rounded.items, rounded.offsets, rounded.mean)
    facts = [rounded.step, rounded.error, rounded.reach, rounded.size, rounded.spherical]
    return [array.tolist() for array in arrays] + facts


def test_a_view_is_read_as_it_was_saved(cache, view):
    saved = cache.save(view)
    assert all(isinstance(part.vectors, np.memmap) for part in saved.segments)
    read = cache.load(2, spherical=False)
    for other in (saved, read):
        assert [content(part) for part in other.segments] == [content(part) for part in view.segments]
        assert (other.generation, other.change, other.token, other.spherical) == (2, 9, "token", False)
    assert cache.load(3, spherical=False) is None


def test_what_is_on_disk_is_not_written_again_and_what_is_not_needed_is_removed(cache, view):
    first, second = cache.save(view).segments
    before = {path.name: path.stat().st_mtime_ns for path in cache.folder.iterdir() if path.is_dir()}
    assert set(before) == {first.name, second.name}
    cache.save(View((second, segment(100, 5)), 2, 10, "later", False))
    after = {path.name: path.stat().st_mtime_ns for path in cache.folder.iterdir() if path.is_dir()}
    assert len(after) == 2
    assert after[second.name] == before[second.name]
    assert first.name not in after


@pytest.mark.parametrize("kind", ["keys", "vectors", "items", "offsets", "mean"])
def test_a_flipped_bit_is_noticed(cache, view, kind):
    name = cache.save(view).segments[0].name
    file = cache.folder / name / f"{kind}.npy"
    changed = bytearray(file.read_bytes())
    changed[-1] ^= 1
    file.write_bytes(changed)
    assert cache.load(2, spherical=False) is None


def test_another_format_is_not_read(cache, view):
    cache.save(view)
    listed = json.loads((cache.folder / "segments.json").read_text())
    (cache.folder / "segments.json").write_text(json.dumps(listed | {"format": 0}))
    assert cache.load(2, spherical=False) is None


@pytest.mark.parametrize("name", ["segments.json", "segment.json"])
def test_lists_that_have_no_end_are_not_read(cache, view, name):
    cache.save(view)
    for file in cache.folder.rglob(name):
        file.write_text("[" * 100_000)
        assert cache.load(2, spherical=False) is None
        file.unlink()
        file.symlink_to("/dev/zero")
        assert cache.load(2, spherical=False) is None


def test_a_view_stays_in_memory_where_it_cannot_be_written(cache, view, tmp_path):
    with files.lock(_made(cache.folder) / "lock", seconds=0) as mine:
        assert mine
        assert cache.save(view) is view
    (tmp_path / "file").write_text("no folder")
    assert Cache(tmp_path / "file").save(view) is view


def _made(folder):
    folder.mkdir()
    return folder


def test_checksums_are_those_of_zlib_however_long(monkeypatch):
    array = np.arange(1000, dtype=np.int64)
    monkeypatch.setattr(module, "CHUNK", 96)
    assert checksum(array) == zlib.crc32(array.tobytes())
    assert checksum(array[::2]) == zlib.crc32(array[::2].tobytes())
    assert checksum(NOTHING) == 0
