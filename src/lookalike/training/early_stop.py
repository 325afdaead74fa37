"""Stop when validation no longer improves, and know what was best."""

import math
from dataclasses import dataclass, field
from typing import Any

from lookalike.errors import check


@dataclass
class EarlyStop:
    """Counts validations without an improvement ([math G.2]: 60, of 1e-5).

    patience: how many of them in a row end the run; None: never stop.
    min_improvement: by how much the best must be exceeded.

    >>> watch = EarlyStop(patience=2)
    >>> [watch.improved(step, value) for step, value in enumerate((0.5, 0.6, 0.55, 0.6))], watch.best_step, watch.over
    ([True, True, False, False], 1, True)
    """

    patience: int | None = None
    min_improvement: float = 1e-5
    best: float = field(default=-math.inf, init=False)
    best_step: int = field(default=0, init=False)
    bad: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check(self.patience is None or self.patience > 0, f"patience is at least 1 validation, not {self.patience}")
        check(self.min_improvement >= 0, f"min_improvement must be at least 0, not {self.min_improvement}")

    def improved(self, step: int, value: float) -> bool:
        """Take note of the `value` of a validation, higher being better; whether it is the best so far."""
        if value > self.best + self.min_improvement:
            self.best, self.best_step, self.bad = value, step, 0
            return True
        self.bad += 1
        return False

    @property
    def over(self) -> bool:
        return self.patience is not None and self.bad >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "best_step": self.best_step, "bad": self.bad}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.best_step, self.bad = state["best"], state["best_step"], state["bad"]
