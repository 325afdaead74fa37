"""A function over many rows on a few threads, with the results in order: decoding releases the GIL."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Result = TypeVar("Result")
AHEAD = 64  # results in flight: enough to keep the threads busy, few enough to hold in memory


def in_order(function: Callable[[int], Result], count: int, threads: int, ahead: int = AHEAD) -> Iterator[Result]:
    """`function(0)`, `function(1)`, … `function(count - 1)`, of which up to `ahead` are computed in advance.

    >>> list(in_order(lambda row: row * row, 4, threads=2))
    [0, 1, 4, 9]
    """
    rows = iter(range(count))
    with ThreadPoolExecutor(max(1, threads)) as pool:
        flight = deque(pool.submit(function, row) for row in islice(rows, ahead))
        try:
            while flight:
                yield flight.popleft().result()
                flight.extend(pool.submit(function, row) for row in islice(rows, 1))
        finally:
            for waiting in flight:
                waiting.cancel()
