"""Results in the order of their pieces, with a bounded number under way: rows on threads (decoding releases the GIL),
and pieces of any kind elsewhere."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Piece = TypeVar("Piece")
Task = TypeVar("Task")
Result = TypeVar("Result")
AHEAD = 64  # results in flight: enough to keep the threads busy, few enough to hold in memory


def in_order(function: Callable[[int], Result], count: int, threads: int, ahead: int = AHEAD) -> Iterator[Result]:
    """`function(0)`, `function(1)`, … `function(count - 1)`, of which up to `ahead` are computed in advance.

    >>> list(in_order(lambda row: row * row, 4, threads=2))
    [0, 1, 4, 9]
    """
    with ThreadPoolExecutor(max(1, threads)) as pool:
        submit: Callable[[int], Future[Result]] = lambda row: pool.submit(function, row)  # noqa: E731
        yield from in_order_of(range(count), submit, Future.result, Future.cancel, lambda: ahead)


def in_order_of(
    pieces: Iterable[Piece],
    submit: Callable[[Piece], Task],
    result: Callable[[Task], Result],
    cancel: Callable[[Task], object],
    room: Callable[[], int],
) -> Iterator[Result]:
    """The result of every piece, in their order; as many are submitted and not yet taken as there is `room` for."""
    rest, flight = iter(pieces), deque[Task]()
    try:
        while True:
            flight.extend(submit(piece) for piece in islice(rest, max(0, room() - len(flight))))
            if not flight:
                return
            yield result(flight[0])
            flight.popleft()
    finally:
        for task in flight:
            cancel(task)
