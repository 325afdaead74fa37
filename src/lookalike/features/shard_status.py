"""How far a folder of shards is, seen from outside."""

from dataclasses import dataclass

from lookalike.features.shards import Shards

RECENT = 50  # shards that tell how fast the work goes


@dataclass(frozen=True)
class Status:
    """The shards that are there, and what could not be read.

    images: of the whole data set.
    done: images of finished shards.
    shards: how many there will be.
    finished: how many are there.
    per_second: images a second while the last shards were made; None: too few are there to tell.
    unreadable: shard, name and reason of every image that could not be read.
    """

    images: int
    done: int
    shards: int
    finished: int
    per_second: float | None
    unreadable: tuple[tuple[int, str, str], ...]

    @property
    def seconds_left(self) -> float | None:
        """If the work goes on as fast as it went last."""
        return (self.images - self.done) / self.per_second if self.per_second else None


def status(shards: Shards) -> Status:
    """A look at the folder of `shards`; nothing is changed."""
    finished = shards.finished()
    return Status(
        shards.plan.images,
        shards.images(finished),
        shards.plan.shards,
        len(finished),
        _speed(shards, finished),
        tuple(shards.unreadable()),
    )


def _speed(shards: Shards, finished: set[int]) -> float | None:
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
