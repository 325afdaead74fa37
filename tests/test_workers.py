"""Pieces of work by this process, by several, and without Ray; tests/test_cluster.py has the cluster."""

import functools
import operator
import os
import sys
import types
from itertools import islice
from operator import length_hint

import pytest

from lookalike import workers
from lookalike.errors import UserError
from lookalike.workers import AHEAD, Part, Workers


def of(function, *given):
    """What `Workers` takes, of functions that another process can import."""
    return functools.partial(functools.partial, function, *given)


def test_results_come_in_the_order_of_the_pieces():
    assert list(Workers().map(of(operator.mul, 3), range(20))) == [3 * number for number in range(20)]


def test_several_processes_keep_the_order_have_some_pieces_at_a_time_and_the_first_mistake_stops_them():
    products = [(operator.mul, (3, number)) for number in range(20)]
    pieces = [(os.getpid, ()), (os.getpid, ()), *products, (Part.of, ("5/3",)), *[(os.getpid, ())] * 1000]
    rest = iter(pieces)
    results = Workers(2).map(of(_apply), rest)
    assert os.getpid() not in {next(results), next(results)}
    assert list(islice(results, 20)) == [3 * number for number in range(20)]
    assert len(pieces) - length_hint(rest) == 21 + AHEAD  # one was not taken yet when the last one came
    with pytest.raises(UserError, match="such as 3/40, not '5/3'"):
        next(results)


def test_a_killed_process_is_one_line():
    with pytest.raises(UserError, match=r"was killed, .*; run the same command again with fewer --workers"):
        list(Workers(2).map(of(os._exit), [9]))


class ManyProcessors:
    """As much of Ray as `Workers` calls, with as many processors as it is told; it works when it is asked."""

    def __init__(self, processors):
        self.processors, self.submitted, self.cancelled = processors, 0, 0

    def is_initialized(self):
        return True

    def put(self, content):
        return content

    def remote(self, **_):
        def made(function):
            def submit(*given):
                self.submitted += 1
                return functools.partial(function, *given)

            return types.SimpleNamespace(remote=submit)

        return made

    def get(self, task):
        return task() if isinstance(task, functools.partial) and task.func is not functools.partial else task

    def cancel(self, task, force):
        self.cancelled += force and task is not None

    def cluster_resources(self):
        return {"CPU": float(self.processors)}


def test_a_large_cluster_is_kept_busy_and_one_that_grows_gets_more(monkeypatch):
    cluster = ManyProcessors(1088)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    monkeypatch.setattr(workers, "REFRESH", 1e-9)
    results = Workers(on="HOST").map(of(operator.mul, 3), range(9000))
    assert (next(results), cluster.submitted) == (0, 2 * 1088)
    cluster.processors = 2000
    assert (next(results), cluster.submitted) == (3, 4000 + 1)
    cluster.processors = 0
    assert (next(results), cluster.submitted) == (6, 4000 + 1)
    results.close()
    assert cluster.cancelled == cluster.submitted - 2


def test_parts_divide_everything():
    parts = [Part.of(f"{number}/4").chosen(range(10)) for number in range(1, 5)]
    assert sorted(piece for part in parts for piece in part) == list(range(10))
    assert Part.of(None).chosen("ab") == ["a", "b"]
    for mistake in ("0/3", "4/3", "3", "a/b", "1/0", ""):
        with pytest.raises(UserError, match="such as 3/40"):
            Part.of(mistake)


def test_without_ray_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match="--on needs Ray: pip install "):
        list(Workers(on="ray://host:10001").map(of(abs), [1]))


def test_an_address_without_a_cluster_is_one_line():
    pytest.importorskip("ray", reason="the extra cluster is not installed")
    for address in ("ray://127.0.0.1:1", "127.0.0.1:1", "ray://127.0.0.1:99999"):
        with pytest.raises(UserError, match=f"no Ray cluster answers at {address} .*: start one with ray start --head"):
            list(Workers(on=address).map(of(abs), [1]))


def _apply(call):
    function, given = call
    return function(*given)
