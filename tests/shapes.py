"""Shapes in annotations are checked while testing: of the functions that have one. Types alone are checked by mypy.

The hook of jaxtyping writes `jaxtyping.jaxtyped` above every function and class of the library, seven in eight of them
without a shape, and a call that is checked takes longer than most of them.
"""

import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

whole = jaxtyping.jaxtyped


def has_shape(hint: Any) -> bool:
    if isinstance(hint, str):
        return "Tensor" in hint
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(has_shape(part) for part in typing.get_args(hint))


def jaxtyped(*, typechecker: Callable) -> Callable:
    """What the hook writes above a function or class."""

    def checked(given: Any) -> Any:
        function = given.__init__ if isinstance(given, type) else given
        hints = getattr(function, "__annotations__", {})
        return whole(given, typechecker=typechecker) if any(map(has_shape, hints.values())) else given

    return checked


def install() -> None:
    """Check the shapes of whatever is imported from the library from now on."""
    # the hook takes its checker by name; an int must pass where a float is annotated
    checker = types.ModuleType("lookalike_shapes")
    checker.check = beartype(conf=BeartypeConf(is_pep484_tower=True))
    sys.modules[checker.__name__] = checker
    jaxtyping.jaxtyped = jaxtyped
    jaxtyping.install_import_hook(["lookalike", "papers"], f"{checker.__name__}.check")
