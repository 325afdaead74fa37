"""Counters and histograms of all workers, as Prometheus reads them.

Every worker has a row of numbers in a file that all of them map; a worker that is started again goes on with its row.
prometheus_client was tried: it keeps two files for every process there ever was (20 restarts leave 40), and it counts
nothing, without a word, where it was imported before an environment variable was set.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROUTES = (
    "/",
    "/docs",
    "/openapi.json",
    "/static",
    "/v1/feedback",
    "/v1/health",
    "/v1/index",
    "/v1/items",
    "/v1/items/thumbnail",
    "/v1/labels",
    "/v1/log",
    "/v1/metrics",
    "/v1/search",
    "/v1/watch",
    "/v1/why",
    "/watch",
    "other",
)
STATUSES = (200, 201, 204, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 499, 500, 503, 504)
STAGES = ("decode", "network", "search", "request")
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
_REQUESTS = len(ROUTES) * len(STATUSES)
_STAGE = len(BOUNDS) + 2  # one bucket beyond the last bound, and the sum
SIZE = _REQUESTS + len(STAGES) * _STAGE + 1


class Meters:
    """The numbers of one worker, and the sums over all."""

    def __init__(self, file: Path | None = None, worker: int = 0) -> None:
        self._every = np.zeros((1, SIZE)) if file is None else np.memmap(file, np.float64, "r+").reshape(-1, SIZE)
        self.worker, self._own = worker, self._every[worker]
        self._own[-1] = 0

    @staticmethod
    def make(file: Path, workers: int) -> None:
        np.zeros((workers, SIZE)).tofile(file)

    def request(self, route: str, status: int, seconds: float) -> None:
        route = route if route in ROUTES else "other"
        status = status if status in STATUSES else 500 if status >= 500 else 400
        self._own[ROUTES.index(route) * len(STATUSES) + STATUSES.index(status)] += 1
        if route == "/v1/search":
            self._observe("request", seconds)

    def stages(self, milliseconds: Mapping[str, float]) -> None:
        for name, value in milliseconds.items():
            if value:
                self._observe(name, value / 1e3)

    def waiting(self, number: int) -> None:
        self._own[-1] = number

    def _observe(self, stage: str, seconds: float) -> None:
        first = _REQUESTS + STAGES.index(stage) * _STAGE
        self._own[first + int(np.searchsorted(BOUNDS, seconds))] += 1
        self._own[first + _STAGE - 1] += seconds

    def text(self, items: int) -> str:
        """The Prometheus text format, version 0.0.4."""
        total = self._every.sum(0)
        lines = [
            "# HELP lookalike_requests_total Requests answered, by route and status.",
            "# TYPE lookalike_requests_total counter",
        ]
        for row, route in enumerate(ROUTES):
            for column, status in enumerate(STATUSES):
                if number := total[row * len(STATUSES) + column]:
                    lines.append(f'lookalike_requests_total{{route="{route}",status="{status}"}} {number:.0f}')
        lines += self._histogram(total)
        for name, meaning, value in (
            ("lookalike_waiting", "Searches and writes that are being worked on.", total[-1]),
            ("lookalike_items", "Items in the index.", items),
            ("lookalike_workers", "Worker processes.", len(self._every)),
        ):
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {value:.0f}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, total: np.ndarray) -> list[str]:
        name = "lookalike_stage_seconds"
        lines = [
            f"# HELP {name} Time of a search in each stage, waiting included; request is all of it.",
            f"# TYPE {name} histogram",
        ]
        for place, stage in enumerate(STAGES):
            first = _REQUESTS + place * _STAGE
            counts = total[first : first + len(BOUNDS) + 1].cumsum()
            lines += [
                f'{name}_bucket{{stage="{stage}",le="{bound:g}"}} {number:.0f}'
                for bound, number in zip((*BOUNDS, np.inf), counts, strict=True)
            ]
            lines += [
                f'{name}_sum{{stage="{stage}"}} {total[first + _STAGE - 1]:.6f}',
                f'{name}_count{{stage="{stage}"}} {counts[-1]:.0f}',
            ]
        return [line.replace('le="inf"', 'le="+Inf"') for line in lines]


@dataclass
class Times:
    """Milliseconds of one request in each stage."""

    of: dict[str, float] = field(default_factory=lambda: {"decode": 0.0, "network": 0.0, "search": 0.0})
    clock: Callable[[], float] = time.perf_counter

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        began = self.clock()
        try:
            yield
        finally:
            self.of[stage] += 1e3 * (self.clock() - began)
