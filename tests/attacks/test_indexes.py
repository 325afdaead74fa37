"""The attacks on indexes: a few of each pass, and an index that is broken is found out."""

import shutil

import numpy as np
import pytest

from lookalike.search.scan import rounded as scan
from lookalike.search.stores.sqlite import cache, database
from tests.attacks import indexes, upgrades, writers
from tests.attacks.outcomes import Outcomes

WAYS = ("tampered", "misquoted", "flipped", "led_astray", "programmed")
pytestmark = pytest.mark.plain


def outcomes_of(part, count, place, first=0):
    outcomes = Outcomes(part.__name__)
    part(outcomes, first, count, place)
    assert outcomes.trials == count
    return outcomes


@pytest.mark.parametrize(("part", "count"), [(indexes.histories_hold, 6), (indexes.caches_hold, 40)])
def test_a_few_trials_find_nothing(part, count, tmp_path):
    outcomes = outcomes_of(part, count, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (count, [])


def test_a_few_strangers_find_nothing(tmp_path):
    outcomes = outcomes_of(indexes.strangers_hold, 12, tmp_path)
    assert outcomes.counts["answered"] > 2 < outcomes.counts["refused"]
    assert outcomes.notes == []


def test_writers_that_are_killed_lose_nothing(tmp_path):
    outcomes = outcomes_of(writers.writers_hold, 2, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (2, [])


def test_an_upgrade_that_is_killed_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(upgrades, "KILLS", 1)
    outcomes = outcomes_of(upgrades.upgrades_hold, 1, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (1, [])


def test_a_search_that_misses_items_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "places_above", lambda scores, _: np.array([int(scores.argmax())]))
    assert outcomes_of(indexes.histories_hold, 6, tmp_path, first=10).counts["wrong"] > 1


def test_a_cache_that_is_not_checked_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_check", lambda *_: None)
    indexes.cached.cache_clear()
    assert outcomes_of(indexes.caches_hold, 40, tmp_path).findings > 0


def test_a_journal_that_deletes_is_found(tmp_path, monkeypatch):
    def journal(_, index, own):
        (index / f"{indexes.FILE}-journal").write_bytes(indexes.journal_that_names(own / "note.txt"))

    for way in WAYS:
        monkeypatch.setattr(indexes, way, journal)
    assert outcomes_of(indexes.strangers_hold, 1, tmp_path).counts["refused"] == 1
    monkeypatch.setattr(database, "check_journal", lambda _: None)
    assert outcomes_of(indexes.strangers_hold, 1, tmp_path).counts["wrong"] == 1


def test_a_stranger_who_reaches_the_reader_is_found(tmp_path, monkeypatch):
    def link(_, index, own):
        shutil.rmtree(index / "cache")
        (index / "cache").symlink_to(own)

    for way in WAYS:
        monkeypatch.setattr(indexes, way, link)
    assert outcomes_of(indexes.strangers_hold, 1, tmp_path).findings == 0
    monkeypatch.setattr(cache.Path, "is_symlink", lambda _: False)
    assert outcomes_of(indexes.strangers_hold, 1, tmp_path).counts["wrong"] == 1
