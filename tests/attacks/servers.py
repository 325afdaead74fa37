"""A PostgreSQL server killed while two clients write and eight read: what it acknowledged is there, all recover.

Before that, its disk is filled to the last page, once.
"""

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lookalike.search.items import Identity, Item
from lookalike.search.stores import Store, places
from lookalike.search.stores.postgres.address import addresses
from lookalike.search.stores.postgres.store import PostgresStore
from lookalike.search.things import ThingSearch
from tests.attacks.disks import fill_disk
from tests.attacks.outcomes import Outcomes, right
from tests.fixtures.postgres_server import Server, server
from tests.search.brute import Brute, same, same_things

DIM, ROWS, WRITERS, READERS = 16, 20, 2, 8


def servers_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    """One kill each trial, in the middle of writes and of searches."""
    with server(settings=("shared_buffers=32MB", "max_connections=60")) as running:
        outcomes.attempt("full disk", lambda: _fill_disk(running), 600)
        places.created(running.address, Identity(None, "none", DIM)).close()
        for number in outcomes.numbers(first, count):
            outcomes.attempt(f"{number}", lambda number=number: kill_once(running, number), 600)


def _fill_disk(running: Server) -> None:
    if not fill_disk(running):
        print("servers full disk: not tried, only root may mount a small disk", file=sys.stderr, flush=True)


def kill_once(running: Server, number: int) -> None:
    """Write and read, kill, start again, write and read on; then compare with what was acknowledged."""
    chance = random.Random(number)
    store, stop = PostgresStore(addresses(running.address)[0], patience=240), threading.Event()
    store.know({"sku": "text"})
    kept: list[set[str]] = [set() for _ in range(WRITERS)]
    answers, failures = [0] * READERS, []

    def guarded(work: Callable[[int], None], who: int) -> None:
        try:
            while not stop.is_set():
                work(who)
        except Exception as error:
            failures.append(error)

    def write(who: int) -> None:
        ids = [f"{number}-{who}-{len(kept[who])}-{row}" for row in range(ROWS)]
        store.put([Item(one, columns={"sku": f"{who}-{row // 3}"}) for row, one in enumerate(ids)], _vectors(ROWS))
        kept[who] |= set(ids)

    def read(who: int) -> None:
        _search(store)
        answers[who] += 1

    workers = [threading.Thread(target=guarded, args=(write, who)) for who in range(WRITERS)]
    workers += [threading.Thread(target=guarded, args=(read, who)) for who in range(READERS)]
    for worker in workers:
        worker.start()
    _until(lambda: all(kept) and all(answers), failures)
    time.sleep(chance.uniform(0, 0.3))  # also inside a commit
    running.kill()
    running.start()
    before = [len(part) for part in kept], list(answers)
    _until(
        lambda: (
            all(len(part) > had for part, had in zip(kept, before[0], strict=True))
            and all(now > had for now, had in zip(answers, before[1], strict=True))
        ),
        failures,
    )
    stop.set()
    for worker in workers:
        worker.join()
    right(not failures, f"a client did not recover: {failures[:1]}")
    _compare(store, set().union(*kept))
    store.close()


def _search(store: Store) -> None:
    query = _vectors(1)
    hits, things = store.search(query, 5)[0].hits, ThingSearch(store, "sku", query, 5).found().things
    for ordered in ([hit.similarity for hit in hits], [thing.score for thing in things]):
        right(ordered == sorted(ordered, reverse=True), "an answer is out of order")


def _until(holds: Callable[[], bool], failures: list[Exception], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not holds() and not failures:
        right(time.monotonic() < deadline, "the clients do not come on")
        time.sleep(0.02)


def _compare(store: Store, kept: set[str]) -> None:
    there = {item.id for item in store.listed()}
    right(kept <= there, f"{len(kept - there)} acknowledged items are gone")
    brute, query = Brute("none"), _vectors(1)
    for items, vectors in store.scan():
        brute.put(items, vectors)
    right(same(store.search(query, 7)[0], brute.search(query[0], 7)), "the answer is not that of brute force")
    things = ThingSearch(store, "sku", query, 7, 2).found()
    right(same_things(things, brute.things(query, 7, "sku", 2)), "the things are not those of brute force")
    right(store.check() == [], "the store is not sound")


def _vectors(count: int) -> np.ndarray:
    return np.random.default_rng().standard_normal((count, DIM)).astype(np.float32)
