"""Work that is done for several requests at once: whatever has come in while the last batch was being worked on.

A stage is one thread. Nobody waits for a batch to fill up; under load batches grow by themselves. A batch that takes
too long is given up: whoever waits for it is told, its thread is left behind, and another one takes what comes next.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


LOST = 3  # threads that are left behind at a time


class SlowError(Exception):
    """A job was given up: it was worked on for too long."""


@dataclass
class _Turn:
    """The time in which one thread is the stage's; `since` when it works on its batch."""

    since: float | None = None


@dataclass
class Stage(Generic[Job, Result]):
    """A thread that calls `work` with all jobs that wait, at most `most` of them; an exception is one job's result.

    Nobody waits longer than `limit` seconds: a job that was being worked on is a SlowError, one that was not a
    TimeoutError.
    """

    name: str
    work: Callable[[Sequence[Job]], Sequence[Result | Exception]]
    most: int
    limit: float | None = None
    waiting: "queue.SimpleQueue[tuple[Job, Future[Result]] | None]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._lost: list[threading.Thread] = []
        self._begin()

    def _begin(self) -> None:
        self._turn = _Turn()
        self._thread = threading.Thread(target=self._run, args=(self._turn,), name=self.name, daemon=True)
        self._thread.start()

    async def do(self, job: Job) -> Result:
        if self._left() == 0 and not self.hangs:
            self._lost.append(self._thread)
            self._begin()
        future: Future[Result] = Future()
        self.waiting.put((job, future))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limit)
        except TimeoutError:
            if future.running():
                raise SlowError from None
            raise

    @property
    def hangs(self) -> bool:
        """Whether so many threads are left behind that no further one may be."""
        self._lost = [thread for thread in self._lost if thread.is_alive()]
        return len(self._lost) >= LOST

    def stop(self) -> bool:
        """End the thread after what is waiting; whether all have ended, those left behind too."""
        for _ in range(1 + len(self._lost)):  # one that was left behind a moment ago may take one more batch
            self.waiting.put(None)
        self._thread.join(self._left())
        return not any(thread.is_alive() for thread in (self._thread, *self._lost))

    def _left(self) -> float | None:
        """Seconds that the batch may still take."""
        since = self._turn.since
        if self.limit is None or since is None:
            return self.limit
        return max(0.0, since + self.limit - time.monotonic())

    def _run(self, turn: _Turn) -> None:
        open_ = True
        while open_ and self._turn is turn:
            batch = [self.waiting.get()]
            with suppress(queue.Empty):
                while len(batch) < self.most and batch[-1] is not None:
                    batch.append(self.waiting.get_nowait())
            open_ = batch[-1] is not None
            pairs = [pair for pair in batch if pair is not None and pair[1].set_running_or_notify_cancel()]
            if pairs:
                turn.since = time.monotonic()
                results = self._results([job for job, _ in pairs])
                turn.since = None
                self._finish([future for _, future in pairs], results)

    def _results(self, jobs: Sequence[Job]) -> Sequence[Result | Exception]:
        try:
            return self.work(jobs)
        except Exception as error:  # of the whole batch: every one who waits must hear of it
            return [error] * len(jobs)

    def _finish(self, futures: Sequence["Future[Result]"], results: Sequence[Result | Exception]) -> None:
        for future, result in zip(futures, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
