"""The interface of methods that steer training beyond the loss, such as CCP."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from lookalike.runs.log import Event


@runtime_checkable
class Strategy(Protocol):
    """Called before the first step, on the gradients of each step, and after each validation.

    The events that `begin` and `validated` return go to the watchers of the run; None: nothing happened.
    """

    def begin(self) -> Event | None: ...
    def gradients(self) -> None: ...
    def validated(self, step: int, value: float) -> Event | None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
