"""The next best question: what it asks about, what an answer does, and that no answer is lost."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from lookalike.discover import journal
from lookalike.discover.gain import Judged, Likeness
from lookalike.discover.grouping import hierarchy
from lookalike.discover.mending import MendedGroups
from lookalike.discover.photos import Photos
from lookalike.discover.session import Session, begin
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
    found = like.candidates(MendedGroups(groups, {}), [])
    assert ends(groups, found.pairs[found.gain.argmax()]) == (0, 1)
    assert found.settled[found.gain.argmax()] == 4


def test_what_was_said_is_not_asked_again_and_counts_against_the_group(circle):
    like, groups = circle
    mended = MendedGroups(groups, {})
    before = like.candidates(mended, [])
    left, right = before.pairs[before.gain.argmax()].tolist()
    mended.apply({"do": "different", "left": left, "right": right})
    after = like.candidates(mended, [])
    assert len(after.pairs) == len(before.pairs) - 1
    assert after.vain.max() == 1


def test_answers_move_the_chance(circle):
    like, groups = circle
    mended = MendedGroups(groups, {})
    guess, learnt = like.candidates(mended, []), like.candidates(mended, [Judged((-0.1, -0.1), False)] * 5)
    assert (learnt.chance < guess.chance).all()
    assert (like.candidates(mended, [Judged((-1.0, -1.0), True)] * 5).chance > guess.chance).all()


def test_same_merges_and_two_known_classes_never_do(circle):
    like, groups = circle
    mended = MendedGroups(groups, {1: "cup", 2: "jug"})
    mended.apply({"do": "same", "left": 0, "right": 7})
    assert mended.groups.tolist() == [1] * 10 + [2] * 3 + [-1]
    mended.apply({"do": "same", "left": 13, "right": 9})
    assert mended.groups[13] == 1
    assert not len(like.candidates(mended, []).pairs)
    with pytest.raises(UserError, match="two known classes are never one"):
        mended.apply({"do": "same", "left": 0, "right": 12})


@pytest.fixture
def place(tmp_path):
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(12, 16))
    centres[1::2] = centres[::2] + 0.4 * draw.normal(size=(6, 16))
    vectors = (np.repeat(centres, 6, 0) + 0.1 * draw.normal(size=(72, 16))).astype(np.float32)
    photos = Photos([f"{row:02d}.png" for row in range(72)], vectors, [None] * 72, "sphere")
    begin(tmp_path / "shop.review", photos, hierarchy(vectors))
    return tmp_path / "shop.review"


def test_answers_are_kept_and_the_table_follows(place):
    session = Session(place)
    groups = len({row.label for row in session.rows} - {""})
    question = session.question()
    session.answer(1, "same")
    labels = {row.path: row.label for row in read(place / "labels.csv")}
    assert labels[question.left] == labels[question.right]
    assert len(set(labels.values()) - {""}) == groups - 1
    assert Session(place).question() == session.question()
    with pytest.raises(UserError, match="question 1 is not the next one, which is 2"):
        session.answer(1, "same")


def test_two_who_answer_at_once_answer_different_questions(place):
    one, other = Session(place), Session(place)
    one.answer(1, "different")
    with pytest.raises(UserError, match="not the next one"):
        other.answer(1, "same")
    other.answer(2, "unsure")
    assert [entry["do"] for entry in journal.entries(place / "answers.jsonl")] == ["different", "unsure"]


WRITER = """
import sys
from pathlib import Path
from lookalike.discover import journal
for number in range(10**9):
    journal.append(Path(sys.argv[1]), {"number": number})
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    place = tmp_path / "answers.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, place], stdout=subprocess.PIPE, text=True) as writer:
        for _ in range(20):
            last = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        last = max([last, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    with place.open("ab") as file:
        file.write(b'{"number": 7')  # torn
    journal.append(place, {"number": -1})
    numbers = [entry["number"] for entry in journal.entries(place)]
    assert numbers[: last + 1] == list(range(last + 1))
    assert numbers[-1] == -1
    assert json.loads(place.read_bytes().splitlines()[-1]) == {"number": -1}
