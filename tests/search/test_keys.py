"""Keys of an index and the log of who did what: the same in a folder, on PostgreSQL and in shards."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from lookalike.search import Index, keys
from lookalike.search.adding.generation import renew
from lookalike.search.items import Item
from lookalike.search.log import LogEntry, shown, subject_of
from lookalike.search.upgrading.upgrade import upgrade
from tests.search.conftest import CLASSES, photo


@pytest.fixture(params=["folder", "postgres", "shards"])
def log(request, tmp_path):
    place = {
        "folder": lambda: tmp_path / "index",
        "postgres": lambda: request.getfixturevalue("new_address")(),
        "shards": lambda: request.getfixturevalue("new_shards")(),
    }[request.param]()
    with closing(Index.create(place, dim=3)) as index:
        yield index.store.log


def test_keys_are_given_listed_and_revoked(log):
    assert keys.every(log) == []
    secret = keys.add(log, "till", ["mark", "search"], 30, "user me")
    other = keys.add(log, "office", ["admin"], None, "user me")
    till, office = keys.every(log)
    assert (till.name, till.scopes, till.digest) == ("till", ("search", "mark"), keys.digest_of(secret))
    assert till.valid(till.added)
    assert not till.valid(till.added + 30 * keys.DAY + 1)
    assert office.expires is None
    assert other.startswith("lookalike_")
    with pytest.raises(UserError, match="there is a key 'till' already"):
        keys.add(log, "till", ["search"], None, "user me")
    keys.revoke(log, "till", "user you")
    assert [key.revoked is None for key in keys.every(log)] == [False, True]
    with pytest.raises(UserError, match="no key 'till' to revoke; there are: office"):
        keys.revoke(log, "till", "user you")
    keys.add(log, "till", ["search"], None, "user me")
    assert [key.valid(key.added) for key in keys.every(log)] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "scopes", "days", "words"),
    [
        ("", ["search"], None, "needs a printable name"),
        ("a ", ["search"], None, "needs a printable name"),
        ("a", [], None, "say what the key may do"),
        ("a", ["read"], None, "no scope 'read'"),
        ("a", ["search"], 0, "--days must be positive, not 0"),
    ],
)
def test_a_key_that_makes_no_sense(tmp_path, name, scopes, days, words):
    with closing(Index.create(tmp_path / "index", dim=3)) as index, pytest.raises(UserError, match=words):
        keys.add(index.store.log, name, scopes, days, "me")


def test_no_key_is_kept(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        secret = keys.add(index.store.log, "till", ["search"], None, "me")
        (entry,) = index.store.log.entries()
        assert shown(entry)["detail"] == '{"scopes": ["search"], "expires": null}'
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_key_that_a_stranger_wrote(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        index.store.log.append(LogEntry("me", keys.ADDED, "till", "[]"))
        with pytest.raises(UserError, match="entry 1 of this index's log is not a valid key"):
            keys.every(index.store.log)


def test_entries_in_their_order(log):
    for number in range(4):
        log.append(LogEntry("me", "odd" if number % 2 else "even", f"item {number}", "detail"))
    first, second, third, fourth = log.entries()
    assert replace(first, time=0, number=0) == LogEntry("me", "even", "item 0", "detail")
    assert first.time <= fourth.time
    assert log.entries(last=2) == [third, fourth]
    assert log.entries(actions=("odd",)) == [second, fourth]
    assert log.entries(actions=("odd",), subject="item 3") == [fourth]
    assert log.entries(subject="item 9") == []


def test_a_log_is_only_added_to(new_place):
    with closing(Index.create(new_place(), dim=3)) as index:
        index.store.log.append(LogEntry("me", "done"))
        for statement in ("UPDATE log SET who = 'you'", "DELETE FROM log"):
            with pytest.raises(Exception, match="the log of an index is only added to"):  # noqa: PT012
                if isinstance(index.place, str):
                    index.store.database.plain(lambda connection, text=statement: connection.execute(text))
                else:
                    with closing(sqlite3.connect(index.store.database.file)) as connection:
                        connection.execute(statement)
        assert [entry.who for entry in index.store.log.entries()] == ["me"]


def test_what_is_done_here_is_noted_without_names(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=3)) as index:
        index.store.put([Item("a"), Item("b")], np.eye(2, 3, dtype=np.float32))
        index.remove(["a", "never there"])
        index.remove(["a"])
        index.forget(["b"])
        known = [(entry.action, entry.subject) for entry in index.store.log.entries()]
        assert known == [("item removed", subject_of("a")), ("item forgotten", subject_of("b"))]
        assert index.store.log.entries()[0].who.startswith("user ")
        index.store.backup(tmp_path / "copy.sqlite")
        index.store.put([Item(f"{row}") for row in range(101)], np.ones((101, 3), np.float32))
        index.remove([f"{row}" for row in range(-1, 101)])
        assert replace(index.store.log.entries()[-1], who="", time=0, number=0) == LogEntry(
            "", "items removed", detail='{"items": 101}'
        )
    assert subject_of("a") != subject_of("b")
    with closing(Index.restore(tmp_path / "index", tmp_path / "copy.sqlite")) as index:
        assert [(entry.action, entry.detail) for entry in index.store.log.entries()][2:] == [
            ("index restored", '{"items": 0}')
        ]


@pytest.mark.parametrize("how", [renew, upgrade])
def test_another_model_is_noted_where_it_begins_to_answer(new_place, tmp_path, model, how):
    folder = tmp_path / "photos"
    for label in CLASSES:
        (folder / label).mkdir(parents=True)
        for number in range(9):
            photo(label, number).save(folder / label / f"{number}.png")
    other = Model.create(Architecture("conv4", {"channels": 3}, dim=24), seed=5)
    with closing(Index.create(new_place(), model)) as index:
        index.add(folder)
        (folder / "figs" / "0.png").unlink()
        kept = {"drop_missing": True} | ({"sample": len(index), "least": 0.0} if how is upgrade else {})
        how(index, other, **kept)
        added, *entries = [(entry.action, entry.subject, entry.detail) for entry in index.store.log.entries()]
        assert added[0] == "items added"
        changed = [json.loads(detail) for action, _, detail in entries if action == "model changed"]
        assert [content["fingerprint"] for content in changed] == [other.fingerprint]
        assert ("item removed", subject_of("photos/figs/0.png"), "") in entries
        (folder / "figs" / "1.png").unlink()
        index.add(folder, prune_missing=True)
        assert len(index.store.log.entries(subject=subject_of("photos/figs/1.png"))) == 1
