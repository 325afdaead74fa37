"""Processes of a server, without starting any: what each tells the other, and who is started again."""

import signal
import socket
import threading
from collections import deque
from contextlib import nullcontext
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest
import torch
import uvicorn

from lookalike.errors import EXIT_CODE, UserError
from lookalike.search.serve import app as application
from lookalike.search.serve import server
from lookalike.search.serve.connections import Patient
from lookalike.search.serve.meters import SIZE
from lookalike.search.serve.server import ENDS, GRACE, PAUSE, READY, Workers, _Running, _worker, answer, bound, run
from lookalike.search.serve.settings import Settings


def test_the_socket_goes_to_workers_and_is_taken_again_at_once(tmp_path):
    with bound(Settings(tmp_path, port=0)) as listener:
        assert listener.get_inheritable()
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        assert listener.family == socket.AF_INET
        port = listener.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1 port {port} .*choose another with --port"):
            bound(Settings(tmp_path, port=port))
    with pytest.raises(UserError, match="port 70000"):
        bound(Settings(tmp_path, port=70_000))


def test_one_worker_answers_itself_and_several_are_kept(tmp_path, monkeypatch):
    calls, addresses = [], []

    class Kept:
        def __init__(self, settings, listener, meters):
            calls.append((settings.workers, meters.stat().st_size))
            listener.close()

        def keep(self):
            calls.append("kept")

    def one(settings, listener, *rest):
        calls.append((settings.workers, rest))
        listener.close()

    monkeypatch.setattr(server, "answer", one)
    monkeypatch.setattr(server, "Workers", Kept)
    run(Settings(tmp_path, port=0), addresses.append)
    run(Settings(tmp_path, port=0, workers=3), addresses.append)
    assert calls == [(1, (None, 0)), (3, 3 * SIZE * 8), "kept"]
    assert all(address.startswith("http://127.0.0.1:") and not address.endswith(":0") for address in addresses)


@pytest.fixture
def listener():
    with socket.socket() as unbound:
        yield unbound


@pytest.fixture
def answers(monkeypatch, tmp_path, listener):
    """Call `answer` with a uvicorn that only notes what it would run; the signals are as before afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    noted = SimpleNamespace(failure=None)

    class Quiet:
        def __init__(self, config):
            self.config, self.should_exit = config, False
            noted.server = self

        def run(self, sockets):
            noted.sockets = sockets
            if noted.failure is not None:
                noted.stop(noted.failure)

    def create(settings, meters, ready, stop):
        noted.settings, noted.meters, noted.ready, noted.stop = settings, meters, ready, stop
        return lambda: None

    monkeypatch.setattr(uvicorn, "Server", Quiet)
    monkeypatch.setattr(application, "create_app", create)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: setattr(noted, "threads", number))
    noted.call = lambda: answer(Settings(tmp_path, silence=1.5, uploads=9), listener, None, 0)
    yield noted
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_process_answers_with_the_limits_of_its_settings(answers, listener):
    answers.call()
    config = answers.server.config
    assert (config.http.func, config.http.args) == (Patient, (answers.settings,))
    assert (config.limit_concurrency, config.timeout_graceful_shutdown) == (None, GRACE)  # refused in the one form
    assert (config.access_log, config.server_header, config.proxy_headers) == (False, False, False)
    assert (answers.sockets, answers.threads, answers.server.should_exit) == ([listener], 1, False)
    with pytest.raises(SystemExit) as end:
        signal.raise_signal(signal.SIGTERM)
    assert end.value.code == 0


def test_a_process_that_can_never_answer_ends_with_the_reason(answers):
    answers.failure = UserError("the model is lost")
    with pytest.raises(UserError, match="the model is lost"):
        answers.call()
    assert answers.server.should_exit


def test_a_worker_tells_that_it_is_ready_or_why_not(monkeypatch, tmp_path, listener):
    def words_of(work, end=None):
        """What a worker says to its parent; it stops when the parent has gone."""
        killed, words = threading.Event(), []
        kill = SimpleNamespace(getpid=lambda: 7, kill=lambda *_: killed.set())
        monkeypatch.setattr(server, "os", kill)
        monkeypatch.setattr(server, "answer", work)
        theirs, own = Pipe()
        with pytest.raises(end) if end else nullcontext() as raised:
            _worker(Settings("shop"), listener, tmp_path, 0, theirs)
        while own.poll():
            words.append(own.recv())
        assert not killed.is_set()
        own.close()
        assert killed.wait(20)
        theirs.close()
        assert end is not SystemExit or raised.value.code == EXIT_CODE
        return words

    def ready(_settings, _listener, _meters, _number, say):
        say()

    def mistaken(*_):
        raise UserError("the model is lost")

    def broken(*_):
        raise ZeroDivisionError

    assert words_of(ready) == [READY]
    assert words_of(mistaken, SystemExit) == ["the model is lost"]
    assert words_of(broken, ZeroDivisionError) == ["ZeroDivisionError"]


def test_a_parent_remembers_that_a_worker_was_ready():
    theirs, own = Pipe()
    worker = _Running(None, own, 0.0)
    worker.hear()
    assert (worker.ready, worker.reason) == (False, "")
    theirs.send("a reason")
    worker.hear()
    assert (worker.ready, worker.reason) == (False, "a reason")
    theirs.send(READY)
    theirs.send("why it ended")
    worker.hear()
    assert (worker.ready, worker.reason) == (True, "why it ended")
    theirs.close()
    worker.hear()
    assert worker.ready
    own.close()


class Process:
    """A process that never was: it ends when a test says so, or when it is told to (unless it is stubborn)."""

    exitcode, stubborn = 3, False

    def __init__(self, **settings):
        self.settings, self.alive, self.words = settings, False, []

    def start(self):
        self.alive = True

    def is_alive(self):
        return self.alive

    def join(self, seconds=None):
        self.words.append("join" if seconds is None else "wait")

    def terminate(self):
        self.words.append("terminate")
        self.alive = self.stubborn

    def kill(self):
        self.words.append("kill")
        self.alive = False


class Stop:
    """An event that is set after so many waits; `waits` are their seconds."""

    def __init__(self, after):
        self.left, self.waits, self.act = after, [], deque()

    def wait(self, seconds):
        self.waits.append(seconds)
        if self.act:
            self.act.popleft()()
        self.left -= 1
        return self.left < 0

    def set(self):
        self.left = 0


@pytest.fixture
def workers(tmp_path, listener):
    kept = Workers(Settings(tmp_path, workers=2), listener, tmp_path / "meters")
    kept._context = SimpleNamespace(Pipe=Pipe, Process=Process)
    kept._stop = Stop(3)
    return kept


def test_a_worker_is_started_with_what_it_needs(workers):
    worker = workers._started(1)
    settings = worker.process.settings
    assert settings["daemon"] is False  # it has threads, and ends by itself
    assert settings["target"] is _worker
    assert settings["args"][:4] == (workers.settings, workers.listener, workers.meters, 1)
    assert (worker.process.alive, worker.ready) == (True, False)
    assert settings["args"][4].closed
    worker.pipe.close()


def test_a_worker_that_dies_is_replaced_and_all_are_ended(workers, capsys):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    dead = []

    def die():
        dead.append(workers._running[1].process)
        workers._running[0].ready = True
        dead[0].alive = False

    workers._stop.act.append(die)
    workers.keep()
    assert capsys.readouterr().err == "worker 1 ended with code 3 and is started again\n"
    assert dead[0].words == ["join"]
    assert workers._running[1].process is not dead[0]
    assert [worker.process.words for worker in workers._running] == [["terminate", "wait"]] * 2
    assert all(worker.pipe.closed for worker in workers._running)
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all_workers(workers, number):
    workers._stop = Stop(1000)
    workers._stop.act.append(lambda: signal.raise_signal(number))
    workers.keep()
    assert len(workers._stop.waits) == 1
    assert not any(worker.process.alive for worker in workers._running)


def test_a_worker_that_dies_at_once_is_started_after_a_pause(workers, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for age, waits in ((PAUSE / 2, [PAUSE]), (PAUSE * 2, [])):
        workers._stop = Stop(9)
        worker = workers._started(0)
        workers._running = [worker]
        worker.ready, worker.began = True, clock[0] - age
        workers._replace(0, worker)
        assert workers._stop.waits == waits
        workers._running[0].pipe.close()


def test_workers_of_whom_none_was_ever_ready_are_given_up(workers):
    workers._running = [workers._started(number) for number in range(2)]
    for _ in range(ENDS - 1):
        workers._replace(0, workers._running[0])
    last = workers._running[0]
    last.reason = "the model is lost"
    with pytest.raises(UserError, match=f"{ENDS} workers in a row ended before they were ready: the model is lost"):
        workers._replace(0, last)
    workers._ends = ENDS - 1
    workers._running[0] = workers._started(0)
    with pytest.raises(UserError, match="the last one ended with code 3"):
        workers._replace(0, workers._running[0])
    workers._running[1].ready = True
    workers._running[0] = workers._started(0)
    workers._replace(0, workers._running[0])  # one was ready: the next may be, too
    assert workers._ends == 0
    workers._end()


def test_a_worker_that_does_not_end_is_killed(workers):
    workers._running = [workers._started(0), workers._started(1)]
    stubborn, gone = (worker.process for worker in workers._running)
    stubborn.stubborn, gone.alive = True, False
    workers._end()
    assert stubborn.words == ["terminate", "wait", "kill", "join"]
    assert gone.words == ["wait"]


@pytest.mark.parametrize(("soft", "hard", "expected"), [(1024, 4096, 2304), (1024, 2000, 2000), (9000, 9999, None),
                                                        (1024, -1, 2304), (-1, -1, None)])  # fmt: skip
def test_connections_do_not_use_up_the_files_that_a_process_may_open(answers, monkeypatch, soft, hard, expected):
    import resource

    chosen = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: chosen.append(limits))
    answers.call()
    assert chosen == ([] if expected is None else [(expected, hard)])
