"""Refusals: their status, their sentence, when to try again."""

import sqlite3

import pytest

from lookalike.errors import UserError
from lookalike.search.serve.refusals import busy, given_up, internal, no_item, not_ready, of_mistake, shortened
from lookalike.search.stores import StorageError
from lookalike.search.stores.sqlite.database import explained


def test_a_mistake_is_a_sentence():
    for text, sentence in (("say what", "Say what."), ("why?", "Why?"), ("É is no id.", "É is no id."), ("", ".")):
        refused = of_mistake(UserError(text))
        assert (refused.status, refused.message) == (400, sentence)


def test_a_failure_of_the_storage_stays_inside(tmp_path):
    with pytest.raises(StorageError) as locked, explained(tmp_path / "srv" / "index.sqlite"):
        raise sqlite3.OperationalError("database is locked")
    for failure in (StorageError("postgresql://me@db is down"), locked.value):
        refused = of_mistake(failure)
        assert (refused.status, refused.headers) == (503, {"Retry-After": "5"})
        assert "db" not in refused.message
        assert "srv" not in refused.message


def test_who_may_try_again_is_told_when():
    assert (busy(7).status, busy(7).headers) == (429, {"Retry-After": "7"})
    assert (not_ready().status, not_ready().headers) == (503, {"Retry-After": "2"})
    assert (internal().status, given_up(20).status) == (500, 504)


def test_names_are_quoted_but_not_at_length():
    assert (shortened("x" * 80), shortened("x" * 81)) == ("x" * 80, f"{'x' * 80}…")
    assert no_item("a").message.startswith("There is no item 'a'.")
    assert no_item("a").content("r1") == {
        "error": {"code": "not_found", "message": no_item("a").message, "request_id": "r1"}
    }
