"""The desk of a review: strips, what the words of the page mean, marks in an index, and a server that is killed."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import HTTPException

import numpy as np
import pytest

from lookalike.discover import journal
from lookalike.discover.beginning import begin
from lookalike.discover.grouping import APART, hierarchy
from lookalike.discover.mending import MendedGroups
from lookalike.discover.photos import photos
from lookalike.discover.review.desk import Desk
from lookalike.discover.review.strips import Strips, halves
from lookalike.discover.review.view import Word
from lookalike.discover.session import ReviewSession
from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.items import Item, Mark
from tests.search.serve.client import Server


def test_strips_begin_with_the_typical_and_suggest_the_nearest_name():
    angles = np.array([0.0, 0.1, 0.4, 1.0, 1.1, 2.0, 2.1, 3.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    mended = MendedGroups(np.array([0, 0, 0, 1, 1, 2, 2, APART]), {1: "cup", 2: "jug"})
    strips = Strips(vectors, mended)
    assert strips.numbers == [0, 1, 2, APART]
    assert strips.typical(0) == [1, 0, 2]
    assert strips.names(0) == ["cup", "jug"]
    assert Strips(vectors, mended, floor=0.2).names(0) == ["cup"]
    assert strips.names(1) == strips.names(APART) == []


def test_a_group_of_two_kinds_is_divided_into_them():
    draw = np.random.default_rng(2)
    kinds = np.repeat(np.eye(2, 12), (9, 14), 0) + 0.2 * draw.normal(size=(23, 12))
    assert halves(kinds).tolist() == [True] * 9 + [False] * 14
    assert halves(np.ones((4, 3))).sum() == 1


def said(desk, **word):
    desk.say(Word(version=desk.session.version, **word))
    return desk.show(100)


def test_groups_are_named_merged_divided_and_thrown_out(place):
    desk = Desk(place)
    first, second = desk.show(2).strips
    shown = said(desk, do="merge", group=first.number, other=second.number)
    (merged,) = [strip for strip in shown.strips if strip.number == first.number]
    assert merged.size == first.size + second.size
    divided = said(desk, do="split", group=first.number)
    at = [strip.number for strip in divided.strips].index(first.number)
    parts = [{photo.row for photo in strip.photos} for strip in divided.strips[at : at + 2]]
    assert {photo.row for strip in (first, second) for photo in strip.photos} == parts[0] | parts[1]
    one = min(parts[0])
    assert said(desk, do="name", photos=[one], name="cup").progress.settled == 1
    shown = said(desk, do="out", photos=[one])
    assert [photo.row for photo in shown.strips[-1].photos][-1] == one
    assert shown.progress.steps == 4
    assert said(desk, do="undo").classes == ["cup"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ({"do": "name", "group": 0, "name": "group 1"}, "choose another"),
        ({"do": "merge", "group": 0, "other": 0}, "in one group already"),
        ({"do": "merge", "group": 0}, "no such group"),
        ({"do": "out"}, "chosen one by one"),
        ({"do": "out", "photos": [99]}, "numbered from 0 to 71"),
        ({"do": "split", "group": 77}, "no such group"),
        ({"do": "undo"}, "nothing to take back"),
        ({"do": "level"}, "give one"),
    ],
)
def test_a_word_that_means_nothing_is_refused_and_not_kept(place, word, message):
    desk = Desk(place)
    with pytest.raises(UserError, match=message):
        said(desk, **word)
    assert journal.entries(place / "answers.jsonl") == []


@pytest.fixture
def index(tmp_path):
    """Six kinds of eight items; half of the first have a label."""
    draw = np.random.default_rng(0)
    vectors = (np.repeat(np.eye(6, 16), 8, 0) + 0.15 * draw.normal(size=(48, 16))).astype(np.float32)
    made = Index.create(tmp_path / "shop.index", dim=16)
    items = [Item(f"{row:02d}", label="cup" if row < 4 else None) for row in range(48)]
    made.store.put(items, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    given = photos(str(tmp_path / "shop.index"), None, lambda _: None)
    begin(tmp_path / "shop.index.review", given, hierarchy(given.vectors, given.known), "one")
    return made


def test_words_about_items_are_marks_and_go_when_they_are_taken_back(index, tmp_path):
    index.store.marks.add(Mark("item:40", "40", "08", False, by="Ann"))
    desk = Desk(tmp_path / "shop.index.review", index)
    strips = {strip.photos[0].name: strip for strip in desk.show(20).strips if strip.state == "found"}
    group = next(iter(strips.values()))
    with pytest.raises(UserError, match="a known class stays as it is"):
        said(desk, do="name", group=desk.session.mended.number_of("cup"), name="mug")
    said(desk, do="name", group=group.number, name="cup")
    said(desk, do="out", photos=[group.photos[0].row])
    marks = [mark for mark in index.store.marks.every() if mark.by == "review"]
    assert [mark.right for mark in marks] == [True, False]
    assert marks[1].query_item == group.photos[0].name
    said(desk, do="undo")
    said(desk, do="undo")
    assert [mark.by for mark in index.store.marks.every()] == ["Ann"]
    for right in ("08", "16"):
        journal.append(tmp_path / "shop.index.review" / "answers.jsonl", {"do": "same", "left": "40", "right": right})
    Desk(tmp_path / "shop.index.review", index)  # a process that was killed before it came to the marks
    marks = {(mark.query_item, mark.item): mark.right for mark in index.store.marks.every()}
    assert marks == {("40", "08"): False, ("40", "16"): True}  # what Ann said stays hers


def test_of_two_words_about_the_same_photos_the_last_one_is_the_mark(index, tmp_path):
    session = ReviewSession(tmp_path / "shop.index.review", index.store)
    group = np.flatnonzero(session.mended.groups == session.mended.groups[40]).tolist()
    one, other = group[0], group[-1]
    for number, (left, right, word) in enumerate(((one, other, "split"), (other, one, "same"))):
        said = {"do": word, "left": left, "right": right}
        session.say(number, said | ({"rows": [left]} if word == "split" else {}))
        marks = [(mark.query_item, mark.item, mark.right) for mark in index.store.marks.every()]
        assert marks == [(f"{left:02d}", f"{right:02d}", word == "same")]
    session.say(2, {"do": "undo"})
    assert [(mark.query_item, mark.right) for mark in index.store.marks.every()] == [(f"{one:02d}", False)]


@pytest.mark.usefixtures("index")
def test_serve_shows_the_review_of_its_index(tmp_path):
    with Server(tmp_path / "shop.index", token="secret") as server:
        assert b"review.js" in server("GET", "/review").body
        assert server("GET", "/v1/review", Authorization="Bearer guess").status == 401
        assert server("GET", "/v1/review").json["progress"]["photos"] == 48
        assert f":{server.port}/review" in server.errors


def test_no_acknowledged_word_is_lost_when_the_server_is_killed(place):
    kept = []

    def hammer(server):
        with suppress(OSError, HTTPException, ValueError):
            for _ in range(10_000):
                version = server("GET", "/v1/review").json["version"]
                word = {"version": version, "do": "name", "photos": [version % 72], "name": f"kind {version}"}
                if server.json("POST", "/v1/review", word).status == 200:
                    kept.append(word["name"])

    def reached(number):
        return len(kept) >= number

    for number in (4, 9, 15):
        with Server(place, verb="review") as server, ThreadPoolExecutor(2) as pool:
            work = [pool.submit(hammer, server) for _ in range(2)]
            server.wait_for(partial(reached, number), "words")
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(60)
            for each in work:
                each.result()
    names = [entry["name"] for entry in journal.entries(place / "answers.jsonl")]
    assert len(kept) >= 15
    assert set(kept) <= set(names)
    assert len(set(names)) == len(names)  # of two who speak at once one is refused
    assert {entry["name"] for entry in ReviewSession(place).lines} == set(names)
