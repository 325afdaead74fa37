"""How many steps a time budget allows, from what they really take: the first is slow, and machines get busy."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

RECENT = 16  # steps whose mean time counts
PARTS = 10  # a plan is looked at again after each tenth of it
NOTICED = 0.03  # relative change of a plan, below which it stays


@dataclass
class Pace:
    """The times of steps and validations, and the numbers of steps that were planned from them.

    look_seconds: of the last validation.
    planned: what a run that is resumed had planned after its checkpoint: numbers of steps, by the step at which they
        were planned.
    keep: called with every new plan: the step, and the number of steps.
    """

    look_seconds: float = 0.0
    planned: Mapping[int, int] = field(default_factory=dict)
    keep: Callable[[int, int], None] = lambda *_: None
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _count: int = 0

    def stepped(self, seconds: float) -> None:
        """Take note of a step; the first pays for memory and caches."""
        self._count += 1
        if self._count != 2:
            self._recent.append(seconds)
        else:
            self._recent = deque([seconds], maxlen=RECENT)

    @property
    def step_seconds(self) -> float:
        return sum(self._recent) / len(self._recent)

    def steps(self, step: int, planned: int, validate_every: int, left: float) -> int:
        """The steps that fit in all, with `left` seconds after `step`, or `planned`; earlier plans are followed first.

        >>> pace = Pace(look_seconds=2.0)
        >>> for seconds in (9.0, 0.5, 0.5):
        ...     pace.stepped(seconds)
        >>> pace.steps(4, 100, validate_every=4, left=12.0)  # a step and its share of a validation take a second
        14
        """
        if step in self.planned:
            return self.planned[step]
        if step <= max(self.planned, default=-1) or not _due(step, planned):
            return planned
        each = self.step_seconds + self.look_seconds / validate_every
        fitting = step + max(0, int((left - self.look_seconds) / each))
        return fitting if abs(fitting - planned) > NOTICED * planned else planned


def _due(step: int, steps: int) -> bool:
    """After 2, 4, 8, … steps, and after each tenth of the plan."""
    return step > 1 and (step & (step - 1) == 0 or step % max(1, steps // PARTS) == 0)
