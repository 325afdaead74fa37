"""Plain values from TOML or JSON, checked against the annotations of what takes them."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from lookalike.errors import UserError, check, unknown

Table = TypeVar("Table")

SHOWN = 80  # characters of a value in a message
NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def checked(hint: Any, value: Any, where: str) -> Any:
    """The value as the hint wants it, or one line that says what it must be.

    >>> checked(float | None, "none", "loss.margin"), checked(tuple[int, ...], [1, 2], "schedule.milestones")
    (None, (1, 2))
    """
    options = _options(hint)
    if value is None and NoneType in options:
        return None
    if value == "none" and NoneType in options and not any("none" in get_args(option) for option in options):
        return None  # TOML has no word for it; where "none" is a name of its own (a geometry), it stays one
    if not _fits(hint, value):
        choices = [name for option in options for name in get_args(option) if get_origin(option) is Literal]
        if isinstance(value, str) and choices and str not in options:
            raise unknown(where, value, choices)
        names = " or ".join(dict.fromkeys(_name(option) for option in options if option is not NoneType))
        raise UserError(f"{where} = {_shown(value)}: it must be {names}")
    return tuple(value) if isinstance(value, list) else value


def dataclass_of(kind: type[Table], values: Any, where: str) -> Table:
    """A dataclass from its plain form; nested dataclasses are tables. Unknown, missing and misfitting keys are refused.

    >>> from dataclasses import dataclass
    >>> Size = dataclass(type("Size", (), {"__annotations__": {"width": int, "height": int}}))
    >>> dataclass_of(Size, {"width": 3, "hight": 4}, "size")
    Traceback (most recent call last):
    lookalike.errors.UserError: unknown key of size 'hight': did you mean 'height'? Possible: height, width
    """
    check(isinstance(values, Mapping), f"{where} must be a table of keys and values, not {_shown(values)}")
    hints = get_type_hints(kind)
    for key in values:
        if key not in hints:
            raise unknown(f"key of {where}", str(key), hints)
    needed = [part.name for part in fields(kind) if part.default is MISSING and part.default_factory is MISSING]  # type: ignore[arg-type]
    missing = [name for name in needed if name not in values]
    check(not missing, f"{where} lacks {' and '.join(missing)}")
    return kind(**{key: _nested(hints[key], value, f"{where}.{key}") for key, value in values.items()})


def _nested(hint: Any, value: Any, where: str) -> Any:
    tables = [option for option in _options(hint) if is_dataclass(option)]
    if tables and not (value is None and NoneType in _options(hint)):
        return dataclass_of(tables[0], value, where)  # type: ignore[arg-type]
    return checked(hint, value, where)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


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
    if option is NoneType:
        return value is None
    if origin in (tuple, Sequence):
        if not isinstance(value, list | tuple):
            return False
        first, *rest = get_args(option)
        each = [first, *rest] if rest and rest != [...] else [first] * len(value)
        return len(value) == len(each) and all(map(_fits, each, value))
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
    if get_origin(option) in (tuple, Sequence):
        return "a list"
    if get_origin(option) is not None:
        return "a table of tables"
    return NAMES.get(option, "a table")
