"""Progress on stderr, so that results on stdout stay clean; nothing at all when stderr is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A callback `progress(done, total)` that draws a bar called `what`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as drawing:
        task = drawing.add_task(what, total=None)
        yield lambda done, total: drawing.update(task, completed=done, total=total)
