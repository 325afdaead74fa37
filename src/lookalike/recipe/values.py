"""Whether a value from TOML is of the kind that a key, or a setting of a catalogue's member, takes."""

import inspect
from collections.abc import Callable, Collection, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from lookalike.errors import UserError, unknown

NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def checked(hint: Any, value: Any, where: str) -> Any:
    """The value as the hint wants it, or one line that says what it must be.

    >>> checked(float | None, "none", "loss.margin"), checked(tuple[int, ...], [1, 2], "schedule.milestones")
    (None, (1, 2))
    """
    options = _options(hint)
    if value == "none" and NoneType in options and not any("none" in get_args(option) for option in options):
        return None  # TOML has no word for it; where "none" is a name of its own (a geometry), it stays one
    if not _fits(hint, value):
        names = " or ".join(dict.fromkeys(_name(option) for option in options if option is not NoneType))
        raise UserError(f"{where} = {value!r}: it must be {names}")
    return tuple(value) if isinstance(value, list) else value


def member_settings(
    where: str, name: str, builder: Callable[..., Any], settings: Mapping[str, Any], own: Collection[str] = ()
) -> dict[str, Any]:
    """The settings of a member as its constructor takes them; `own` are further keys that the table has.

    >>> def triplet(margin: float = 0.2): ...
    >>> member_settings("loss", "triplet", triplet, {"nam": "margin"}, own=("name", "preset"))
    Traceback (most recent call last):
    lookalike.errors.UserError: unknown setting of triplet 'nam': did you mean 'name'? Possible: margin, name, preset
    """
    parameters = inspect.signature(builder).parameters.values()
    hints = {part.name: part.annotation for part in parameters if _writable(part.annotation)}
    for key in settings:
        if key not in hints:
            raise unknown(f"setting of {name}", key, {*own, *hints})
    return {key: checked(hints[key], value, f"{where}.{key}") for key, value in settings.items()}


def _options(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) not in (Union, UnionType):
        return (hint,)
    return tuple(inner for option in get_args(hint) for inner in _options(option))


def _writable(hint: Any) -> bool:
    """Whether TOML can write such a value; tensors, generators and banks come from the data and the run."""
    origins = (Literal, tuple, Mapping)
    return any(option in NAMES or get_origin(option) in origins for option in _options(hint))


def _fits(hint: Any, value: Any) -> bool:
    return any(_fits_one(option, value) for option in _options(hint))


def _fits_one(option: Any, value: Any) -> bool:
    origin = get_origin(option)
    if origin is Literal:
        return value in get_args(option)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(get_args(option)[0], part) for part in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(_fits(get_args(option)[1], part) for part in value.values())
    if option is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if option is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return option is Any or (option in (str, bool) and isinstance(value, option))


def _name(option: Any) -> str:
    if get_origin(option) is Literal:
        return "one of " + ", ".join(get_args(option))
    if get_origin(option) is tuple:
        return "a list"
    if get_origin(option) is not None:
        return "a table of tables"
    return NAMES.get(option, "a table")
