"""A folder of a review that came from elsewhere: it is read, or refused in one line, and reaches nothing beside it."""

import json
import re
import shutil

import numpy as np
import pytest

from lookalike.discover import journal
from lookalike.discover.checking import TableCheck
from lookalike.discover.review.desk import Desk
from lookalike.discover.session import ReviewSession
from lookalike.discover.table import GroupedPhoto, write
from lookalike.errors import UserError
from tests.search.conftest import photo

SAME = {"do": "same", "left": "00.png", "right": "01.png"}


def called(place, *names):
    """The first photos of a review get other names."""
    with np.load(place / "found.npz") as content:
        arrays = dict(content)
    arrays["names"] = np.array([*names, *arrays["names"][len(names) :].tolist()])
    np.savez(place / "found.npz", **arrays)


def entry(**changes):
    return {name: value for name, value in (SAME | changes).items() if value is not None}


LINES = [
    {},
    entry(do=None),
    entry(do="explode"),
    entry(do=["same"]),
    entry(left=0),
    entry(left=True),
    entry(left=-1),
    entry(left=10**30),
    entry(right="00.png"),
    entry(right=None),
    entry(seen=[1e999, 0.0]),
    entry(seen=[1e300, 1e300]),
    entry(seen=[0.1]),
    entry(seen="ab"),
    entry(chance="0.5"),
    entry(seen=[0.1, 0.1]),
    entry(settles="many"),
    entry(more=1),
    {"do": "name", "photos": ["a"], "name": 7},
    {"do": "name", "photos": ["a"], "name": "a\nb"},
    {"do": "name", "photos": ["a"], "name": "n" * 10**6},
    {"do": "name", "photos": ["a"], "name": "cup", "right": "b"},
    {"do": "out", "photos": "012"},
    {"do": "out", "photos": [0.5]},
    {"do": "out", "photos": ["a"], "left": "a", "right": 1},
    {"do": "level"},
    {"do": "found", "count": 72, "model": "m", "brought": {"photos": "many"}},
    {"do": "level", "fineness": float("nan")},
    {"do": "level", "fineness": 2},
]


def test_a_line_that_nobody_has_said_is_refused(place):
    for line in LINES:
        (place / "answers.jsonl").write_text(json.dumps(SAME) + "\n{torn\n" + json.dumps(line) + "\n")
        with pytest.raises(UserError) as refusal:
            ReviewSession(place)
        expected = r"line 3 of 'shop.review/answers.jsonl' cannot be used \(.*\): remove this line, the others stay"
        assert re.fullmatch(expected, str(refusal.value)), line


def test_what_is_no_whole_line_never_counts(place):
    file = place / "answers.jsonl"
    for torn in (b'{"do": "undo"', b'{"do": "undo"}', b"[" * 100_000, b"\xff\xfe"):
        file.unlink(missing_ok=True)
        journal.append(file, SAME)
        with file.open("ab") as end:
            end.write(torn)
        assert journal.entries(file) == [SAME]
        journal.append(file, SAME)
        assert journal.entries(file) == [SAME, SAME]


def test_a_journal_that_was_put_back_as_it_was_is_read_anew(place):
    session, file = ReviewSession(place), place / "answers.jsonl"
    session.say(0, {"do": "out", "rows": [0]})
    before = file.read_bytes()
    session.say(1, {"do": "out", "rows": [1]})
    file.write_bytes(before)
    session.refresh()
    assert (session.version, session.mended.out[:2].tolist()) == (1, [True, False])


HARMS = [
    lambda _: {"vectors": None},
    lambda _: {"vectors": np.array([{}] * 72)},  # a pickle
    lambda known: {"vectors": known["vectors"][0]},
    lambda known: {"vectors": known["vectors"] * 1e30},
    lambda known: {"vectors": np.full_like(known["vectors"], np.nan)},
    lambda known: {"nearest": known["nearest"] + 72},  # compiled loops look up rows by them
    lambda known: {"nearest": known["nearest"].astype(float)},
    lambda known: {"nearest": known["nearest"][:5]},
    lambda known: {"joined": known["kept"], "kept": known["joined"]},
    lambda _: {"kept": np.r_[1, 2, 0], "joined": np.r_[0, 1, 2], "heights": np.ones(3)},  # a ring has no root
    lambda known: {"heights": known["heights"][:-1]},
    lambda _: {"random": np.array("x")},
    lambda _: {"random": np.array([0.1, 0.2])},
    lambda _: {"suggested": np.array(np.inf)},
    lambda _: {"ids": np.arange(72)},
    lambda _: {"ids": np.array(["a"] * 5)},
    lambda known: {"names": known["names"][:5]},
    lambda _: {"names": np.array("a")},
    lambda _: {"model": np.array(["a", "b"])},
]


def test_arrays_that_no_review_keeps_are_refused(place):
    with np.load(place / "found.npz") as content:
        known = dict(content)
    for harm in HARMS:
        arrays = known | harm(known)
        np.savez(place / "found.npz", **{name: value for name, value in arrays.items() if value is not None})
        with pytest.raises(UserError, match=r"found.npz' is damaged or of an earlier version: delete"):
            ReviewSession(place)
    np.savez(place / "found.npz", **known)
    ReviewSession(place)


def test_a_file_that_is_cut_off_or_none_is_refused(place):
    content = (place / "found.npz").read_bytes()
    for harmed in (b"", b"PK", content[: len(content) // 2], content[:-30], b"\x80\x04K\x01."):
        (place / "found.npz").write_bytes(harmed)
        with pytest.raises(UserError, match="damaged"):
            ReviewSession(place)


def test_links_lead_nowhere(place, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("mine")
    for name in ("answers.jsonl", ".lock", "labels.csv"):
        (place / name).unlink(missing_ok=True)
        (place / name).symlink_to(own)
        if name == "labels.csv":
            ReviewSession(place).say(0, {"do": "out", "rows": [0]})
            assert not (place / name).is_symlink()
        else:
            with pytest.raises(UserError, match="it is a link, delete it"):
                ReviewSession(place).say(0, {"do": "out", "rows": [0]})
            (place / name).unlink()
        assert own.read_text() == "mine"


def test_only_photos_of_the_source_are_shown(place, tmp_path):
    """The table of a stranger's review may name any file of the reader's."""
    photos, private = tmp_path / "shop", tmp_path / "private.png"
    photos.mkdir()
    for path in (private, photos / "00.png"):
        photo("figs", 1).save(path)
    (photos / "02.png").symlink_to(private)
    paths = [photos / "00.png", private, photos / "02.png", photos / "../private.png"]
    called(place, *map(str, paths))
    desk = Desk(place, source=str(photos))
    assert (desk.picture(0) or b"").startswith(b"\xff\xd8\xff")
    assert [desk.picture(row) for row in (1, 2, 3, 4)] == [None] * 4
    assert Desk(place).picture(0) is None  # of a review alone nobody knows where its photos are
    with pytest.raises(UserError, match="from 0 to 71"):
        desk.picture(-1)


def test_answers_about_a_table_have_types(tmp_path):
    rows = [GroupedPhoto(name, "group 1", "found", 0.5, 0.1) for name in "ab"]
    write(rows, tmp_path / "groups.csv")
    check = TableCheck(tmp_path / "groups.csv")
    check.answer(1, "same")
    (kept,) = journal.entries(check.file)
    for line in ({"number": "1"}, {"answer": "explode"}, {"more": 1}, {"left": "c"}):
        journal.append(check.file, kept | {"answer": "unsure"} | line)
    assert [answer.answer for answer in check.answers] == ["same"]


def test_pictures_of_two_reviews_have_different_addresses(place, tmp_path):
    """A browser keeps pictures for some minutes, and both are shown at the same port."""
    shutil.copytree(place, tmp_path / "other.review")
    called(tmp_path / "other.review", "x.png")
    one, other = (Desk(folder).show(1).strips[0].photos for folder in (place, tmp_path / "other.review"))
    assert {photo.thumbnail for photo in one}.isdisjoint(photo.thumbnail for photo in other)
