"""Ctrl-C: the first one finishes the current step and saves, a second one stops at once; or every one does."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """A function that returns whether a stop was requested (Ctrl-C, or a terminate signal)."""
    requested = False

    def request(*_: int | FrameType | None) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopping() -> Iterator[None]:
    """A terminate signal is a KeyboardInterrupt, as Ctrl-C is: for work that may stop anywhere."""

    def stop(*_: int | FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
