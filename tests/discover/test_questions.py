"""The next best question: what it asks about, what an answer does, and that no answer is lost."""

import json

import numpy as np
import pytest

from lookalike.discover import gain, journal
from lookalike.discover.gain import JudgedGroups, Likeness
from lookalike.discover.mending import MendedGroups
from lookalike.discover.review.desk import Desk
from lookalike.discover.review.view import Word
from lookalike.discover.session import ReviewSession
from lookalike.discover.table import read
from lookalike.errors import UserError


@pytest.fixture
def circle():
    """Three groups and a photo alone on a circle: 0 is large and near 1; 2 is far away."""
    angles = np.array([*np.linspace(0, 0.2, 6), *np.linspace(0.5, 0.6, 4), *np.linspace(2.0, 2.1, 3), 0.8])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    nearest = np.argsort(-(vectors @ vectors.T), axis=1)[:, 1:13]
    groups = np.array([0] * 6 + [1] * 4 + [2] * 3 + [-1])
    return Likeness(vectors, nearest, 0.95, 0.2), groups


def ends(groups, pair):
    return tuple(sorted(groups[pair].tolist()))


def test_the_most_similar_large_groups_are_asked_about_first(circle):
    like, groups = circle
    found = like.open_questions(MendedGroups(groups, {}), [])
    assert ends(groups, found.pairs[found.gain.argmax()]) == (0, 1)
    assert found.settled[found.gain.argmax()] == 4


@pytest.mark.parametrize("block", [3, 4096])
def test_groups_are_compared_by_the_mean_similarity_of_their_pairs(circle, block, monkeypatch):
    monkeypatch.setattr(gain, "BLOCK", block)  # groups go on from one block to the next
    like, groups = circle
    mixed = np.random.default_rng(0).permutation(len(groups))
    place = np.argsort(mixed)
    like = Likeness(like.vectors[mixed], place[like.nearest[mixed]], like.level, like.random)
    own = np.where(groups == -1, 9, groups)[mixed]
    found = like.open_questions(MendedGroups(groups[mixed], {}), [])
    for (left, right), seen in zip(found.pairs.tolist(), found.seen, strict=True):
        one, other = (like.vectors[own == own[row]] for row in (left, right))
        assert seen[0] == pytest.approx(((one @ other.T).mean() - 0.95) / 0.75, abs=1e-6)
        for row, vectors in ((left, one), (right, other)):
            near = vectors @ vectors.mean(0)
            assert like.vectors[row] @ vectors.mean(0) == pytest.approx(near.max())


def test_the_next_question_is_computed_once_for_each_word(place, monkeypatch):
    desk, computed, compute = Desk(place), [], Likeness.open_questions
    monkeypatch.setattr(Likeness, "open_questions", lambda *given: computed.append(1) or compute(*given))
    for number in range(3):
        desk.say(Word(version=number, do="different"))
        desk.show(20)
    assert len(computed) == 3
    other = ReviewSession(place)
    other.answer(4, "unsure")
    assert [desk.show(20).question.left.row for _ in range(2)] == [other.best()["left"]] * 2
    assert len(computed) == 3 + 1 + 2  # the other's before its word and after it, and this one's


def test_what_was_said_is_not_asked_again_and_counts_against_the_group(circle):
    like, groups = circle
    mended = MendedGroups(groups, {})
    before = like.open_questions(mended, [])
    left, right = before.pairs[before.gain.argmax()].tolist()
    mended.apply({"do": "different", "left": left, "right": right})
    after = like.open_questions(mended, [])
    assert len(after.pairs) == len(before.pairs) - 1
    assert after.vain.max() == 1


def test_answers_move_the_chance(circle):
    like, groups = circle
    mended = MendedGroups(groups, {})
    different = [JudgedGroups((-0.1, -0.1), False)] * 5
    guess, learnt = like.open_questions(mended, []), like.open_questions(mended, different)
    assert (learnt.chance < guess.chance).all()
    assert (like.open_questions(mended, [JudgedGroups((-1.0, -1.0), True)] * 5).chance > guess.chance).all()


def test_same_merges_and_two_known_classes_never_do(circle):
    like, groups = circle
    mended = MendedGroups(groups, {1: "cup", 2: "jug"})
    mended.apply({"do": "same", "left": 0, "right": 7})
    assert mended.groups.tolist() == [1] * 10 + [2] * 3 + [-1]
    mended.apply({"do": "same", "left": 13, "right": 9})
    assert mended.groups[13] == 1
    assert not len(like.open_questions(mended, []).pairs)
    with pytest.raises(UserError, match="two known classes are never one"):
        mended.check({"do": "same", "left": 0, "right": 12})
    before = mended.groups.copy()
    mended.apply({"do": "same", "left": 0, "right": 12})  # said at another level
    assert (mended.groups == before).all()


def test_answers_are_kept_and_the_table_follows(place):
    session = ReviewSession(place)
    groups = len({row.label for row in session.rows} - {""})
    question = session.question()
    session.answer(1, "same")
    labels = {row.path: row.label for row in read(place / "labels.csv")}
    assert labels[question.left] == labels[question.right]
    assert len(set(labels.values()) - {""}) == groups - 1
    assert ReviewSession(place).question() == session.question()
    with pytest.raises(UserError, match="question 1 is not the next one, which is 2"):
        session.answer(1, "same")


def test_two_who_answer_at_once_answer_different_questions(place):
    one, other = ReviewSession(place), ReviewSession(place)
    one.answer(1, "different")
    with pytest.raises(UserError, match="not the next one"):
        other.answer(1, "same")
    other.answer(2, "unsure")
    assert [entry["do"] for entry in journal.entries(place / "answers.jsonl")] == ["different", "unsure"]


def test_a_line_that_is_torn_is_left_out_and_the_next_one_is_whole(tmp_path):
    place = tmp_path / "answers.jsonl"
    journal.append(place, {"number": 1})
    with place.open("ab") as file:
        file.write(b'{"number": 7')  # a process that was killed while it wrote
    assert journal.entries(place) == [{"number": 1}]
    journal.append(place, {"number": 2})
    assert journal.entries(place) == [{"number": 1}, {"number": 2}]
    assert json.loads(place.read_bytes().splitlines()[-1]) == {"number": 2}
