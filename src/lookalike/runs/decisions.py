"""What a run has decided, in RUN/decisions.json: a resumed run follows it, whatever the clock says then.

How many images and how many steps there is time for, and which model is delivered, may come out differently the next
time. Each decision is on disk before the run acts on it. The log says the same to people; nothing is read back from it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check
from lookalike.files import read_json, write_text
from lookalike.runs.log import Log


class Decisions:
    """The decisions of a run by name; their values are plain, as JSON holds them."""

    def __init__(self, path: Path, made: Mapping[str, Any] | None = None) -> None:
        self.path, self._made = path, dict(made or {})

    def get(self, name: str) -> Any:
        """What was decided; None: nothing yet."""
        return self._made.get(name)

    def make(self, name: str, value: Any) -> None:
        """Decide, or decide anew."""
        self._made[name] = value
        write_text(self.path, json.dumps(self._made, indent=2, ensure_ascii=False) + "\n")


def read_decisions(path: Path, log: Log) -> Decisions:
    """Those of a run that is resumed. 0.2.0 kept them in its `log`, from which they are taken over."""
    if not path.is_file():
        decisions = Decisions(path)
        for name, value in _of_0_2_0(log).items():
            decisions.make(name, value)
        return decisions
    try:
        made = read_json(path)
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read ({error}): start again with --fresh or a new --out") from None
    check(isinstance(made, dict), f"'{path}' holds no decisions: start again with --fresh or a new --out")
    return Decisions(path, made)


def _of_0_2_0(log: Log) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for event in log.of("sample"):
        made["sample"] = event["count"]
    plans = {event.get("step", 0): event for event in log.of("plan")}
    first = plans.get(0, {"seconds": None})
    if first["seconds"] is None:  # the recipe says how long the run is
        return made
    if first["steps"] == 0:
        return made | {"minutes_needed": first["minutes"]}
    steps = [[step, event["steps"]] for step, event in plans.items()]
    return made | {"plan": {"seconds": first["seconds"], "flexible": first.get("flexible", False), "steps": steps}}
