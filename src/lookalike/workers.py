"""Many independent pieces of work: done by this process, by several of this machine, or by the nodes of a Ray cluster.

In all three the same function is called once per piece, and the pieces are cut by whoever made them: the results do not
depend on who works. Ray gives a piece whose node or process is gone to another one, and work to nodes that join. A
piece that was begun may therefore be done twice: what it writes must be whole or not there, and the same each time.
"""

import logging
import os
import pickle
import re
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import active_children, get_context
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any, TypeVar

from lookalike.errors import UserError, check, install
from lookalike.ordered_map import in_order_of

AHEAD = 256  # pieces that are handed out before they are due, at least: some take longer than others
EACH = 2  # of them for every processor
REFRESH = 1.0  # seconds in which a cluster is asked once how many it has: many pieces a second may end
PATIENCE = 10.0  # seconds until a cluster must answer
RETRIES = 20  # of a piece whose process or node was lost, before it is taken for the cause
Piece = TypeVar("Piece")
Result = TypeVar("Result")
Prepare = Callable[[], Callable[[Piece], Result]]


@dataclass(frozen=True)
class Workers:
    """Who works: `processes` of this machine (1: this one), or the Ray cluster at the address `on`.

    gpu: on Ray, every worker has a GPU of its own.

    >>> list(Workers().map(lambda: str.upper, ["a", "b"]))
    ['A', 'B']
    """

    processes: int = 1
    on: str | None = None
    gpu: bool = False

    def __post_init__(self) -> None:
        check(self.processes > 0, f"choose one worker or more, not {self.processes}")
        check(
            self.on is None or self.processes == 1,
            "--workers are processes of this machine, and Ray has its own: leave out --workers, or --on",
        )

    @property
    def elsewhere(self) -> bool:
        """Whether other processes than this one work."""
        return self.on is not None or self.processes > 1

    def map(self, prepare: Prepare[Piece, Result], pieces: Iterable[Piece]) -> Iterator[Result]:
        """The result of every piece, in their order; `prepare()` gives the function, once in every process.

        Where other processes work, both are sent to them by pickle. What is in hand when the caller stops is given up.
        """
        if self.on is not None:
            return _by_ray(self.on, self.gpu, prepare, pieces)
        if self.processes > 1:
            return _by_processes(self.processes, prepare, pieces)
        return map(prepare(), pieces)


@dataclass(frozen=True)
class Part:
    """One of several equal parts of the pieces: every `count`-th, beginning with the `number`-th.

    >>> Part.of("2/3").chosen(range(7))
    [1, 4]
    """

    number: int = 1
    count: int = 1

    @staticmethod
    def of(text: str | None) -> "Part":
        """The part that a text such as 3/40 names; None: everything."""
        if text is None:
            return Part()
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        check(0 < number <= count, f"a part is a number and how many there are, such as 3/40, not {text!r}")
        return Part(number, count)

    def chosen(self, pieces: Sequence[Piece]) -> list[Piece]:
        return list(pieces[self.number - 1 :: self.count])


def _by_processes(count: int, prepare: Prepare[Piece, Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    others = set(active_children())
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "work"
        source.write_bytes(pickle.dumps(prepare))
        threads = max(1, (os.cpu_count() or 1) // count)
        pool = ProcessPoolExecutor(count, get_context("spawn"), _begin, (threads,))
        try:
            submit: Callable[[Piece], Future[Result]] = lambda piece: pool.submit(_piece, source, piece)  # noqa: E731
            yield from in_order_of(pieces, submit, Future.result, Future.cancel, lambda: max(AHEAD, EACH * count))
        except BrokenProcessPool:
            raise UserError(
                "a worker process was killed, perhaps because memory ran out: finished work is kept; run the same "
                "command again with fewer --workers"
            ) from None
        finally:
            for process in set(active_children()) - others:
                process.kill()
            pool.shutdown(cancel_futures=True)


def _begin(threads: int) -> None:
    """A process of this machine: it has its share of the processors, and its owner answers Ctrl-C."""
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)


def _by_ray(address: str, gpu: bool, prepare: Prepare[Piece, Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    with _connected(address) as ray:
        source = [ray.put(prepare)]  # within a list it stays a reference, and every process fetches it once
        run = ray.remote(num_cpus=1, num_gpus=int(gpu), max_retries=RETRIES)(_piece)
        yield from in_order_of(
            pieces,
            submit=lambda piece: run.remote(source, piece),
            result=partial(_fetched, ray),
            cancel=partial(ray.cancel, force=True),
            room=partial(_room, ray),
        )


def _room(ray: ModuleType) -> int:
    """How many pieces the cluster is handed at a time; nodes come and go, so it is asked again and again."""
    return max(AHEAD, EACH * _processors(ray, int(monotonic() // REFRESH)))


@lru_cache(maxsize=1)
def _processors(ray: ModuleType, _: int) -> int:
    return int(ray.cluster_resources().get("CPU", 0))


def _fetched(ray: ModuleType, task: Any) -> Any:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, UserError):
            raise cause from None
        check(
            not isinstance(cause, ImportError),
            f"the nodes of the cluster cannot import what they need ({cause}): install lookalike there as it is here",
        )
        raise
    except ray.exceptions.RayError as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"Ray could not finish part of the work ({reason}): finished work is kept; run the same command again"
        ) from error


@contextmanager
def _connected(address: str) -> Iterator[ModuleType]:
    try:
        import ray
    except ImportError:
        raise UserError(f"--on needs Ray: {install('cluster')}") from None
    if ray.is_initialized():  # by the program that calls us
        yield ray
        return
    _check_answer(address)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(_no_answer(address, reason)) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answer(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?([^/]+):(\d{1,5})", address)
    if found is None:
        return  # Ray knows other words, such as auto
    try:
        socket.create_connection((found[1], int(found[2])), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise UserError(_no_answer(address, getattr(error, "strerror", None) or str(error))) from None


def _no_answer(address: str, reason: str) -> str:
    return f"no Ray cluster answers at {address} ({reason}): start one with ray start --head, and give ray://HOST:10001"


def _piece(source: Path | list[Any], piece: Any) -> Any:
    """One piece, in a process that works for another."""
    return _prepared(source if isinstance(source, Path) else source[0])(piece)


@lru_cache(maxsize=1)
def _prepared(source: Any) -> Callable[[Any], Any]:
    """The function, prepared once in this process."""
    if isinstance(source, Path):
        prepare = pickle.loads(source.read_bytes())
    else:
        import ray

        prepare = ray.get(source)
    ready: Callable[[Any], Any] = prepare()
    return ready
