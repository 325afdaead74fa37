"""Progress on stderr, so that results on stdout stay clean: a bar on a terminal, now and then a line elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 10.0  # seconds between two lines


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A callback `progress(done, total)` that shows how far `what` has come."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console.print, what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as drawing:
        task = drawing.add_task(what, total=None)
        yield lambda done, total: drawing.update(task, completed=done, total=total)


def _lines(write: Callable[..., None], what: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            write(f"{what}: {done:,} of {total:,}", markup=False, highlight=False, soft_wrap=True)

    return progress
