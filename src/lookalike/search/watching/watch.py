"""What is remembered of queries: numbers of every day, no pictures and no vectors; and what raises an alarm."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from lookalike.search.items import Answer, Vectors
from lookalike.search.watching.detector import RARE, Detector, PromiseDetector
from lookalike.search.watching.reference import BINS, SCORES, Reference

DAYS = 90  # that are kept
ASKED = 10_000  # answers that a mark may still speak of
VERDICTS = ("sure", "maybe", "unknown", "uncalibrated")
ALARMS = (*SCORES, "marks", "canaries")
COUNTS = ("watched", "sure_right", "sure_wrong", "canaries", "canaries_lost")
MOST = 1 << 53  # of anything that is counted


@dataclass
class Day:
    """The sketch of one day."""

    date: str
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    similarities: list[int] = field(default_factory=lambda: [0] * BINS)  # in each bin; calibration had a tenth in each
    cloud: float = 0.0  # the sum of that score
    watched: int = 0  # queries that were compared with the reference
    sure_right: int = 0  # marks of best hits that were called sure
    sure_wrong: int = 0
    canaries: int = 0  # pictures of items that were asked for
    canaries_lost: int = 0  # of them: not found as themselves
    alarms: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Day":
        """A sketch that was kept, maybe by a stranger; a TypeError or ValueError where it is none."""
        day = Day(**content)
        date.fromisoformat(day.date)
        numbers = [
            *day.verdicts.values(),
            *day.similarities,
            *day.alarms.values(),
            *(getattr(day, name) for name in COUNTS),
        ]
        known = day.verdicts.keys() <= set(VERDICTS) and day.alarms.keys() <= set(ALARMS)
        counted = all(type(number) is int and 0 <= number < MOST for number in numbers)
        if not (known and counted and len(day.similarities) == BINS and math.isfinite(day.cloud)):
            raise ValueError("no sketch of a day")
        return day

    @staticmethod
    def merged(days: Sequence["Day"]) -> "Day":
        """The same day at several workers."""
        total = Day(days[0].date)
        for day in days:
            for name in VERDICTS:
                total.verdicts[name] += day.verdicts.get(name, 0)
            total.similarities = [one + other for one, other in zip(total.similarities, day.similarities, strict=True)]
            for name in ("cloud", *COUNTS):
                setattr(total, name, getattr(total, name) + getattr(day, name))
            for name, number in day.alarms.items():
                total.alarms[name] = total.alarms.get(name, 0) + number
        return total


class Watch:
    """The queries of one worker, against a reference where there is one: that of the vectors of a `generation`."""

    def __init__(
        self,
        reference: Reference | None,
        target: float | None,
        generation: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.reference, self.generation = reference, generation
        self.detectors = {} if reference is None else {name: Detector(reference.blocks[name]) for name in SCORES}
        self.promise = None if target is None else PromiseDetector(target)
        self.days: OrderedDict[str, Day] = OrderedDict()
        self._clock, self._lock = clock, threading.Lock()
        self._sure: OrderedDict[str, tuple[str, str]] = OrderedDict()  # of a query: verdict and best hit

    def take_over(self, days: Sequence[Day]) -> None:
        """Continue from sketches that were kept."""
        self.days.update((day.date, day) for day in days)

    @property
    def today(self) -> Day:
        today = datetime.fromtimestamp(self._clock(), UTC).date().isoformat()
        if today not in self.days:
            self.days[today] = Day(today)
            while len(self.days) > DAYS:
                self.days.popitem(last=False)
        return self.days[today]

    def answered(self, query: str, vector: Vectors | None, answer: Answer) -> list[str]:
        """A query was answered, with a `vector` where it was one picture among all items; the alarms that it raises."""
        with self._lock:
            self.today.verdicts[answer.verdict] += 1
            if answer.hits:
                self._sure[query] = (answer.verdict, answer.hits[0].id)
                while len(self._sure) > ASKED:
                    self._sure.popitem(last=False)
            if self.reference is None or answer.generation != self.generation or vector is None or not answer.hits:
                return []
            similarity, cloud = answer.hits[0].similarity, float(self.reference.cloud(vector)[0])
            self.today.similarities[int(np.searchsorted(self.reference.edges, similarity))] += 1
            self.today.cloud += cloud
            self.today.watched += 1
            scores = {"similarity": similarity, "cloud": cloud}
            return self._alarms([name for name in SCORES if self.detectors[name].add(scores[name])])

    def marked(self, query: str, item: str, right: bool) -> list[str]:
        """The best hit of a query that was called sure is right, or not."""
        with self._lock:
            if self._sure.get(query) != ("sure", item):
                return []
            if right:
                self.today.sure_right += 1
            else:
                self.today.sure_wrong += 1
            return self._alarms(["marks"] if self.promise is not None and self.promise.add(right) else [])

    def canary(self, found: bool) -> list[str]:
        """A picture of an item was asked for, and found as itself or not."""
        with self._lock:
            self.today.canaries += 1
            self.today.canaries_lost += not found
            return self._alarms([] if found else ["canaries"])

    def _alarms(self, names: list[str]) -> list[str]:
        for name in names:
            self.today.alarms[name] = self.today.alarms.get(name, 0) + 1
        return names

    def evidence(self) -> dict[str, float]:
        """How close each alarm is; at 1 it is raised."""
        every: dict[str, Any] = dict(self.detectors) | ({} if self.promise is None else {"marks": self.promise})
        return {name: detector.evidence / RARE for name, detector in every.items()}

    def as_json(self) -> list[dict[str, Any]]:
        """The sketches, to be kept."""
        with self._lock:
            return [asdict(day) for day in self.days.values()]
