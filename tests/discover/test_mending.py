"""What each word does to groups, at every level; undo; and that the table follows."""

import numpy as np
import pytest

from lookalike.discover import journal
from lookalike.discover.beginning import begin
from lookalike.discover.grouping import APART, hierarchy
from lookalike.discover.mending import MendedGroups, checked_name
from lookalike.discover.photos import Photos
from lookalike.discover.review.desk import Desk
from lookalike.discover.review.view import Word
from lookalike.discover.session import ReviewSession
from lookalike.discover.table import read
from lookalike.errors import UserError


@pytest.fixture
def mended():
    """Two groups, a known class of three photos, of which two brought their label, and two photos in no group."""
    fixed = np.array([False] * 7 + [True, True, False] + [False] * 2)
    return MendedGroups(np.array([0] * 4 + [1] * 3 + [2] * 3 + [APART] * 2), {2: "cup"}, fixed)


def test_a_name_makes_a_group_and_the_same_name_joins_it(mended):
    mended.apply({"do": "name", "rows": [0, 1], "name": "jug"})
    number = mended.number_of("jug")
    assert (mended.groups[:4] == [number, number, 0, 0]).all()
    mended.apply({"do": "name", "rows": [4, 5, 6, 10], "name": "jug"})
    assert set(np.flatnonzero(mended.groups == number)) == {0, 1, 4, 5, 6, 10}
    mended.apply({"do": "name", "rows": [11], "name": "cup"})
    assert mended.groups[11] == 2


def test_photos_that_brought_their_label_keep_it(mended):
    for word in ({"do": "out"}, {"do": "name", "name": "jug"}, {"do": "split"}):
        with pytest.raises(UserError, match="came with a label keep it"):
            mended.check({**word, "rows": [8, 9]})
        mended.apply({**word, "rows": [8, 9]})
        assert mended.groups[8] == 2
    assert mended.groups[9] != 2  # it had only joined


def test_a_part_is_divided_off_and_known_to_be_another_kind(mended):
    with pytest.raises(UserError, match="not all"):
        mended.check({"do": "split", "rows": [0, 1, 2, 3]})
    mended.apply({"do": "split", "rows": [0, 1], "left": 0, "right": 2})
    assert mended.groups[:4].tolist() == [3, 3, 0, 0]
    assert mended.judged == [(0, 2, "different")]
    mended.apply({"do": "same", "left": 0, "right": 2})  # a person may think better of it
    assert len(set(mended.groups[:4])) == 1


def test_a_name_survives_a_merge_and_a_known_one_more_so(mended):
    mended.apply({"do": "name", "rows": [4, 5, 6], "name": "jug"})
    mended.apply({"do": "same", "left": 0, "right": 4})
    assert mended.names[int(mended.groups[0])] == "jug"
    mended.apply({"do": "same", "left": 0, "right": 8})
    assert (mended.groups[:10] == 2).all()


def test_what_is_thrown_out_is_in_no_group_and_two_of_them_may_be_one_kind(mended):
    mended.apply({"do": "out", "rows": [0]})
    assert (mended.groups[0], bool(mended.out[0])) == (APART, True)
    mended.apply({"do": "same", "left": 0, "right": 10})
    assert mended.groups[0] == mended.groups[10] == 3
    assert not mended.out.any()


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "group 7", "n" * 101])
def test_a_name_is_a_name(name):
    with pytest.raises(UserError):
        checked_name(name)


def say(session, **entry):
    session.say(session.version, entry)


def labels(place):
    return [row.label for row in read(place / "labels.csv")]


def test_every_word_can_be_taken_back_also_by_another_process(place):
    session = ReviewSession(place)
    group = np.flatnonzero(session.mended.groups == 0).tolist()
    states = [labels(place)]
    say(session, do="name", rows=group, name="=cup")
    states.append(labels(place))
    assert {states[-1][row] for row in group} == {"=cup"}
    session.answer(session.version + 1, "same")
    states.append(labels(place))
    say(session, do="level", fineness=0.0)
    states.append(labels(place))
    assert len(set(states[3])) < len(set(states[2]))
    assert {states[3][row] for row in group} == {"=cup"}  # names stay at every level
    say(session, do="aside", rows=group)
    assert {labels(place)[row] for row in group} == {""}
    for state in reversed(states):
        say(ReviewSession(place), do="undo")
        assert labels(place) == state
    session.refresh()
    assert session.lines == []
    with pytest.raises(UserError, match="nothing to take back"):
        say(session, do="undo")
    assert len(journal.entries(place / "answers.jsonl")) == 8  # nothing was erased


def drawn(names, seed, **facts):
    vectors = np.random.default_rng(seed).normal(size=(len(names), 16)).astype(np.float32)
    return Photos(names, vectors, [None] * len(names), "sphere", **facts), hierarchy(vectors)


def test_groups_are_found_anew_and_everything_said_stays_though_photos_come_and_go(place):
    session = ReviewSession(place)
    names = list(session.kept.photos.names)
    group = [names[row] for row in np.flatnonzero(session.mended.groups == 0)]
    say(session, do="name", rows=[names.index(name) for name in group], name="cup")
    say(session, do="out", rows=[names.index(group[0])])
    session.answer(3, "different")
    left = [name for name in [*reversed(names), "new.png"] if name not in (group[1], session.lines[-1]["left"])]
    begin(place, *drawn(left, 1), "two")
    session.refresh()  # a process that runs on
    for anew in (session, ReviewSession(place)):
        assert len(anew.rows) == 71
        assert {row.path for row in anew.labelled() if row.label == "cup"} == set(group[2:])
        assert anew.mended.out[left.index(group[0])]
        assert (len(anew.lines), len(anew.entries), anew.since) == (3, 2, 0)
    with pytest.raises(UserError, match="question 4 is not the next one, which is 5"):
        session.answer(4, "same")
    for _ in range(3):
        say(session, do="undo")
    assert session.lines == []


def test_what_a_person_named_judges_and_what_joined_it_only_teaches(place):
    session = ReviewSession(place)
    first, second, third = (np.flatnonzero(session.mended.groups == number).tolist() for number in range(3))
    say(session, do="name", rows=first, name="cup")
    say(session, do="same", left=first[0], right=second[0])
    verdicts = {row.path: row.verdict for row in read(place / "labels.csv")}
    assert {verdicts[f"{row:02d}.png"] for row in first} == {"named"}
    assert {verdicts[f"{row:02d}.png"] for row in second} == {"joined"}
    assert {verdicts[f"{row:02d}.png"] for row in third} == {"found"}
    say(session, do="split", rows=first[:1])
    assert [row.verdict for row in read(place / "labels.csv") if row.path == f"{first[0]:02d}.png"] == ["found"]


def test_a_new_group_is_not_called_as_a_known_class(tmp_path):
    vectors = np.eye(2, dtype=np.float32)[np.arange(10) // 7]
    vectors += 0.01 * np.random.default_rng(0).normal(size=vectors.shape).astype(np.float32)
    known = np.array([-1] * 7 + [0] * 3)
    photos = Photos([f"{row}.png" for row in range(10)], vectors, [None] * 7 + ["group 4"] * 3, "sphere")
    begin(tmp_path / "shop.review", photos, hierarchy(vectors, known), "one")
    session = ReviewSession(tmp_path / "shop.review")
    for row in range(5):
        say(session, do="split", rows=[row])
    labels = [row.label for row in session.labelled()]
    assert sorted(set(labels)) == ["group 1", "group 4", *(f"group {number}" for number in range(5, 10))]
    assert labels[7:] == ["group 4"] * 3


def test_a_new_model_is_judged_by_named_photos_that_it_did_not_learn(place, tmp_path):
    session = ReviewSession(place)
    names, kinds, before = list(session.kept.photos.names), np.arange(72) // 6, session.kept.whole.vectors
    for kind in range(4):
        say(session, do="name", rows=np.flatnonzero(kinds == kind).tolist(), name=f"kind {kind}")
    (tmp_path / "run").mkdir()
    held = np.array([name for name, kind in zip(names, kinds, strict=True) if kind in (2, 3, 9)])
    np.savez(tmp_path / "run" / "test.npz", paths=held, labels=held, embeddings=np.zeros((18, 2), np.float32))
    photos, whole = drawn(names, 1, model=str(tmp_path / "run" / "model"), fingerprint="new")
    begin(place, photos, whole, "one")
    session.refresh()
    made = session.found[-1]["brought"]
    assert (made["photos"], made["kinds"]) == (12, 2)  # kinds 0 and 1 were learnt, 9 has no name
    for name, vectors in (("before", before), ("after", whole.vectors)):
        alike = vectors[12:24] @ vectors[12:24].T - 3 * np.eye(12)
        nearest = np.argsort(-alike, axis=1)[:, :5]
        assert made[name] == pytest.approx((kinds[12:24][nearest] == kinds[12:24, None]).mean())
    assert made["before"] > made["after"]  # which is noise
    assert "2 named kinds that this model did not learn" in session.brought
    begin(place, *drawn(names, 2, model=str(tmp_path / "other" / "model"), fingerprint="newer"), "one")
    shown = Desk(place).show(1).progress
    assert shown.fitted == ReviewSession(place).brought
    assert shown.fitted.startswith("There is nothing to judge this model by")


def test_a_word_about_groups_that_have_changed_is_refused(place):
    one, other = ReviewSession(place), ReviewSession(place)
    say(one, do="out", rows=[0])
    with pytest.raises(UserError, match="somebody else has changed these groups"):
        other.say(0, {"do": "undo"})
    assert other.mended.groups[0] == APART


def test_a_person_is_told_when_further_answers_bring_little(tmp_path):
    draw = np.random.default_rng(0)
    vectors = (np.repeat(draw.normal(size=(10, 16)), 9, 0) + 0.9 * draw.normal(size=(90, 16))).astype(np.float32)
    photos = Photos([f"{row}.png" for row in range(90)], vectors, [None] * 90, "sphere")
    begin(tmp_path / "shop.review", photos, hierarchy(vectors), "one")
    desk, advice = Desk(tmp_path / "shop.review"), []
    while (question := desk.show(1).question) is not None:
        advice.append(question.stop)
        assert "probably different" not in question.stop or question.chance < 0.1
        desk.say(Word(version=desk.session.version, do="different"))
    assert list(dict.fromkeys(advice)) == [
        "",
        "Another answer is expected to move less than one photo: you can stop here.",
        "What is left to ask about is probably different: you can stop here.",
    ]


def test_what_is_settled_is_not_asked_about(place):
    session = ReviewSession(place)
    best = session.best()
    say(session, do="out", rows=[best["left"]])
    for _ in range(200):
        question = session.best()
        if question is None:
            break
        assert best["left"] not in (question["left"], question["right"])
        session.answer(session.version + 1, "different")
    assert session.best() is None
