"""Work in a fork of this process that leaves no process behind, however it ends. Linux only."""

import ctypes
import os
import resource
import select
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress

import psutil

SUBREAPER, DEATH_SIGNAL = 36, 1  # of prctl
TICK, MEMORY = 0.25, 8 << 30  # seconds, bytes


def in_fork(work: Callable[[], bool], seconds: int) -> bool | None:
    """What `work` returned (False if it raised), None if it did not come to an end.

    A busy machine changes nothing: a loop without end is cut off by its processor time, a lock that nobody opens by
    the time in which no process of the fork was ready to run.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)  # what the fork leaves behind becomes a child of this process
    child = os.fork()
    if child == 0:
        try:
            prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            os._exit(0 if work() else 1)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    handle, idle = os.pidfd_open(child), 0.0
    while not select.select([handle], [], [], TICK)[0] and idle < seconds:
        idle = idle if _ready() else idle + TICK
    over = select.select([handle], [], [], 0)[0]
    os.close(handle)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if over else None
    _end_all()
    return {0: True, 1: False}.get(code) if code is not None else None


def _ready() -> bool:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP):
                return True
    return False


def _end_all() -> None:
    while True:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
