"""`remove --forget`: not a byte of the item is in any file of the index afterwards; the receipt says what is beyond."""

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.items import Item, Mark
from lookalike.search.stores import copying
from lookalike.search.stores.sqlite.store import SqliteStore
from lookalike.search.upgrading import hits

DRAW = np.random.default_rng(5)
VECTORS = DRAW.standard_normal((300, 16)).astype(np.float32)
PICTURES = [b"\xff\xd8\xff" + DRAW.bytes(6000) for _ in range(3)]  # of the item, of its queries
NAME, LABEL, VALUE = "id of somebody", "name of somebody", "address of somebody"
SECRETS = {
    "id": NAME.encode(),
    "label": LABEL.encode(),
    "column": VALUE.encode(),
    "picture": PICTURES[0][1000:1040],
    "query picture": PICTURES[1][1000:1040],
    "other query": PICTURES[2][1000:1040],
}


def fill(index):
    items = [Item(f"item {row}", label="common", columns={"street": "common"}) for row in range(299)]
    secret = Item(NAME, label=LABEL, columns={"street": VALUE})
    index.store.put([*items[:150], secret, *items[150:]], VECTORS, {NAME: PICTURES[0], "item 0": b"\xff\xd8\xffkept"})
    index.search(VECTORS[0], 3)
    for mark, picture in (
        (Mark("digest", None, NAME, True), PICTURES[1]),
        (Mark(f"item:{NAME}", NAME, "item 3", True), None),
        (Mark("another", NAME, "item 3", False), PICTURES[2]),
        (Mark("mine", None, "item 3", False), b"\xff\xd8\xffkept"),
    ):
        index.store.marks.add(mark, picture)


def found(folder, secrets):
    """Where which secret stands, byte by byte."""
    files = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    return {name: [path.name for path in files if secret in files[path]] for name, secret in secrets.items()}


def test_no_file_of_a_folder_holds_a_byte_of_it(tmp_path):
    folder, vector = tmp_path / "index", {"vector": VECTORS[150].tobytes()}
    with closing(Index.create(folder, dim=16)) as index:
        fill(index)
        index.store.backup(tmp_path / "backup")
        index.store.remove(["item 7"])  # a segment with a removed item
    with closing(Index.restore(folder, tmp_path / "backup")) as index:  # index.sqlite.before holds it too
        index.store.database.connection().execute("PRAGMA secure_delete = OFF")  # some builds have it on
        index.search(VECTORS[0], 3)
        assert all(found(folder, SECRETS | vector).values())
        assert len(found(folder, vector)["vector"]) > 2  # truth, cache, what was restored
        receipt = index.forget([NAME])
        assert (receipt.items, receipt.marks, receipt.ids) == (1, 3, [NAME])
        assert {"index.sqlite", "index.sqlite-wal", "cache", "index.sqlite.before"} <= set(receipt.rewritten)
        assert not any(found(folder, SECRETS | vector).values())
        assert len(index) == 299
        assert index.store.marks.count() == 1
        assert index.search(VECTORS[150], 400).hits[0].id != NAME
    assert not any(found(folder, SECRETS | vector).values())
    assert any(found(tmp_path, {"backup": SECRETS["picture"]}).values())  # beyond reach, as the receipt says
    assert "backups" in " ".join(receipt.beyond)


def test_what_removing_alone_leaves(tmp_path):
    """Else the test above would show nothing."""
    with closing(Index.create(tmp_path / "index", dim=16)) as index:
        fill(index)
        index.remove([NAME])
        assert found(tmp_path / "index", SECRETS)["picture"]


def test_no_table_of_a_server_holds_a_byte_of_it(new_address):
    with closing(Index.create(new_address(), dim=16)) as index:
        fill(index)
        for name in (hits.HITS, copying.FACT):
            index.store.documents.write(name, json.dumps({NAME: 3}))
        index.store.documents.write(copying.FACT, None)  # what a copy leaves
        index.store.compact()  # after which the server knows samples of all columns
        ask = index.store.database.plain

        def files():
            ask(lambda connection: connection.execute("CHECKPOINT"))
            return Path(ask(lambda connection: connection.execute("SHOW data_directory").fetchone())[0]) / "base"

        vector = {"vector": VECTORS[150].tobytes()}
        assert all(found(files(), SECRETS | vector).values())
        receipt = index.forget(where={"label": LABEL})
        assert (receipt.items, receipt.marks, receipt.ids) == (1, 3, [NAME])
        assert not any(found(files(), SECRETS | vector).values())
        assert "pg_wal" in " ".join(receipt.beyond)
        assert "pg_statistic" not in " ".join(receipt.beyond)
        assert (len(index), index.store.marks.count()) == (299, 1)


def test_who_does_not_own_the_database_is_told_what_is_left(new_address):
    with closing(Index.create(new_address(), dim=16)) as index:
        ask = index.store.database.plain
        for statement in ("CREATE ROLE tenant LOGIN", "GRANT CREATE ON DATABASE postgres TO tenant"):
            ask(lambda connection, text=statement: connection.execute(text))
    with closing(Index.create(new_address().replace("postgres@", "tenant@"), dim=16)) as index:
        fill(index)
        receipt = index.forget([NAME])
        assert (receipt.items, len(index)) == (1, 299)
        assert "VACUUM FULL pg_catalog.pg_statistic" in receipt.beyond[-1]


def test_shards_forget_too(new_shards):
    with closing(Index.create(new_shards(), dim=16)) as index:
        fill(index)
        receipt = index.forget([NAME])
        assert (receipt.items, receipt.marks) == (1, 3)
        assert any(name.startswith("shard 2 of 2: ") for name in receipt.rewritten)
        assert index.store.items([NAME]) == []


def test_whoever_reads_an_old_state_is_waited_for(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=16)) as index:
        fill(index)
    with (
        closing(SqliteStore(tmp_path / "index", patience=0.2)) as store,
        closing(Index.open(tmp_path / "index")) as index,
    ):
        reader = sqlite3.connect(tmp_path / "index" / "index.sqlite", check_same_thread=False, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM items").fetchone()
        with pytest.raises(UserError, match="still holds them while another process reads the index: stop it and rep"):
            store.forget([NAME])
        threading.Timer(0.3, reader.execute, ("ROLLBACK",)).start()
        assert index.forget([NAME]).items == 0  # it was removed by the first call
        reader.close()
        assert not any(found(tmp_path / "index", SECRETS).values())


def test_a_copy_that_is_not_complete_names_items(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=16)) as index:
        index.store.documents.write(copying.FACT, json.dumps({"after": NAME}))
        with pytest.raises(UserError, match="copy that is not complete"):
            index.forget([NAME])
