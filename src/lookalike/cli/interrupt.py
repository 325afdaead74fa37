"""Ctrl-C asks politely: the step under way is finished and the state saved. A second one does not wait."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def polite() -> Iterator[Callable[[], bool]]:
    """A function that says whether somebody wants to stop (Ctrl-C, or a terminate signal)."""
    asked = False

    def ask(*_: int | FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
