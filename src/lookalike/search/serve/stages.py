"""Work that is done for several requests at once: whatever has come in while the last batch was being worked on.

A stage is one thread. Nobody waits for a batch to fill up; under load batches grow by themselves.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass
class Stage(Generic[Job, Result]):
    """A thread that calls `work` with all jobs that wait, at most `most` of them; an exception is one job's result."""

    name: str
    work: Callable[[Sequence[Job]], Sequence[Result | Exception]]
    most: int
    waiting: "queue.SimpleQueue[tuple[Job, Future[Result]] | None]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    async def do(self, job: Job) -> Result:
        future: Future[Result] = Future()
        self.waiting.put((job, future))
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """End the thread after what is waiting."""
        self.waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            batch = [self.waiting.get()]
            with suppress(queue.Empty):
                while len(batch) < self.most and batch[-1] is not None:
                    batch.append(self.waiting.get_nowait())
            open_ = batch[-1] is not None
            pairs = [pair for pair in batch if pair is not None and pair[1].set_running_or_notify_cancel()]
            if pairs:
                self._finish([future for _, future in pairs], self._results([job for job, _ in pairs]))

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
