"""Stores that do as another one, but for some methods: as if something happened at that moment."""

from types import SimpleNamespace


def around(inner, **own):
    """The public methods of `inner`, and in the place of some of them the given ones."""
    return SimpleNamespace(**{name: getattr(inner, name) for name in dir(inner) if not name.startswith("_")} | own)
