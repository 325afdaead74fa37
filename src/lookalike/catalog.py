"""A folder as a catalogue: names on the command line, objects in the program.

A room imports its members in `__init__.py`, one line each (`from lookalike.losses.nca import NCA as NCA`). Those lines
are the list: editors, mypy and readers see what `names` and `build` read.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from lookalike.errors import check, unknown

Member = TypeVar("Member")
Given = ParamSpec("Given")
FACT = {"fact": True}  # marks a field that data, model or the run decide: it is not a key of a recipe


def members(room: Mapping[str, Any]) -> dict[str, Any]:
    """What a room imports under the name of its file, by that name; `room` is its `globals()`.

    `NCA` of nca.py is "nca". `ResNet18` of resnet.py says more than its file: "resnet18". Names that do not begin as
    their file does are no members.
    """
    listed = {}
    for name, value in room.items():
        package, _, file = getattr(value, "__module__", "").rpartition(".")
        stem = file.replace("_", "")
        if package == room["__name__"] and name.lower().startswith(stem):
            listed[file + name.lower().removeprefix(stem)] = value
    return listed


def member(kind: str, members: Mapping[str, Callable[..., Member]], name: str) -> Callable[..., Member]:
    if name not in members:
        raise unknown(kind, name, members)
    return members[name]


def settings_of(builder: Callable[..., Any]) -> list[str]:
    """The names of the settings a member takes."""
    return [name for name in inspect.signature(builder).parameters if name != "self"]


def presets_of(builder: Callable[..., Any]) -> Mapping[str, Mapping[str, Any]]:
    """The `PRESETS` of the file a member is written in: named settings of a paper or its released code."""
    presets: Mapping[str, Mapping[str, Any]] = getattr(sys.modules[builder.__module__], "PRESETS", {})
    return presets


def build(
    kind: str,
    members: Mapping[str, Callable[..., Member]],
    name: str,
    settings: Mapping[str, Any],
    preset: str | None = None,
    facts: Collection[str] = (),
) -> Member:
    """The member called `name`, with the settings of `preset` overridden by `settings`; a misspelt one is refused.

    `facts` are settings known from elsewhere: a member that does not take one is not given it.
    """
    builder = member(kind, members, name)
    possible = settings_of(builder)
    chosen: dict[str, Any] = {}
    if preset is not None:
        presets = presets_of(builder)
        if preset not in presets:
            raise unknown(f"preset of {name}", preset, presets)
        chosen.update(presets[preset])
    for key, value in settings.items():
        if key in possible:
            chosen[key] = value
        elif key not in facts:
            raise unknown(f"setting of {name}", key, possible)
    parameters = inspect.signature(builder).parameters.items()
    missing = [key for key, parameter in parameters if parameter.default is parameter.empty and key not in chosen]
    check(
        not missing,
        f"{kind} '{name}' needs {' and '.join(missing)}: give build('{name}', {'=..., '.join(missing)}=...)",
    )
    return builder(**chosen)


def records_settings(init: Callable[Concatenate[Any, Given], None]) -> Callable[Concatenate[Any, Given], None]:
    """Decorates the `__init__` of a module: keeps its settings for `shown_settings`, and refuses a misspelt one.

    >>> class Loss:
    ...     @records_settings
    ...     def __init__(self, margin: float = 0.2) -> None: ...
    >>> shown_settings(Loss())
    'margin=0.2'
    >>> Loss(margn=0.1)
    Traceback (most recent call last):
    ...
    TypeError: unknown setting of Loss 'margn': did you mean 'margin'? Possible: margin
    """
    signature = inspect.signature(init)
    possible = list(signature.parameters)[1:]

    @wraps(init)
    def recorded(self: Any, /, *values: Given.args, **settings: Given.kwargs) -> None:
        for key in settings:
            if key not in possible:
                raise TypeError(str(unknown(f"setting of {type(self).__name__}", key, possible)))
        init(self, *values, **settings)
        bound = signature.bind(self, *values, **settings)
        bound.apply_defaults()
        self.built_with = {key: bound.arguments[key] for key in possible}

    return recorded


def shown_settings(module: Any) -> str:
    """The settings of a module, for its `extra_repr`: as they are now, or as they began where they became a tensor."""
    current = {key: getattr(module, key, value) for key, value in module.built_with.items()}
    plain = {key: module.built_with[key] if hasattr(value, "shape") else value for key, value in current.items()}
    return ", ".join(f"{key}={value!r}" for key, value in plain.items())
