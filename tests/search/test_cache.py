"""Segments on disk: read as they were written, never where they are damaged, and no more of them than are needed."""

import json
import os
import random
import shutil
import zlib
from dataclasses import replace

import numpy as np
import pytest

from lookalike import files
from lookalike.errors import UserError
from lookalike.search.items import Identity
from lookalike.search.stores.sqlite import cache as module
from lookalike.search.stores.sqlite.cache import Cache, checksum
from lookalike.search.stores.sqlite.segments import Segment, SegmentView, build
from lookalike.search.stores.sqlite.store import SqliteStore
from tests.search.brute import Brute, on, same, some_items

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
    return SegmentView((removed, segment(60, 20, seed=1)), 2, 9, "token", False)


def content(one: Segment):
    rounded = one.rounded
    arrays = (one.keys, one.vectors, one.dead, rounded.items, rounded.offsets, rounded.mean)
    facts = [rounded.unit, rounded.step, rounded.error, rounded.reach, rounded.size, rounded.spherical]
    return [array.tolist() for array in arrays] + facts


def test_a_view_is_read_as_it_was_saved(cache, view):
    saved = cache.save(view)
    assert all(isinstance(part.vectors, np.memmap) for part in saved.segments)
    read = cache.load(2, DIM, spherical=False)
    for other in (saved, read):
        assert [content(part) for part in other.segments] == [content(part) for part in view.segments]
        assert (other.generation, other.change, other.token, other.spherical) == (2, 9, "token", False)
    assert cache.load(3, DIM, spherical=False) is None


def test_what_is_on_disk_is_not_written_again_and_what_is_not_needed_is_removed(cache, view):
    first, second = cache.save(view).segments
    before = {path.name: path.stat().st_mtime_ns for path in cache.folder.iterdir() if path.is_dir()}
    assert set(before) == {first.name, second.name}
    cache.save(SegmentView((second, segment(100, 5)), 2, 10, "later", False))
    after = {path.name: path.stat().st_mtime_ns for path in cache.folder.iterdir() if path.is_dir()}
    assert len(after) == 2
    assert after[second.name] == before[second.name]
    assert first.name not in after


def flipped(file, place, bit):
    changed = bytearray(file.read_bytes())
    changed[place] ^= 1 << bit
    file.write_bytes(changed)


def test_a_flipped_bit_anywhere_changes_no_answer(tmp_path):
    """Headers, numbers and lists: whatever is damaged is built again, without a word."""
    draw, chance, place = np.random.default_rng(0), random.Random(0), tmp_path / "index"
    store, brute = SqliteStore.create(place, Identity("f", "ball", DIM)), Brute("ball")
    for start, count in ((0, 40), (40, 10)):
        items, vectors = some_items(count, start), on("ball", draw.standard_normal((count, DIM)))
        store.put(items, vectors)
        brute.put(items, vectors)
        store.search(vectors[:1], 1)  # a segment of its own
    store.remove(["item-000003"])
    brute.remove(["item-000003"])
    query = on("ball", draw.standard_normal((1, DIM)))
    expected = brute.search(query[0], 5)
    assert same(store.search(query, 5)[0], expected)
    store.close()
    shutil.copytree(place / "cache", tmp_path / "whole")
    names = [file.relative_to(tmp_path / "whole") for file in (tmp_path / "whole").rglob("*.*") if file.is_file()]
    assert len(names) == 13
    for number in range(260):
        file = place / "cache" / names[number % len(names)]
        size = file.stat().st_size
        where = chance.randrange(min(size, 128) if number % 2 else size), chance.randrange(8)
        flipped(file, *where)
        assert Cache(place / "cache").load(1, DIM, spherical=False) is None, (names[number % len(names)], where)
        flipped(file, *where)
        if number < len(names):
            flipped(file, *where)
            again = SqliteStore(place)
            assert same(again.search(query, 5)[0], expected)
            again.close()
            assert Cache(place / "cache").load(1, DIM, spherical=False) is not None  # built again
            shutil.rmtree(place / "cache")
            shutil.copytree(tmp_path / "whole", place / "cache")


def _with(one, **rounding):
    return replace(one, rounded=replace(one.rounded, **rounding))


ODD = {
    "keys that fall": lambda one: replace(one, keys=one.keys[::-1].copy()),
    "keys that nobody has": lambda one: replace(one, keys=one.keys - 70),
    "keys of the segment before": lambda one: replace(one, keys=one.keys - 15),
    "removed items beyond the last": lambda one: replace(one, dead=np.array([20])),
    "removed items before the first": lambda one: replace(one, dead=np.array([-1])),
    "items removed twice": lambda one: replace(one, dead=np.array([4, 4])),
    "fewer vectors than keys": lambda one: replace(one, vectors=one.vectors[:19]),
    "integers of another width": lambda one: _with(one, items=one.rounded.items[:, :5].copy()),
    "offsets without end": lambda one: _with(one, offsets=one.rounded.offsets / np.float32(0.0)),
    "a mean without end": lambda one: _with(one, mean=one.rounded.mean * np.inf),
    "a bound that is none": lambda one: _with(one, error=float("nan")),
    "a bound below nothing": lambda one: _with(one, reach=-1.0),
    "no unit": lambda one: _with(one, unit=0.0),
    "another geometry": lambda one: _with(one, spherical=True),
}


@pytest.mark.plain  # shapes that no annotation allows
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_no_index_writes_is_not_read_whatever_its_checksums(cache, view, kind):
    first, second = view.segments
    cache.save(replace(view, segments=(first, second)))
    assert cache.load(2, DIM, spherical=False) is not None
    cache.save(replace(view, segments=(first, ODD[kind](second))))
    assert cache.load(2, DIM, spherical=False) is None


def test_a_cache_of_another_width_is_not_read(cache, view):
    cache.save(view)
    assert cache.load(2, DIM + 1, spherical=False) is None


def test_a_segment_is_read_from_its_own_folder_alone(cache, view):
    saved = cache.save(view).segments[0]
    outside = cache.folder.parent / saved.name
    shutil.move(cache.folder / saved.name, outside)
    for name in (f"../{saved.name}", str(outside)):
        cache.save(replace(view, segments=(replace(saved, name=name),)))
        assert cache.load(2, DIM, spherical=False) is None


def test_a_cache_of_another_index_is_one_line(tmp_path):
    """Checksums and the change are right, the items are not there: nothing that damage does, but a stranger may."""
    query = np.eye(1, DIM, dtype=np.float32)
    store = SqliteStore.create(tmp_path / "index", Identity(None, "ball", DIM))
    store.put(some_items(5), np.eye(5, DIM, dtype=np.float32))
    store.search(query, 1)
    known = store.cache.load(1, DIM, spherical=False)
    forged = replace(known.segments[0], keys=known.segments[0].keys + 1000, name=None)
    store.cache.save(replace(known, segments=(forged,)))
    store.close()
    again = SqliteStore(tmp_path / "index")
    for ask in (lambda: again.search(query, 1), lambda: again.nearest(query, 1, "label")):
        with pytest.raises(UserError, match="delete its folder 'cache'"):
            ask()
    again.close()


def test_only_folders_of_segments_are_removed(cache, view):
    """A pipe would never be opened; anything else in the folder is not the cache's."""
    cache.save(view)
    os.mkfifo(cache.folder / "1-1-30-00000f")
    (cache.folder / "1-1-30-0000ff").mkdir()
    (cache.folder / "notes").mkdir()
    cache.save(view)
    assert {path.name for path in cache.folder.iterdir()} >= {"1-1-30-00000f", "notes"}
    assert not (cache.folder / "1-1-30-0000ff").exists()


def test_nothing_is_written_where_a_link_leads(cache, view, tmp_path):
    (tmp_path / "own").mkdir()
    cache.folder.symlink_to(tmp_path / "own")
    assert cache.save(view) is view
    assert list((tmp_path / "own").iterdir()) == []


def test_another_format_is_not_read(cache, view):
    cache.save(view)
    file = cache.folder / module.LIST
    content = json.loads(file.read_text().partition("\n")[2])
    for format_, read in ((module.FORMAT, True), (module.FORMAT - 1, False)):
        text = json.dumps(content | {"format": format_})
        file.write_text(f"{zlib.crc32(text.encode()):08x}\n{text}")
        assert (cache.load(2, DIM, spherical=False) is not None) == read


@pytest.mark.parametrize("name", ["segments.json", "segment.json"])
def test_lists_that_have_no_end_are_not_read(cache, view, name):
    cache.save(view)
    for file in cache.folder.rglob(name):
        file.write_text("[" * 100_000)
        assert cache.load(2, DIM, spherical=False) is None
        file.unlink()
        file.symlink_to("/dev/zero")
        assert cache.load(2, DIM, spherical=False) is None


def test_a_view_stays_in_memory_where_it_cannot_be_written(cache, view, tmp_path):
    with files.lock(_made(cache.folder) / "lock", seconds=0) as mine:
        assert mine
        assert cache.save(view) is view
    (tmp_path / "file").write_text("no folder")
    assert Cache(tmp_path / "file").save(view) is view


def _made(folder):
    folder.mkdir()
    return folder


def test_checksums_are_those_of_zlib_however_long(tmp_path):
    for content in (bytes(range(251)) * (module.CHUNK // 250), b"", b"short"):
        (tmp_path / "file").write_bytes(content)
        assert checksum(tmp_path / "file") == zlib.crc32(content)
