"""What a trial ended in: an answer, a refusal in one line, or a finding."""

import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from lookalike.errors import UserError

MOST_NOTES = 20
FINDINGS = ("raw exception", "silent NaN", "wrong", "hang")


class WrongError(AssertionError):
    """The answer is not the right one."""


class SilentError(AssertionError):
    """A number that is none went unnoticed."""


class HangError(BaseException):
    """No answer in time; nothing may catch it."""


@dataclass
class Outcomes:
    """How the trials of one kind ended; `notes` names the first findings and how to repeat them."""

    kind: str
    minutes: float = math.inf
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def attempt(self, name: str, work: Callable[[], object], patience: float = 60) -> None:
        """Run one trial; it answers, or refuses with a UserError of one line."""
        try:
            with within(patience):
                work()
            self.add("answered")
        except UserError as error:
            self.add("refused") if "\n" not in str(error) else self.find("raw exception", name, error)
        except SilentError as error:
            self.find("silent NaN", name, error)
        except WrongError as error:
            self.find("wrong", name, error)
        except HangError as error:
            self.find("hang", name, error)
        except Exception as error:
            self.find("raw exception", name, error)

    def attempt_each(self, first: int, count: int, trial: Callable[[int], object]) -> None:
        """Run the trial of every number, as long as there is time."""
        for number in self.numbers(first, count):
            self.attempt(str(number), partial(trial, number))

    def add(self, outcome: str) -> None:
        self.counts[outcome] += 1
        self.seconds = time.monotonic() - self.began

    def find(self, outcome: str, name: str, error: BaseException) -> None:
        self.add(outcome)
        note = f"{self.kind} {name}: {outcome}: {type(error).__name__}: {str(error)[:300]}"
        print(note, file=sys.stderr, flush=True)
        self.notes += [note] if len(self.notes) < MOST_NOTES else []

    def numbers(self, first: int, count: int) -> Iterator[int]:
        """The numbers of the trials, as long as there is time."""
        for number in range(first, first + count):
            if time.monotonic() - self.began > 60 * self.minutes:
                return
            yield number

    @property
    def trials(self) -> int:
        return sum(self.counts.values())

    @property
    def findings(self) -> int:
        return sum(self.counts[finding] for finding in FINDINGS)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """No more than this many seconds of processor time, and ten times as many on the clock: others may be busy."""

    def ring(*_: object) -> None:
        raise HangError(f"no answer in {seconds:.0f} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(which, ring) for which, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (which, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(which, handler)


def right(holds: bool, message: str) -> None:
    if not holds:
        raise WrongError(message)
