"""A backup that takes the place of an index: every search ends, and whoever has the index open goes on with it."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.items import Identity, Item
from lookalike.search.stores.sqlite.store import FILE, SqliteStore
from tests.search.brute import Brute, same, some_items

DIM = 8


@contextmanager
def ending(seconds=20):
    """Fail where something computes for ever."""

    def stop(*_):
        raise AssertionError(f"no end after {seconds} seconds of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def vectors(number, seed=0):
    return np.random.default_rng(seed).standard_normal((number, DIM)).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    """50 items, a backup of them, then 20 more that a search has seen."""
    made = SqliteStore.create(tmp_path / "index", Identity(None, "none", DIM))
    made.put(some_items(50), vectors(50))
    made.backup(tmp_path / "copy.sqlite")
    for turn in range(4):
        made.put(some_items(5, start=900 + 5 * turn), vectors(5, 1 + turn))
    made.search(vectors(1), 3)
    yield made
    made.close()


def answers(store, query):
    brute = Brute("none")
    for items, rows in store.scan():
        brute.put(items, rows)
    with ending():
        return same(store.search(query, 60)[0], brute.search(query[0], 60))


def test_a_cache_ahead_of_the_truth_is_stale(store, tmp_path):
    """A backup put back by hand, as index.sqlite."""
    store.close()
    for file in store.folder.glob(f"{FILE}*"):
        file.unlink()
    (tmp_path / "copy.sqlite").rename(store.folder / FILE)
    with closing(SqliteStore(store.folder)) as again:
        assert again.count() == 50
        assert answers(again, vectors(1))


def test_a_restored_backup_answers_everywhere(store, tmp_path):
    """In a new process, in one that has the index open, and after further changes of either."""
    kept = SqliteStore.restore(store.folder, tmp_path / "copy.sqlite")
    assert (store.count(), answers(store, vectors(1))) == (50, True)
    with closing(SqliteStore(store.folder)) as again:
        assert (again.count(), answers(again, vectors(1))) == (50, True)
        store.put(some_items(7, start=500), vectors(7, 9))
        assert (again.count(), answers(again, vectors(1, 9))) == (57, True)
        again.remove([item.id for item in some_items(3)])
        assert (store.count(), answers(store, vectors(1, 9))) == (54, True)
        assert again.check() == []
    assert set_aside(kept, tmp_path) == (70, [])  # what was there is not lost, its log included


def set_aside(kept, place):
    """How many items a restoring has set aside, and what is wrong with them."""
    before = place / "before"
    before.mkdir()
    for file in kept.parent.glob(f"{kept.name}*"):
        file.rename(before / file.name.replace(kept.name, FILE))
    with closing(SqliteStore(before)) as old:
        return old.count(), old.check()


def test_several_who_restore_at_once_leave_an_index(store, tmp_path):
    """And who forgets meanwhile harms nothing, even where the file is just not there."""
    copy = tmp_path / "copy.sqlite"

    def again(number):
        if number % 4 == 3:
            with suppress(UserError), closing(SqliteStore(store.folder)) as other:
                other.forget(["nobody"])
        return SqliteStore.restore(store.folder, copy)

    with ThreadPoolExecutor(4) as threads:
        kept = set(threads.map(again, range(16)))
    assert kept == {store.folder / f"{FILE}.before"}
    assert (store.count(), store.check(), answers(store, vectors(1))) == (50, [], True)
    assert not list(store.folder.glob("*.partial"))


@pytest.mark.parametrize("stopped", [f"{FILE}.before-wal", FILE])
def test_a_restoring_that_is_stopped_loses_nothing(store, tmp_path, monkeypatch, stopped):
    """Neither then, nor when it is begun again."""
    rename = Path.rename

    def stop(path, target):
        if Path(target).name == stopped:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(KeyboardInterrupt):
        SqliteStore.restore(store.folder, tmp_path / "copy.sqlite")
    monkeypatch.undo()
    kept = SqliteStore.restore(store.folder, tmp_path / "copy.sqlite")
    assert (store.count(), answers(store, vectors(1))) == (50, True)
    store.close()
    assert set_aside(kept, tmp_path) == (70, [])


@pytest.mark.parametrize("harm", ["overwritten", "empty", "gone", "pages"])
def test_a_damaged_index_is_restored(store, tmp_path, harm):
    store.close()
    file = store.folder / FILE
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        torn = content[:200] + b"\xff" * (len(content) - 200)
        file.write_bytes({"overwritten": b"no longer a database" + content[20:], "empty": b"", "pages": torn}[harm])
        with pytest.raises(UserError, match=r"lookalike status .*index --restore FILE"):
            SqliteStore(store.folder).check()
    SqliteStore.restore(store.folder, tmp_path / "copy.sqlite")
    with closing(SqliteStore(store.folder)) as again:
        assert (again.count(), again.check(), answers(again, vectors(1))) == (50, [], True)


def test_a_backup_is_read_by_whom_the_index_is(store, tmp_path):
    """And what is restored by whoever could read and write what was there."""
    file, copy = store.folder / FILE, tmp_path / "private.sqlite"
    for mode in (0o600, 0o660):
        file.chmod(mode)
        store.backup(copy)
        assert copy.stat().st_mode & 0o777 == mode
    copy.chmod(0o644)
    SqliteStore.restore(store.folder, copy)
    assert file.stat().st_mode & 0o777 == 0o660


def test_what_is_no_backup_is_refused_and_changes_nothing(store, tmp_path):
    (tmp_path / "note.txt").write_text("not a database, and long enough to be looked at as one" * 40)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.txt").write_text("mine")
    torn = bytearray((tmp_path / "copy.sqlite").read_bytes())
    torn[-9000:] = bytes(9000)
    (tmp_path / "torn.sqlite").write_bytes(torn)
    for file, message in (("note.txt", "damaged"), ("nowhere", "there is no file"), ("torn.sqlite", "damaged")):
        with pytest.raises(UserError, match=message):
            SqliteStore.restore(store.folder, tmp_path / file)
    with pytest.raises(UserError, match="is not an index"):
        SqliteStore.restore(tmp_path / "other", tmp_path / "copy.sqlite")
    assert (store.count(), store.check()) == (70, [])
    assert {path.name for path in store.folder.iterdir()} == {FILE, f"{FILE}-wal", f"{FILE}-shm", "cache"}
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["note.txt"]


def test_another_index_in_its_place_is_not_taken_for_this_one(store, tmp_path):
    """A server embeds by the model it has loaded: vectors of another one are never compared with them."""
    other = SqliteStore.create(tmp_path / "other", Identity(None, "none", 3))
    other.backup(tmp_path / "other.sqlite")
    other.close()
    SqliteStore.restore(store.folder, tmp_path / "other.sqlite")
    with pytest.raises(UserError, match="another index has taken its place: open it again"):
        store.search(vectors(1), 3)
    with pytest.raises(UserError, match="another index has taken its place: open it again"):
        store.put([Item("a")], vectors(1))
    with closing(SqliteStore(store.folder)) as again:
        assert (again.identity.dim, again.count()) == (3, 0)


def test_an_index_of_any_kind_is_restored(new_place, tmp_path):
    place, file = new_place(), tmp_path / "copy.sqlite"
    with closing(Index.create(place, dim=DIM, geometry="none")) as index:
        index.store.put(some_items(9), vectors(9))
        index.store.backup(file)
        index.store.put(some_items(5, start=100), vectors(5, 1))
        index.store.remove([item.id for item in some_items(2)])
        index.ready()
        Index.restore(place, file).close()
        assert (len(index), answers(index.store, vectors(1))) == (9, True)
