"""Everything public says what its arguments mean.

An argument stands as `name` or as "name: …" in the docstring of its function, of its class, or of its module or room,
which explains what all members have in common. A method without a docstring is explained there too, as `method(…)`.
Public is what a room lists in `__all__`, and what the guides take from its modules; of `cli`, what `--help` shows.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from typer.main import get_command

import lookalike
from lookalike import targets
from lookalike.cli import app

ROOMS = [
    "analysis",
    "data",
    "discover",
    "evaluation",
    "features",
    "fit",
    "losses",
    "miners",
    "models",
    "recipe",
    "recipe.build",
    "regularisers",
    "report",
    "report.compare",
    "runs",
    "samplers",
    "search",
    "sweeps",
    "training",
]
ALONE = {
    "evaluation.query_draw": ["one_per_class"],
    "evaluation.statistics.seeds": ["Spread", "averaged", "difference", "difference_by_seed", "spread"],
    "label_sets": ["LabelSets"],
    "models.preprocess": ["prepare", "scale"],
    "protocols.class_disjoint": ["Parts", "parts"],
    "protocols.cross_validation": ["parts", "side_by_side"],
    "protocols.query_gallery": ["parts"],
    "protocols.unseen": ["Judged", "baselines", "best_of_each", "gains", "judge"],
    "protocols.vehicle_id": ["judge_repeats", "parts"],
    "recipe.settings": [
        "Data",
        "Evaluation",
        "FrozenFeatures",
        "HeadOnly",
        "Images",
        "Member",
        "Memory",
        "Network",
        "Optimiser",
        "ProtocolSettings",
        "Train",
    ],
    "targets": ["Pairs", "Triplets", "Quadruplets", "Classes"],
    "training.ccp": ["Chance", "ChanceConstraints", "ProxyObjective"],
    "training.distributed": ["joined", "own_folder"],
    "training.memory": ["CrossBatchMemory", "remembered"],
    "training.mixup": ["Mixup"],
    "training.optimisers": ["build", "names"],
    "training.pool": ["Pool"],
}
TORCHS_OWN = {"extra_repr", "state_dict", "load_state_dict"}
BY_DATACLASS = re.compile(r"\w+\(\w+: ")  # the docstring that a dataclass without one is given


def prose(thing):
    """Its docstring without examples."""
    text = thing.__doc__ or ""
    return "" if BY_DATACLASS.match(text) else re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.M)


def public(place):
    """Functions, classes and methods by name, each with all docstrings that may explain it."""
    module, room = (importlib.import_module(f"lookalike.{name}") for name in (place, place.partition(".")[0]))
    around = prose(module) + prose(room)
    for name in ALONE.get(place) or module.__all__:
        thing = getattr(module, name)
        if not callable(thing) or not thing.__module__.startswith("lookalike"):
            continue
        yield name, thing, prose(thing), around
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and not method.startswith("_") and method not in TORCHS_OWN:
                yield f"{name}.{method}", function, prose(function), prose(thing) + around


def arguments(thing):
    if inspect.isclass(thing) and issubclass(thing, Exception) and "__init__" not in vars(thing):
        return []
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    named = [name for name, each in inspect.signature(thing).parameters.items() if each.kind not in several]
    return [name for name in named if name not in ("self", "cls") and not name.startswith("_")]


def unexplained(name, thing, own, around):
    if not own and f"`{name.rsplit('.', 1)[-1]}(" not in around:
        yield f"{name} has no docstring"
    for argument in arguments(thing):
        if not re.search(rf"`{argument}\b|\b{argument}: ", own + around):
            yield f"{name}: {argument}"


@pytest.mark.parametrize("place", [*ROOMS, *ALONE])
def test_every_argument_is_explained(place):
    things = list(public(place))
    missing = [line for thing in things for line in unexplained(*thing)]
    assert things
    assert not missing, "\n".join(missing)


def verbs(command, name="lookalike"):
    yield name, command
    for word, part in getattr(command, "commands", {}).items():
        yield from verbs(part, f"{name} {word}")


def test_every_option_of_every_verb_is_explained():
    listed = [(name, option) for name, verb in verbs(get_command(app)) for option in verb.params]
    assert len(listed) > 100
    assert not [f"{name}: {option.name}" for name, option in listed if not getattr(option, "help", None)]


def test_no_room_is_forgotten():
    rooms = {folder.parent.name for folder in Path(lookalike.__file__).parent.glob("*/__init__.py")}
    assert rooms - {place.partition(".")[0] for place in [*ROOMS, *ALONE]} == {"cli"}


def test_what_is_missing_is_noticed():
    def scale(vector, factor):
        """Multiplies a `vector`."""

    assert list(unexplained("scale", scale, prose(scale), "")) == ["scale: factor"]
    assert list(unexplained("scale", scale, "", "")) == ["scale has no docstring", "scale: vector", "scale: factor"]
    assert not list(unexplained("scale", scale, "", "`scale(vector, factor)`: `vector` times `factor`"))
    assert ("Pairs.within", targets.Pairs.within) in [(name, thing) for name, thing, *_ in public("targets")]
