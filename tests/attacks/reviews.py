"""Reviews: two speakers of random words who are killed, lines that are torn, and folders that a stranger made."""

import json
import math
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from lookalike.discover import journal, table
from lookalike.discover.beginning import begin
from lookalike.discover.grouping import hierarchy
from lookalike.discover.kept import ANSWERS, FOUND, LABELS
from lookalike.discover.photos import Photos
from lookalike.discover.review.desk import Desk
from lookalike.discover.review.view import Word
from lookalike.discover.session import ReviewSession
from lookalike.errors import UserError
from lookalike.files import printable
from tests.attacks.damage import damaged
from tests.attacks.outcomes import Outcomes, right
from tests.models.test_tampered import VALUES, with_value
from tests.models.test_tampered import places as ways

DIM, NAMES = 6, ("cup", "jug", "vase", "cup ", "group 1", "", "=1+1", "<b>", "é")
TORN = (b'{"do": "undo"}', b'{"do": "out", "rows"', b"\xff", b"{}", b"[" * 2000)


def reviews_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    outcomes.attempt_each(first, count, lambda number: review_trial(number, place / "reviews"))


def review_trial(number: int, place: Path) -> None:
    """A folder is begun, spoken about, and then perhaps harmed; what was acknowledged stands, and all agree on it."""
    chance, draw = random.Random(number), np.random.default_rng(number)
    shutil.rmtree(place, ignore_errors=True)
    folder = begun(chance, draw, place)
    kept: list[str] = []
    for _ in range(2):
        kept += spoken(chance, folder)
        lines = journal.entries(folder / ANSWERS)
        right(set(kept) <= {json.dumps(line) for line in lines}, "an acknowledged word is lost")
        if chance.random() < 0.5:
            with (folder / ANSWERS).open("ab") as file:
                file.write(chance.choice(TORN))
            right(journal.entries(folder / ANSWERS) == lines, "half a line counts")
        agree(folder)
    chance.choice((misquoted, harmed, harmed))(chance, folder)
    Desk(folder).show(2000)
    speak(chance, Desk(folder))
    agree(folder)


def begun(chance: random.Random, draw: np.random.Generator, place: Path) -> Path:
    """Some kinds of photos that look alike; some photos brought their label."""
    kinds, each = chance.randint(1, 8), chance.randint(3, 9)
    rows = np.repeat(draw.standard_normal((kinds, DIM)), each, 0) + chance.choice((0, 0.1, 0.7)) * draw.standard_normal(
        (kinds * each, DIM)
    )
    labels = [f"class {row // each}" if chance.random() < 0.1 else None for row in range(len(rows))]
    found = Photos([f"{row}.png" for row in range(len(rows))], rows.astype(np.float32), labels, "sphere")
    place.mkdir()
    begin(place / "shop.review", found, hierarchy(found.vectors, found.known), "one")
    return place / "shop.review"


def agree(folder: Path) -> None:
    """Whoever reads the folder anew sees what whoever took it up line by line saw, and so does the table."""
    one = ReviewSession(folder)
    for seed in range(3):
        speak(random.Random(seed), Desk(folder))
    one.refresh()
    other = ReviewSession(folder)
    for name in ("groups", "aside", "out"):
        right((getattr(one.mended, name) == getattr(other.mended, name)).all(), f"two readers differ: {name}")
    right((one.mended.names, one.entries) == (other.mended.names, other.entries), "two readers differ")
    rows = [(row.path, row.label) for row in table.read(folder / LABELS)]
    groups = [(printable(row.path), printable(row.label)) for row in other.labelled()]
    right(rows == groups, "the table is another than the groups")


def speak(chance: random.Random, desk: Desk, told: Callable[[str], None] = lambda _: None) -> None:
    """One word, sensible or not, that is kept or refused in one line."""
    shown = desk.show(chance.choice((1, 20, 2000)))
    groups, photos = [strip.number for strip in shown.strips] + [77, 10**30], range(-1, shown.progress.photos + 1)
    kinds = ("same", "different", "unsure", "merge", "name", "split", "out", "aside", "level", "undo")
    content = {
        "version": max(0, shown.version - (chance.random() < 0.1)),
        "do": chance.choice(kinds),
        "group": chance.choice([None, *(group for group in groups if group >= 0)]),
        "photos": chance.sample(photos, chance.choice((0, 0, 1, 3))),
        "other": chance.choice([None, *(group for group in groups if group >= 0)]),
        "name": chance.choice(NAMES),
        "fineness": chance.choice((None, chance.random())),
    }
    with suppress(UserError):
        desk.say(Word(**content))
        told(json.dumps(journal.entries(desk.session.place / ANSWERS)[desk.session.version - 1]))


def spoken(chance: random.Random, folder: Path) -> list[str]:
    """Two speakers at once, each killed at its moment; the lines that they were told are kept."""
    running, lines = [speaker(chance.randrange(1 << 30), folder) for _ in range(2)], []
    for child, pipe in running:
        time.sleep(chance.uniform(0.02, 0.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(pipe) as told:
            lines += told.read().split("\n")[:-1]
    return lines


def speaker(seed: int, folder: Path) -> tuple[int, int]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    try:
        chance, desk = random.Random(seed), Desk(folder)
        while True:
            speak(chance, desk, lambda line: os.write(theirs, f"{line}\n".encode()))
    finally:
        os._exit(1)


def misquoted(chance: random.Random, folder: Path) -> None:
    """One value of one line is another."""
    lines = journal.entries(folder / ANSWERS) or [{"do": "out", "photos": ["0.png"]}]
    line = chance.randrange(len(lines))
    odd = chance.choice((*VALUES, math.nan, math.inf, "\ud800", "\0", [10**30], "level"))
    lines[line] = with_value(lines[line], chance.choice(list(ways(lines[line]))), odd)
    (folder / ANSWERS).write_text("".join(json.dumps(each) + "\n" for each in lines))


def harmed(chance: random.Random, folder: Path) -> None:
    """One of the files is cut off, has other bits, or arrays that are shuffled, of another type or shape."""
    file = chance.choice(sorted(path for path in folder.iterdir() if path.stat().st_size))
    if file.name != FOUND or chance.random() < 0.3:
        file.write_bytes(chance.choice(list(damaged(file.read_bytes(), chance))))
        return
    with np.load(file) as content:
        arrays = dict(content)
    name = chance.choice(sorted(arrays))
    old = arrays[name]
    numbers = [old * 0 - 1, old * 3, np.roll(old, 1)] if old.dtype.kind in "if" else [np.atleast_1d(old)[:1]]
    others = (*numbers, old.astype(np.str_), old.astype(object), old[None], old.ravel()[: old.size // 2])
    np.savez(file, **arrays | {name: chance.choice(others)})
