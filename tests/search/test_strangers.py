"""An index that a stranger made: opening it writes nothing but what is its own, and where that belongs."""

import json
import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.files import lock
from lookalike.search import Index
from lookalike.search.feedback import labels
from lookalike.search.items import Identity, Item, Mark, Stamp
from lookalike.search.model_copy import model_content
from lookalike.search.pages import search_page
from lookalike.search.pictures import thumbnail
from lookalike.search.stores import places
from lookalike.search.stores.sqlite.store import FILE, SqliteStore
from tests.attacks.indexes import PROGRAMS, journal_that_names
from tests.search.conftest import photo


@pytest.fixture
def cache(tmp_path):
    """Of one test: what is beside it is looked at."""
    return tmp_path / "cache"


def everything(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def beside(place):
    """The folder that the model of an index is unpacked into, with something of the reader's own two floors up."""
    folder = places.model_folder(place)
    folder.mkdir(parents=True, exist_ok=True)
    own = folder.parent.parent / "own"
    own.mkdir()
    (own / "note.txt").write_text("mine")
    return own


@pytest.mark.parametrize("name", ["../../own/evil.pth", "ABSOLUTE/evil.pth", "sub/model.json", "..", "", "evil.pth"])
def test_a_model_has_no_files_but_its_own(new_place, model, tmp_path, name):
    place = new_place()
    with closing(Index.create(place, model)) as index:
        index.store.documents.keep_model(model.fingerprint, {name.replace("ABSOLUTE", str(tmp_path)): b"import os"})
    own = beside(place)
    with closing(Index.open(place)) as index, pytest.raises(UserError, match=r"not a file of a model: .* tampered"):
        _ = index.model
    assert everything(own) == {own / "note.txt": b"mine"}
    assert not list(tmp_path.rglob("evil*"))
    assert list(places.model_folder(place).iterdir()) == []


@pytest.mark.parametrize("fingerprint", ["../../own", "ABSOLUTE", "own", "0" * 31, "G" * 32, "0" * 32 + "\n"])
def test_a_fingerprint_is_no_path(new_place, model, tmp_path, fingerprint):
    place, fingerprint = new_place(), fingerprint.replace("ABSOLUTE", str(tmp_path / "own"))
    with closing(places.created(place, Identity(fingerprint, model.geometry, 16))) as store:
        store.documents.keep_model(fingerprint, model_content(model))
    own = beside(place)
    with closing(Index.open(place)) as index, pytest.raises(UserError, match=r"not a fingerprint: .* tampered"):
        _ = index.model
    assert everything(own) == {own / "note.txt": b"mine"}


def test_a_model_that_is_not_the_one_named_does_not_take_its_place(new_place, model):
    place, other = new_place(), "0" * 32
    with closing(places.created(place, Identity(other, model.geometry, 16))) as store:
        store.documents.keep_model(other, model_content(model))
    with closing(Index.open(place)) as index, pytest.raises(UserError, match="another model than the index was made"):
        _ = index.model
    assert not (places.model_folder(place) / other).exists()


def test_a_cache_that_leads_elsewhere_costs_nothing_there(tmp_path):
    """`cache -> /home/reader` came with the folder: what is no segment is not removed."""
    own = tmp_path / "own"
    (own / "letters").mkdir(parents=True)
    (own / "letters" / "note.txt").write_text("mine")
    with closing(SqliteStore.create(tmp_path / "index", Identity(None, "sphere", 3))) as store:
        (store.folder / "cache").symlink_to(own)
        store.put([Item("a")], np.eye(1, 3, dtype=np.float32))
        assert store.search(np.eye(1, 3, dtype=np.float32), 1)[0].hits[0].id == "a"
    assert (own / "letters" / "note.txt").read_text() == "mine"


def listed(cache):
    """The list of segments, without the checksum above it."""
    return json.loads((cache / "segments.json").read_text().partition("\n")[2])


def test_segments_of_another_place_are_not_read(tmp_path):
    """The list of segments names folders of the cache, and nothing else; its checksum anybody can write."""
    query = np.eye(1, 3, dtype=np.float32)
    with closing(SqliteStore.create(tmp_path / "index", Identity(None, "sphere", 3))) as store:
        store.put([Item("a")], query)
        store.search(query, 1)
        cache = store.folder / "cache"
        content = listed(cache)
        name = content["segments"][0][0]
        os.rename(cache / name, tmp_path / name)
        content["segments"][0][0] = f"../../{name}"
        text = json.dumps(content)
        (cache / "segments.json").write_text(f"{zlib.crc32(text.encode()):08x}\n{text}")
        again = SqliteStore(store.folder)
        assert again.search(query, 1)[0].hits[0].id == "a"
        again.close()
        (new,) = [name for name, _ in listed(cache)["segments"]]
        assert (cache / new).is_dir()
        assert Path(new).name == new


def test_marks_name_no_files(new_place, tmp_path):
    """The pictures of marked queries go into one folder, whatever a query is called."""
    pictures = tmp_path / "out.pictures"
    (pictures / "query_a").mkdir(parents=True)
    with closing(Index.create(new_place(), dim=3)) as index:
        index.store.put([Item("a")], np.eye(1, 3, dtype=np.float32), {"a": b"\xff\xd8\xffpicture"})
        index.store.marks.add(Mark("a/../../evil", None, "a", True), b"\xff\xd8\xffquery")
        result = labels(index.store, pictures)
    assert [pair.query.parent for pair in result.pairs] == [pictures]
    assert not list(tmp_path.glob("evil*"))


def test_a_lock_that_is_a_link_empties_no_file(tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("mine")
    query = np.eye(1, 3, dtype=np.float32)
    with closing(SqliteStore.create(tmp_path / "index", Identity(None, "sphere", 3))) as store:
        (store.folder / "cache").mkdir()
        (store.folder / "cache" / "lock").symlink_to(own)
        store.put([Item("a")], query)
        assert store.search(query, 1)[0].hits[0].id == "a"
    assert own.read_text() == "mine"
    with pytest.raises(UserError, match="it is a link"), lock(store.folder / "cache" / "lock"):
        pass


def test_pictures_are_shown_only_where_the_index_was_made_from_them(new_place, model, photos, tmp_path):
    """A path may name any file of the reader's: its content must be what was embedded, which a stranger has seen."""
    private = tmp_path / "private.png"
    photo("figs", 7).save(private)
    with closing(Index.create(new_place(), model)) as index:
        index.add(photos)
        known = next(iter(index.store.listed()))
        assert thumbnail(index.store, known) is not None
        for number, stamp in enumerate((None, known.stamp, Stamp(private.stat().st_size, 0, ""))):
            index.store.put([Item(str(number), path=str(private), stamp=stamp)], index.store.vectors([known.id]))
            (item,) = index.store.items([str(number)])
            assert thumbnail(index.store, item) is None
            answer = index.search(known.id, k=50)
            assert str(number) in {hit.id for hit in answer.hits}
        pictures = search_page(index, [("query", [None], answer)]).count("data:image/jpeg")
        assert pictures == len(answer.hits) - 3


def test_links_out_of_a_folder_are_not_indexed(tmp_path, model, photos):
    folder = tmp_path / "received"
    (folder / "figs").mkdir(parents=True)
    shutil.copy(photos / "figs" / "0.png", folder / "figs" / "0.png")
    (folder / "figs" / "link.png").symlink_to(photos / "figs" / "1.png")
    (folder / "more").symlink_to(photos)
    with closing(Index.create(tmp_path / "index", model)) as index:
        update = index.add(folder)
        assert (update.added, [name for name, _ in update.unreadable]) == (1, ["figs/link.png", "more"])
        assert all("linked_folder=" in reason for _, reason in update.unreadable)
        assert index.add(f"linked_folder={folder}").added == 37


@pytest.fixture
def received(tmp_path):
    """The folder of an index with one item."""
    with closing(Index.create(tmp_path / "received", dim=3)) as index:
        index.store.put([Item("a")], np.eye(1, 3, dtype=np.float32))
        index.note("made")
    return tmp_path / "received"


@pytest.mark.parametrize("restored", [False, True])
def test_a_journal_deletes_no_file_of_the_readers(received, tmp_path, restored):
    own, journal = tmp_path / "own.txt", received / f"{FILE}-journal"
    own.write_text("mine")
    with closing(SqliteStore(received)) as store:
        store.backup(tmp_path / "copy.sqlite")
    journal.write_bytes(journal_that_names(own))
    with pytest.raises(UserError, match=r"damaged: restore it .* 'index.sqlite-journal' beside it is not the journal"):
        Index.open(received)
    if restored:
        Index.restore(received, tmp_path / "copy.sqlite").close()
    assert own.read_text() == "mine"
    assert journal.exists() is not restored


def test_a_journal_that_is_a_pipe_keeps_nobody_waiting(received):
    os.mkfifo(received / f"{FILE}-journal")
    with pytest.raises(UserError, match="not the journal of an index"):
        Index.open(received)


@pytest.mark.parametrize("statement", PROGRAMS)
def test_no_program_of_a_stranger_runs(received, tmp_path, statement):
    with closing(sqlite3.connect(received / FILE)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(UserError, match=r"damaged: restore it .* is nothing that an index makes"):
        Index.open(received)
    with pytest.raises(UserError, match=r"is nothing that an index makes.*nothing was restored"):
        Index.restore(tmp_path / "new", received / FILE)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE generations SET dim = 2000000000", "nobody can tell what its vectors are"),
        ("UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'items'", "was the last key"),
        ("UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'items'", "was the last key"),
    ],
)
def test_numbers_without_measure(received, statement, message):
    with closing(sqlite3.connect(received / FILE)) as connection, connection:
        connection.execute(statement)
    with closing(SqliteStore(received)) as store, pytest.raises(UserError, match=message):
        store.put([Item("b")], np.eye(1, 3, dtype=np.float32))
