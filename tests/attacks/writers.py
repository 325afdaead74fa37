"""Several writers of one index, with clocks that jump, killed at random moments: whatever was acknowledged is there."""

import os
import random
import shutil
import signal
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from lookalike.search import keys
from lookalike.search.items import Identity, Item
from lookalike.search.log import LogEntry
from lookalike.search.stores import places
from tests.attacks.outcomes import Outcomes, right
from tests.fixtures.postgres_server import server

WRITERS, DIM = 3, 4
JUMPS = (0.0, 0.0, -3.15e8, 3.15e8, 1e-3, -1e9)  # seconds that a clock is wrong by


def writers_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    def trial(number: int) -> None:
        shutil.rmtree(place / "writers", ignore_errors=True)
        writers_trial(number, place / "writers")

    outcomes.attempt_each(first, count, trial)


def postgres_writers_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    with server() as running:
        outcomes.attempt_each(first, count, lambda number: writers_trial(number, f"{running.address}?index=w{number}"))


def writers_trial(number: int, place: Path | str) -> None:
    """Two rounds of writers; then the index is sound and holds every acknowledged item, once."""
    chance = random.Random(number)
    places.created(place, Identity(None, "ball", DIM)).close()
    acknowledged: dict[str, int] = {}
    for round_ in range(2):
        acknowledged |= written(chance, place, round_)
    with closing(places.opened(place)) as store:
        right(store.check() == [], f"the index is damaged: {store.check()[:1]}")
        items = {item.id: item.columns.get("value") for item in store.listed()}
        lost = [name for name, value in acknowledged.items() if items.get(name) != value]
        right(not lost, f"{len(lost)} acknowledged items are lost or others, such as {lost[:1]}")
        queries = np.eye(1, DIM, dtype=np.float32)
        found = store.search(queries, len(items) + 1)[0].hits if items else []
        right(sorted(hit.id for hit in found) == sorted(items), "a search does not find every item once")
        numbers = [entry.number for entry in store.log.entries()]
        right(numbers == sorted(set(numbers)), "the log is out of order")
        keys.every(store.log)


def written(chance: random.Random, place: Path | str, round_: int) -> dict[str, int]:
    """Start writers, kill each at its moment; what they acknowledged."""
    running = [writer(chance.randrange(1 << 30), place, f"{round_}-{name}") for name in range(WRITERS)]
    result: dict[str, int] = {}
    for child, pipe in chance.sample(running, len(running)):
        time.sleep(chance.uniform(0.02, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(pipe) as lines:
            for line in lines.read().split("\n")[:-1]:
                name, _, value = line.rpartition(" ")
                result[name] = int(value)
    return result


def writer(seed: int, place: Path | str, name: str) -> tuple[int, int]:
    """A process that writes until it is killed, and says what it was told is written."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    try:
        chance, clock = random.Random(seed), time.time
        time.time = lambda: max(0.0, clock() + chance.choice(JUMPS))
        store = places.opened(place)
        for number in range(10**6):
            value = chance.randrange(1000)
            item = Item(f"{name} {number}", columns={"value": value})
            store.put([item], np.full((1, DIM), value / 1000, np.float32))
            os.write(theirs, f"{item.id} {value}\n".encode())
            if number % 7 == 3:
                store.log.append(LogEntry(name, "written"))
    finally:
        os._exit(1)
