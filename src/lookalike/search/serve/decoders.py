"""Threads that decode pictures: two for ordinary ones, one for large ones, so that few bytes cannot fill the memory.

A large picture takes hundreds of megabytes and seconds. They wait for each other, and nobody else waits for them.
"""

import asyncio
import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

from lookalike.search.serve.pictures import ALONE, Upload, check_header
from lookalike.search.serve.refusals import busy

ORDINARY = 2
QUEUE = 16  # large pictures that are decoded or wait: as many as one search may bring
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Decoders:
    """Work on pictures of at most so many `pixels`, in threads."""

    def __init__(self, pixels: int) -> None:
        self._pixels = pixels
        self._ordinary = ThreadPoolExecutor(ORDINARY, "decode")
        self._large = ThreadPoolExecutor(1, "decode large")
        self._queue = 0

    async def do(
        self,
        work: Callable[Concatenate[Upload, Arguments], Result],
        upload: Upload,
        *arguments: Arguments.args,
        **settings: Arguments.kwargs,
    ) -> Result:
        """The result of `work` on a picture whose header is sound."""
        loop = asyncio.get_running_loop()

        def job() -> Result:
            return work(upload, *arguments, **settings)

        def large_job() -> Result:
            try:
                with ALONE:
                    return job()
            finally:
                _give_back()

        if not await loop.run_in_executor(self._ordinary, check_header, upload.content, self._pixels):
            return await loop.run_in_executor(self._ordinary, job)
        if self._queue >= QUEUE:
            raise busy(5)
        self._queue += 1
        try:
            return await loop.run_in_executor(self._large, large_job)
        finally:
            self._queue -= 1

    def stop(self) -> None:
        """End the threads after what they have begun."""
        for threads in (self._ordinary, self._large):
            threads.shutdown(cancel_futures=True)


def _give_back() -> None:
    """Free memory goes back to the system: glibc by itself keeps what a large picture took."""
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
