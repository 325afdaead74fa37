"""Cells that no index writes: a read that stumbles over one says so in one line, and the check names it."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.items import Item, Mark
from lookalike.search.status import describe
from lookalike.search.stores import StorageError
from lookalike.search.stores.sqlite.store import SqliteStore


@pytest.fixture
def index(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        items = [Item(name, label="x", columns={"price": 1}) for name in "abc"]
        index.store.put(items, np.eye(3, dtype=np.float32), {"a": b"\xff\xd8\xffpicture"})
        index.store.marks.add(Mark("q", None, "a", True), b"\xff\xd8\xffquery")
        assert index.store.check() == []
        yield index


BEYOND = r"a vector holds NaN or infinity|a vector is longer than"


def tamper(index, statement, *values):
    with closing(sqlite3.connect(index.store.database.file)) as connection, connection:
        connection.execute(statement, values)


def read(index):
    index.search(np.ones(3, np.float32), 3)
    describe(index)
    index.store.summary(["label", "price"], 5, 5)
    list(index.store.scan())
    index.store.documents.pictures(["a"])
    index.store.marks.every()
    index.store.marks.picture("q")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("items", "id", b"\xff"),
        ("items", "label", b"\xff"),
        ("items", "added", 1e300),
        ("items", "c1", "dear"),
        ("vectors_1", "vector", 7),
        ("vectors_1", "vector", b"\0" * 4),
        ("columns", "kind", "colour"),
        ("pictures", "content", 7),
        ("marks", "item", b"\xff"),
        ("marks", "author", b"\xff"),
        ("asked", "content", "text"),
        ("facts", "value", b"1"),
    ],
)
def test_an_odd_cell_is_named(index, table, column, value):
    tamper(
        index,
        f"UPDATE {table} SET {column} = ? WHERE rowid IN (SELECT min(rowid) FROM {table})"
        if table not in ("facts", "asked")
        else f"UPDATE {table} SET {column} = ?",
        value,
    )
    named = f"cells '{column}' of the table '{table}' hold what no index writes there"
    with (
        pytest.raises(StorageError, match=rf"damaged: restore it.* \(1 of the {named}\)"),
        closing(Index.open(index.place)) as again,
    ):
        read(again)
    assert index.store.check() == [f"1 of the {named}"]


@pytest.mark.parametrize("number", [np.nan, np.inf, 3e38])
def test_a_vector_that_cannot_be_compared_is_no_answer(index, number):
    """Also where the cache was built before."""
    index.ready()
    tamper(index, "UPDATE vectors_1 SET vector = ?", np.full(3, number, np.float32).tobytes())
    with closing(Index.open(index.place)) as again:
        for work in (lambda: again.store.vectors(["a"]), lambda: again.search("a"), lambda: list(again.store.scan())):
            with pytest.raises(UserError, match=BEYOND):
                work()
        assert again.store.check() == [
            "3 of the cells 'vector' of the table 'vectors_1' hold what no index writes there"
        ]
        store, new = again.store, again.store.generations.begin(again.identity)
        store.generations.fill(new, [Item("a")], np.eye(1, 3, dtype=np.float32))
        tamper(index, "UPDATE vectors_2 SET vector = ?", np.full(3, number, np.float32).tobytes())
        with pytest.raises(UserError, match=BEYOND):
            store.generations.filled(new)


def test_whatever_a_damaged_file_is_quoted_with_is_one_line(index):
    with closing(sqlite3.connect(index.store.database.file)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = 'evil' || char(10) || 'line' WHERE name = 'items_label'")
    with pytest.raises(StorageError, match=r"damaged: restore it") as told, closing(Index.open(index.place)) as again:
        again.ready()
    assert "\n" not in str(told.value)


def test_a_text_that_is_not_utf_8_is_named(index):
    tamper(index, "UPDATE items SET label = CAST(? AS TEXT) WHERE id = 'b'", b"\xee\x00x")
    with pytest.raises(StorageError, match="cells 'label' of the table 'items'"):
        read(index)


@pytest.mark.parametrize(("column", "value"), [("dim", -4), ("dim", "wide"), ("number", -1), ("geometry", "cube")])
def test_vectors_of_which_nobody_can_tell_what_they_are(index, column, value):
    tamper(index, f"UPDATE generations SET {column} = ?", value)
    with pytest.raises(UserError, match=r"damaged: restore it from a backup .* \(malformed index: nobody can tell"):
        read(index)


def test_an_item_without_its_vector(index):
    tamper(index, "DELETE FROM vectors_1 WHERE key = 2")
    with pytest.raises(StorageError, match="1 item has no vector"):
        index.store.vectors(["b"])
    assert index.store.check() == ["1 item has no vector"]


def test_a_mistake_of_the_program_stays_one(index):
    """The file is sound, so that is not what is said."""
    with pytest.raises(TypeError, match="ids"):
        index.store.database.read(lambda _: (_ for _ in ()).throw(TypeError("ids")))


@pytest.mark.parametrize("text", ["[1]", "{", '{"flip": 1}', '{"flop": true}', "[" * 5000])
def test_a_measurement_that_is_none(index, text):
    index.store.documents.write("quality", text)
    with pytest.raises(UserError, match=r"the quality of this index is damaged.*lookalike calibrate"):
        _ = index.quality


def test_a_page_that_is_damaged_is_one_line(index):
    """SQLite itself writes two."""
    index.store.compact()
    index.close()
    file = index.store.database.file
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'items_label'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as content:
        content.seek((page - 1) * size + 7)  # bytes that are said to be free between the cells
        content.write(b"\5")
    with closing(SqliteStore(file.parent)) as store:
        (problem,) = store.check()
    assert "on page" in problem
    assert problem.isprintable()
