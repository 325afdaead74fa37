"""How far the workers on a folder of shards are, seen from outside."""

import os
import time
from dataclasses import dataclass

from lookalike.features.claims import facts_of, read
from lookalike.features.shards import Shards

RECENT = 50  # shards that tell how fast the work goes


@dataclass(frozen=True)
class AtWork:
    """A worker and its shard."""

    shard: int
    host: str
    process: int
    images: int  # done of the shard, when it last said so
    silent: float  # seconds since its last sign of life, by the clocks of two machines


@dataclass(frozen=True)
class Status:
    """The shards that are there, who is at work on others, and what could not be read.

    images: of the whole data set.
    done: images of finished shards.
    shards: how many there will be.
    finished: how many are there.
    at_work: the workers, each with its shard.
    per_second: images a second while the last shards were made; None: too few are there to tell.
    unreadable: shard, name and reason of every image that could not be read.
    """

    images: int
    done: int
    shards: int
    finished: int
    at_work: tuple[AtWork, ...]
    per_second: float | None
    unreadable: tuple[tuple[int, str, str], ...]

    @property
    def seconds_left(self) -> float | None:
        if not self.at_work or not self.per_second:
            return None
        return (self.images - self.done) / self.per_second


def status(shards: Shards) -> Status:
    """A look at the folder of `shards`; nothing is changed."""
    finished = shards.finished()
    return Status(
        shards.plan.images,
        shards.images(finished),
        shards.plan.shards,
        len(finished),
        tuple(_at_work(shards, finished)),
        _speed(shards, finished),
        tuple(shards.unreadable()),
    )


def _at_work(shards: Shards, finished: set[int]) -> list[AtWork]:
    workers = []
    for name in sorted(os.listdir(shards.claims)) if shards.claims.is_dir() else []:
        facts = facts_of(read(shards.claims, name) or "")
        if not name.isdecimal() or int(name) in finished or "process" not in facts:
            continue
        try:
            since = time.time() - (shards.claims / name).stat().st_mtime
        except OSError:  # finished in this moment
            continue
        workers.append(AtWork(int(name), facts["host"], facts["process"], facts["done"], max(0.0, since)))
    return workers


def _speed(shards: Shards, finished: set[int]) -> float | None:
    """Images a second while the last shards were made."""
    times = []
    for number in finished:
        try:
            times.append((shards.path(number).stat().st_mtime, number))
        except OSError:  # deleted, to be made again
            continue
    recent = sorted(times)[-RECENT:]
    if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
        return None
    return shards.images(number for _, number in recent[1:]) / (recent[-1][0] - recent[0][0])
