"""Everything public says what its arguments mean.

An argument stands as `name` or as "name: …" in the docstring of its function, or of its class, or of its room, which
explains what all members have in common. A method without a docstring is explained there too, as `method(…)`.
"""

import importlib
import inspect
import re

import pytest

from lookalike import targets

ROOMS = ["data", "evaluation", "fit", "label_sets", "losses", "miners", "models", "regularisers", "samplers", "search"]
TORCHS_OWN = {"extra_repr", "state_dict", "load_state_dict"}
ALONE = {"label_sets": ["LabelSets"], "targets": ["Pairs", "Triplets", "Quadruplets", "Classes"]}
BY_DATACLASS = re.compile(r"\w+\(\w+: ")  # the docstring that a dataclass without one is given


def prose(thing):
    """Its docstring without examples."""
    text = thing.__doc__ or ""
    return "" if BY_DATACLASS.match(text) else re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.M)


def public(room):
    """Functions, classes and methods by name, each with all docstrings that may explain it."""
    for name in ALONE.get(room.__name__.rsplit(".", 1)[-1]) or room.__all__:
        thing = getattr(room, name)
        if not callable(thing) or not thing.__module__.startswith("lookalike"):
            continue
        yield name, thing, prose(thing), prose(room)
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and not method.startswith("_") and method not in TORCHS_OWN:
                yield f"{name}.{method}", function, prose(function), prose(thing) + prose(room)


def arguments(thing):
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    named = [name for name, each in inspect.signature(thing).parameters.items() if each.kind not in several]
    return [name for name in named if name not in ("self", "cls") and not name.startswith("_")]


def unexplained(name, thing, own, around):
    if not own and f"`{name.rsplit('.', 1)[-1]}(" not in around:
        yield f"{name} has no docstring"
    for argument in arguments(thing):
        if not re.search(rf"`{argument}\b|\b{argument}: ", own + around):
            yield f"{name}: {argument}"


@pytest.mark.parametrize("room", [*ROOMS, "targets"])
def test_every_argument_is_explained(room):
    module = importlib.import_module(f"lookalike.{room}")
    things = list(public(module))
    missing = [line for thing in things for line in unexplained(*thing)]
    assert things
    assert not missing, "\n".join(missing)


def test_what_is_missing_is_noticed():
    def scale(vector, factor):
        """Multiplies a `vector`."""

    assert list(unexplained("scale", scale, prose(scale), "")) == ["scale: factor"]
    assert list(unexplained("scale", scale, "", "")) == ["scale has no docstring", "scale: vector", "scale: factor"]
    assert not list(unexplained("scale", scale, "", "`scale(vector, factor)`: `vector` times `factor`"))
    assert ("Pairs.within", targets.Pairs.within) in [(name, thing) for name, thing, *_ in public(targets)]
