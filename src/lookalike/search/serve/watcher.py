"""What one worker sees of queries, kept with the index beside what the other workers see.

Now and then a server also searches for canaries: pictures of some items, which must be found as they were.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
from jaxtyping import Float32

from lookalike.errors import UserError
from lookalike.geometry import Geometry
from lookalike.image_files import UnreadableError
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.index import Index
from lookalike.search.items import Answer, Item, Vectors
from lookalike.search.pictures import content_of
from lookalike.search.serve.schema import DayForm, WatchForm
from lookalike.search.stores import StorageError, Store
from lookalike.search.watching.detector import RARE
from lookalike.search.watching.reference import BLOCK, Reference
from lookalike.search.watching.watch import DAYS, Day, Watch

DOCUMENT = "watch"
PROMISE = (
    f"Each of the alarms for similarity and cloud is false at most once in {RARE * BLOCK:,} ordinary queries on "
    "average, whenever one looks, if these come in runs no more alike than the pictures of one class."
)
PICTURES = 5  # that a server searches for at a time
LOOKED = 50  # items among which they are sought: many have no picture that can be read
NEAR = 0.01  # of its length: so far may a vector be from the one that was kept
ROUNDING = 1e-5  # of the squares of the lengths: so far may a similarity be below what it is


class Watcher:
    """The watch of one of several workers; `keeps`: whether it may write into the index."""

    def __init__(self, index: Index, worker: int, workers: int, keeps: bool) -> None:
        self.index, self._name, self._keeps = index, f"{DOCUMENT} {worker}", keeps
        self._others = [f"{DOCUMENT} {other}" for other in range(workers) if other != worker]
        self._about: tuple[object, ...] = ()  # what the watch was made for
        self._kept = ""
        self.watch = Watch(None, None)
        try:
            self.watch.take_over(_days(index, self._name))
            self.refresh()
        except UserError:  # it can still answer
            pass

    def refresh(self) -> None:
        """Compare with another reference after a new calibration, and only vectors of the model that it is about."""
        identity = self.index.identity  # before the reference, which goes before its vectors do
        about = (identity, *map(self.index.store.documents.read, ("calibration", "reference")))
        if about != self._about:
            calibration, reference = self._measured()
            fits = reference is not None and len(reference.centre) == identity.dim
            target = None if calibration is None else calibration.target
            new = Watch(reference if fits else None, target, identity.generation)
            new.days = self.watch.days
            self.watch, self._about = new, about

    def _measured(self) -> tuple[Calibration | None, Reference | None]:
        """What calibration has kept; nothing of one that is damaged."""
        try:
            return self.index.calibration, self.index.reference
        except StorageError:
            raise
        except UserError:
            return None, None

    def answered(self, query: str, vector: Vectors | None, answer: Answer) -> None:
        self._tell(self.watch.answered(query, vector, answer))

    def marked(self, query: str, item: str, right: bool) -> None:
        self._tell(self.watch.marked(query, item, right))

    def canary(self, found: bool) -> None:
        self._tell(self.watch.canary(found))

    def _tell(self, alarms: list[str]) -> None:
        for name in alarms:
            line = {"time": round(time.time(), 3), "alarm": name, "see": "GET /v1/watch"}
            sys.stderr.write(json.dumps(line) + "\n")

    def keep(self) -> None:
        """Write down what was seen, unless nothing was."""
        text = json.dumps(self.watch.as_json())
        if self._keeps and text != self._kept and text != "[]":
            self.index.store.documents.write(self._name, text)
            self._kept = text

    def days(self) -> list[Day]:
        """Of all workers, the oldest first."""
        every: dict[str, list[Day]] = defaultdict(list)
        for days in [list(self.watch.days.values()), *(_days(self.index, name) for name in self._others)]:
            for day in days:
                every[day.date].append(day)
        return [Day.merged(every[date]) for date in sorted(every)[-DAYS:]]

    def form(self) -> WatchForm:
        days = [
            DayForm(**asdict(day) | {"cloud": day.cloud / day.watched if day.watched else None}) for day in self.days()
        ]
        known = self.watch.reference is not None
        return WatchForm(reference=known, evidence=self.watch.evidence(), promise=PROMISE, days=days)

    def text(self) -> str:
        """For Prometheus: what was seen today, and how close the alarms of this worker are."""
        day = (self.days() or [Day("")])[-1]
        found = {"yes": day.canaries - day.canaries_lost, "no": day.canaries_lost}
        marks = {"yes": day.sure_right, "no": day.sure_wrong}
        gauges: dict[str, tuple[str, str, Mapping[str, float]]] = {
            "lookalike_answers_today": ("Answers by verdict.", "verdict", day.verdicts),
            "lookalike_alarms_today": ("Alarms of the watch.", "of", day.alarms),
            "lookalike_alarm_evidence": ("How close each alarm is; at 1 it is raised.", "of", self.watch.evidence()),
            "lookalike_marks_of_sure_today": ("Marks of answers called sure.", "right", marks),
            "lookalike_canaries_today": ("Pictures of items searched for.", "found", found),
        }
        lines = []
        for name, (meaning, label, values) in gauges.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
            lines += [f'{name}{{{label}="{key}"}} {value:g}' for key, value in values.items()]
        return "\n".join(lines) + "\n"


def _days(index: Index, name: str) -> list[Day]:
    """Sketches that were kept; what is not one is passed over."""
    try:
        return [Day.from_json(day) for day in json.loads(index.store.documents.read(name) or "[]")][-DAYS:]
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError):
        return []


def canaries(store: Store) -> list[tuple[Item, bytes]]:
    """Some items from all over the index with the files of their pictures."""
    found = []
    for item in store.sample(LOOKED):
        try:
            content = None if item.mapped else content_of(store, item)
        except UnreadableError:
            continue
        if content is not None:
            found.append((item, content))
        if len(found) == PICTURES:
            break
    return found


def as_it_was(
    answer: Answer, vector: Float32[np.ndarray, " d"], own: Float32[np.ndarray, " d"], geometry: Geometry
) -> bool:
    """Whether a picture still has the vector `own` that its item was given, and the best hit is no farther than that.

    An approximate answer may miss it.
    """
    if float(np.linalg.norm(vector - own)) > NEAR * max(float(np.linalg.norm(own)), 1e-12):
        return False
    query, kept = vector.astype(np.float64), own.astype(np.float64)
    similarity = query @ kept if geometry == "sphere" else -np.square(query - kept).sum() / 2
    least = similarity - ROUNDING * (query @ query + kept @ kept)
    return not answer.certified or bool(answer.hits and answer.hits[0].similarity >= least)
