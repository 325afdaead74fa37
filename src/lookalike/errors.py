"""Mistakes of the user: each is a `UserError` with one line that says what was given and what was possible.

The command line prints that line and exits with code 2.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, requires

EXIT_CODE = 2
PACKAGE = "lookalike"


class UserError(ValueError):
    """Something only the user can put right. The message is one line and says what to do."""


class NotFiniteError(UserError):
    """Vectors that hold NaN or infinity: what a network gives whose training has diverged."""


def check(holds: bool, message: str) -> None:
    if not holds:
        raise UserError(message)


def check_at_least(least: float, **settings: float) -> None:
    """Refuses settings below `least`, by their names.

    >>> check_at_least(1, classes=100, dim=0)
    Traceback (most recent call last):
    ...
    lookalike.errors.UserError: dim must be at least 1, not 0
    """
    for name, value in settings.items():
        check(value >= least, f"{name} must be at least {least}, not {value}")


def check_positive(**settings: float) -> None:
    """Refuses settings that are not above 0, by their names; see `check_at_least`."""
    for name, value in settings.items():
        check(value > 0, f"{name} must be positive, not {value}")


def unknown(kind: str, name: str, possible: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("loss", "tripplet", ["triplet", "margin"]))
    unknown loss 'tripplet': did you mean 'triplet'? Possible: margin, triplet
    """
    names = sorted(possible)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f": did you mean '{nearest[0]}'?" if nearest else "."
    return UserError(f"unknown {kind} '{name}'{hint} Possible: {', '.join(names) or 'none'}")


def install(extra: str) -> str:
    """The command that installs an extra, by the names of its packages: it works from a clone and from a wheel.

    >>> install("faiss")
    "pip install 'faiss-cpu>=1.8'"
    """
    try:
        lines = [line.partition(";") for line in requires(PACKAGE) or []]
    except PackageNotFoundError:  # run from its source, never installed
        lines = []
    needed = [name.strip() for name, _, marker in lines if marker.replace("'", '"').strip() == f'extra == "{extra}"']
    return "pip install " + " ".join(f"'{name}'" for name in needed or [f"{PACKAGE}[{extra}]"])
