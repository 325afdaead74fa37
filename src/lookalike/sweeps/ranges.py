"""What may vary: the [tune] table of a recipe, one range per key.

[tune]
"optimiser.lr" = { low = 1e-5, high = 1e-3, log = true }
"sampler.per_class" = { low = 2, high = 8, step = 2 }       # whole numbers stay whole
"loss.name" = { choices = ["triplet", "margin"] }
"loss.margin" = { low = 0.05, high = 0.5, when = "loss.name=triplet" }
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

from lookalike.errors import check, unknown
from lookalike.recipe import overridden
from lookalike.recipe.overrides import Tree

TABLE = "tune"


@runtime_checkable
class Suggester(Protocol):
    """What draws values: a trial of optuna."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> int: ...
    def suggest_float(self, name: str, low: float, high: float, *, step: float | None, log: bool) -> float: ...
    def suggest_categorical(self, name: str, choices: Sequence[str]) -> Any: ...


@dataclass(frozen=True)
class Range:
    """The values of one key: numbers in a range, or one of some choices.

    key: of a recipe, such as "optimiser.lr".
    low: the least; with `high`, whole numbers if both are.
    high: the most.
    log: draw evenly on a logarithmic scale.
    step: only low, low + step, …; None: all between.
    choices: in the place of low and high.
    when: only if another key has this value, such as "loss.name=triplet".
    """

    key: str
    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    step: float | None = None
    choices: tuple[Any, ...] = ()
    when: str | None = None

    def __post_init__(self) -> None:
        where = f"{TABLE}.{self.key}"
        ranged = isinstance(self.low, int | float) and isinstance(self.high, int | float)
        check(ranged != bool(self.choices), f'{where} needs low and high, or choices: write "{self.key}" = {{low=…}}')
        if self.low is not None and self.high is not None:
            check(self.low < self.high, f"{where}: low {self.low} must be below high {self.high}")
            check(not self.log or self.low > 0, f"{where}: on a log scale low must be above 0, not {self.low}")
            check(not (self.log and self.step), f"{where}: give log or step, not both")
        condition = self.when is None or "=" in self.when
        check(condition, f'{where}: when is a condition such as "loss.name=triplet", not {self.when!r}')

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def suggest(self, trial: Suggester) -> Any:
        """A value, drawn by a `trial` of optuna."""
        if self.choices:
            return json.loads(trial.suggest_categorical(self.key, [json.dumps(choice) for choice in self.choices]))
        assert self.low is not None and self.high is not None  # noqa: PT018
        if self.whole:
            return trial.suggest_int(self.key, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.key, self.low, self.high, step=self.step, log=self.log)


def take(values: Mapping[str, Any]) -> tuple[Tree, list[Range]]:
    """A recipe's tables (`values`) without [tune], and the ranges in it.

    >>> rest, (lr,) = take({"seed": 1, "tune": {"optimiser.lr": {"low": 1e-5, "high": 1e-3, "log": True}}})
    >>> rest, lr.key, lr.log
    ({'seed': 1}, 'optimiser.lr', True)
    """
    rest = {key: part for key, part in values.items() if key != TABLE}
    ranges = list(_ranges(values.get(TABLE, {}), ""))
    check(
        bool(ranges),
        'the recipe does not say what to search: add [tune] with ranges such as "optimiser.lr" = '
        "{low = 1e-5, high = 1e-3, log = true}",
    )
    return rest, ranges


def _ranges(table: Mapping[str, Any], where: str) -> Iterator[Range]:
    possible = [part.name for part in fields(Range) if part.name != "key"]
    for key, value in table.items():
        name = f"{where}{key}"
        check(isinstance(value, Mapping), f"{TABLE}.{name} is a range such as {{low = 0.1, high = 1.0}}, not {value!r}")
        if any(isinstance(part, Mapping) for part in value.values()):  # optimiser.lr without quotes is a table in one
            yield from _ranges(value, f"{name}.")
            continue
        for word in value:
            if word not in possible:
                raise unknown(f"key of {TABLE}.{name}", word, possible)
        settings: dict[str, Any] = {
            word: tuple(part) if isinstance(part, list) else part for word, part in value.items()
        }
        yield Range(name, **settings)


def draw(ranges: Sequence[Range], base: Mapping[str, Any], trial: Suggester) -> list[str]:
    """One point of the space, as overrides of the recipe; names first, because a new name starts its table afresh."""
    overrides: list[str] = []
    for each in sorted(ranges, key=lambda each: (each.when is not None, not each.key.endswith(".name"))):
        if each.when is None or _holds(overridden(base, overrides), each.when):
            overrides.append(f"{each.key}={json.dumps(each.suggest(trial), ensure_ascii=False)}")
    return overrides


def _holds(values: Mapping[str, Any], condition: str) -> bool:
    key, _, value = condition.partition("=")
    place: Any = values
    for part in key.strip().split("."):
        place = place.get(part) if isinstance(place, Mapping) else None
    return str(place) == value.strip()


class Corner:
    """A trial that always takes the first value, to check that the keys exist."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> int:
        del name, high, step, log
        return low

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None, log: bool) -> float:
        del name, high, step, log
        return low

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> Any:
        del name
        return choices[0]
