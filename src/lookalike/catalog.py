"""A folder as a catalogue: names on the command line, objects in the program.

A folder lists its members explicitly, in `__init__.py`, as a mapping from name to class; editors, mypy and readers
see the same list that `names` and `build` read.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, TypeVar

from lookalike.errors import check, unknown

Member = TypeVar("Member")
FACT = {"fact": True}  # marks a field that data, model or the run decide: it is not a key of a recipe


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


def show_settings(kind: type[Any]) -> None:
    """Gives a class of modules a `repr` with its settings, and refuses a misspelt one with the nearest that exists.

    The class is changed in place: its name, its type and its signature stay what its file says.
    """
    plain_init, signature = kind.__init__, inspect.signature(kind)

    @wraps(plain_init)
    def init(self: Any, *arguments: Any, **settings: Any) -> None:
        for key in settings:
            if key not in signature.parameters:
                raise TypeError(str(unknown(f"setting of {kind.__name__}", key, signature.parameters)))
        plain_init(self, *arguments, **settings)
        bound = signature.bind(*arguments, **settings)
        bound.apply_defaults()
        self.built_with = bound.arguments

    def extra_repr(self: Any) -> str:
        # a setting may have changed since then; where it became a tensor, what it was built with says more
        current = {name: getattr(self, name, value) for name, value in self.built_with.items()}
        plain = {name: self.built_with[name] if hasattr(value, "shape") else value for name, value in current.items()}
        return ", ".join(f"{name}={value!r}" for name, value in plain.items())

    kind.__init__, kind.extra_repr = init, extra_repr
