"""A folder that is moved or deleted while it is open: nothing is acknowledged that nobody will find."""

import shutil
from contextlib import closing

import numpy as np
import pytest

from lookalike.search.items import Identity
from lookalike.search.stores import StorageError
from lookalike.search.stores.sqlite.store import FILE, SqliteStore
from tests.search.brute import some_items

DIM = 8
ONE = np.ones((1, DIM), np.float32)


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.create(tmp_path / "index", Identity(None, "none", DIM))
    made.put(some_items(1), ONE)
    yield made
    made.close()


@pytest.mark.parametrize("how", ["moved", "deleted", "its file deleted"])
def test_writes_and_reads_of_a_folder_that_is_gone_are_refused(store, tmp_path, how):
    if how == "moved":
        store.folder.rename(tmp_path / "elsewhere")
    elif how == "deleted":
        shutil.rmtree(store.folder)
    else:
        (store.folder / FILE).unlink()
    for ask in (
        lambda: store.put(some_items(1, start=5), ONE),
        lambda: store.remove(["item-000000"]),
        lambda: store.documents.write("note", "kept"),
        lambda: store.search(ONE, 1),
        store.count,
        store.compact,
        lambda: store.backup(tmp_path / "copy.sqlite"),
    ):
        with pytest.raises(StorageError, match="was moved or deleted"):
            ask()
    assert not (store.folder / FILE).exists()
    assert not (tmp_path / "copy.sqlite").exists()
    if how == "moved":
        with closing(SqliteStore(tmp_path / "elsewhere")) as moved:
            assert (moved.count(), moved.check()) == (1, [])
        (tmp_path / "elsewhere").rename(store.folder)
        store.put(some_items(1, start=5), ONE)  # it is back
        assert store.count() == 2


def test_a_folder_moved_within_a_change_is_not_acknowledged(store, tmp_path):
    with pytest.raises(StorageError, match="was moved or deleted"), store.database.writing():
        store.folder.rename(tmp_path / "elsewhere")


def test_a_new_index_in_its_place_is_the_one_that_is_read_and_written(store, tmp_path):
    store.search(ONE, 1)
    store.folder.rename(tmp_path / "elsewhere")
    with closing(SqliteStore.create(store.folder, Identity(None, "none", DIM))) as new:
        new.put(some_items(3, start=10), np.repeat(ONE, 3, 0))
        assert {hit.id for hit in store.search(ONE, 9)[0].hits} == {item.id for item in some_items(3, start=10)}
        store.put(some_items(1, start=20), ONE)
        assert new.count() == 4
    store.close()  # must leave the log of the new one alone
    with closing(SqliteStore(store.folder)) as again:
        assert (again.count(), again.check()) == (4, [])


def test_an_old_connection_that_closes_leaves_the_new_log_alone(store, tmp_path):
    """SQLite removes a log by its name: that of a file which has moved is somebody else's by then."""
    store.folder.rename(tmp_path / "elsewhere")
    with closing(SqliteStore.create(store.folder, Identity(None, "none", DIM))) as new:
        new.put(some_items(3), np.repeat(ONE, 3, 0))
        store.close()
        assert (new.folder / f"{FILE}-wal").stat().st_size > 0
        with closing(SqliteStore(new.folder)) as again:
            assert (again.count(), again.check()) == (3, [])
