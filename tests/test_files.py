"""Whole or not at all, and one owner at a time: what everything on disk relies on."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from lookalike import files
from lookalike.errors import UserError
from tests.cli.processes import Python


def test_a_failed_write_leaves_the_old_content_and_no_leftovers(tmp_path):
    note = tmp_path / "note.txt"
    files.write_text(note, "old")
    with pytest.raises(RuntimeError), files.whole_file(note, "w") as file:  # noqa: PT012
        file.write("half")
        raise RuntimeError
    assert note.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path, monkeypatch):
    note = tmp_path / "note.txt"
    files.write_text(note, "old")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*note.txt \(No space left on device\): free some space"):
        files.write_text(note, "new")
    assert note.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_replaces_the_one_before(tmp_path):
    place = tmp_path / "model"
    for text in ("first", "second"):
        with files.whole_folder(place) as folder:
            (folder / "weights").write_text(text)
    assert (place / "weights").read_text() == "second"
    with pytest.raises(RuntimeError), files.whole_folder(place) as folder:  # noqa: PT012
        (folder / "weights").write_text("third")
        raise RuntimeError
    assert (place / "weights").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_everything_is_flushed_before_it_is_renamed(tmp_path, monkeypatch):
    """The order of system calls: content, rename, folder."""
    calls = []
    fsync, replace = os.fsync, os.replace

    def watched(handle):
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    def renamed(*places):
        calls.append("rename")
        replace(*places)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(os, "replace", renamed)
    files.write_text(tmp_path / "note.txt", "kept")
    assert calls == ["file", "rename", "folder"]


HOLD = """
import sys, time
from pathlib import Path
from lookalike.files import lock
with lock(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(1000)
"""


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path):
    place = tmp_path / "run.lock"
    other = Python(HOLD, place)
    try:
        assert other.output.readline() == "True\n"
        with files.lock(place, seconds=0) as mine:
            assert not mine
    finally:
        other.killed()
    with files.lock(place, seconds=0) as mine:
        assert mine


@pytest.mark.filterwarnings("ignore:flock not supported")
def test_without_locks_in_the_filesystem_a_second_process_is_refused(tmp_path, monkeypatch):
    import fcntl

    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", missing)
    place = tmp_path / "run.lock"
    with files.lock(place, seconds=0) as first, files.lock(place, seconds=0) as second:
        assert (first, second) == (True, False)


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    (tmp_path / ".result.json.12-ab.partial").write_text("half")
    (tmp_path / ".model.12-ab.partial").mkdir()
    (tmp_path / "log.jsonl").write_text("{}")
    files.remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of posix")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_all_files_of_a_folder_have_the_same_readers(tmp_path, mask):
    before = os.umask(mask)
    try:
        with files.whole_folder(tmp_path / "model") as folder:
            (folder / "plain").write_text("")
            (folder / "inner").mkdir()
            os.close(os.open(folder / "inner" / "secretive", os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    modes = {file.stat().st_mode & 0o777 for file in (tmp_path / "model").rglob("*") if file.is_file()}
    assert modes == {0o666 & ~mask}


READERS = (files.read_text, files.read_json, files.read_array, files.read_arrays)


@pytest.mark.parametrize("read", READERS)
def test_only_ordinary_files_of_some_size_are_read(tmp_path, read):
    """Neither waits for ever nor fills the memory: an OSError or a ValueError at once."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 41)
    for place in (tmp_path / "pipe", tmp_path / "loop", tmp_path / "sparse", tmp_path, Path("/dev/zero")):
        with pytest.raises((OSError, ValueError)):
            read(place)


def test_damaged_content_is_a_value_error(tmp_path):
    file = tmp_path / "file"
    for content in (b"[" * 100_000, b"{", b"\xff\xfe", b""):
        file.write_bytes(content)
        for read in (files.read_json, files.read_array, files.read_arrays):
            with pytest.raises(ValueError, match=r"."):
                read(file)
    np.save(tmp_path / "small.npy", np.zeros(3))
    promising = (tmp_path / "small.npy").read_bytes().replace(b"(3,)", b"(9999999999999,)")
    file.write_bytes(promising)
    with pytest.raises(ValueError, match=r"."):
        files.read_array(file)
    assert files.read_array(tmp_path / "small.npy").tolist() == [0, 0, 0]
    file.write_text('{"a": [1]}')
    assert files.read_json(file) == {"a": [1]}


def test_a_small_file_fills_no_memory(tmp_path, monkeypatch):
    """Zeros take a thousandth of their room in a file."""
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(4 << 20, np.uint8))
    assert len(files.read_arrays(tmp_path / "a.npz")["a"]) == 4 << 20
    monkeypatch.setattr(files, "ROOM", 1 << 20)
    with pytest.raises(ValueError, match="unpacks to 4,194,432 bytes"):
        files.read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["pipe", "link", "broken link"])
def test_a_folder_takes_the_place_of_anything(tmp_path, kind):
    """A pipe came with a stranger's folder: removing it as a folder would wait for whoever writes to it."""
    place, own = tmp_path / "model", tmp_path / "own"
    own.mkdir()
    (own / "note.txt").write_text("mine")
    os.mkfifo(place) if kind == "pipe" else place.symlink_to(own if kind == "link" else tmp_path / "nowhere")
    with files.whole_folder(place) as folder:
        (folder / "new").write_text("new")
    assert [file.name for file in place.iterdir()] == ["new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "own"]
    assert (own / "note.txt").read_text() == "mine"


def test_the_first_writer_wins_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    assert files.write_once(tmp_path / "note", "first")
    assert not files.write_once(tmp_path / "note", "second")
    assert (tmp_path / "note").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["note"]
