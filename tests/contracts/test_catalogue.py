"""Names: one file per member, named as its paper names it and citing it; a misspelt one is refused with a hint."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

from lookalike import losses, miners, regularisers, samplers
from lookalike.catalog import settings_of
from lookalike.errors import UserError
from lookalike.models import backbones
from tests.contracts.catalogue import NAMES, PAIR_NAMES, build

FOLDERS = {"loss": losses, "miner": miners, "regulariser": regularisers}
MEMBERS = [(kind, name) for kind, folder in FOLDERS.items() for name in folder.names()]


@pytest.mark.parametrize("folder", [*FOLDERS.values(), samplers, backbones])
def test_no_file_is_forgotten(folder):
    """A file that holds what it is named after is listed: its line in `__init__.py` is there."""
    for file in Path(folder.__file__).parent.glob("[!_]*.py"):
        module = importlib.import_module(f"{folder.__name__}.{file.stem}")
        public = {name: value for name, value in vars(module).items() if name[0].isupper() and callable(value)}
        owned = {name for name, value in public.items() if value.__module__ == module.__name__}
        named = [name for name in owned if name.lower() == file.stem.replace("_", "")]
        assert all(getattr(folder, name, None) is public[name] for name in named), file.name


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_file_and_class_carry_the_name(kind, name):
    member = FOLDERS[kind].MEMBERS[name]
    assert member.__module__.split(".")[-1] == name
    assert member.__name__.lower() == name.replace("_", "")
    assert member.__name__[0].isupper()
    assert "_" not in member.__name__
    assert getattr(FOLDERS[kind], member.__name__) is member
    assert member.__name__ in FOLDERS[kind].__all__


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_the_paper_is_cited(kind, name):
    """Authors and a year (or the paper itself) in the first sentence; one sentence of geometry on the class."""
    member = FOLDERS[kind].MEMBERS[name]
    opening = inspect.getdoc(sys.modules[member.__module__]).split("\n\n")[0]
    assert re.search(r"\b(19|20)\d\d\b", opening) or "Chance Constraints" in opening, opening
    assert re.search(r"[A-Z]\w+", opening.split(":")[0]), "authors come first"
    assert inspect.getdoc(member)


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_a_misspelt_name_is_refused_with_a_hint(kind, name):
    misspelt = name[0] + name[2] + name[1] + name[3:]
    with pytest.raises(UserError, match=rf"^unknown {kind} '{misspelt}': did you mean '{name}'\? Possible: ") as caught:
        FOLDERS[kind].build(misspelt)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_a_misspelt_setting_is_refused_with_a_hint(kind, name):
    member = FOLDERS[kind].MEMBERS[name]
    setting = settings_of(member)[-1]
    with pytest.raises(UserError, match=f"^unknown setting of {name} '{setting}s': did you mean '{setting}'"):
        FOLDERS[kind].build(name, **{setting + "s": 1})


def test_an_unknown_preset_is_refused_with_a_hint():
    with pytest.raises(UserError, match="unknown preset of triplet 'cbu': did you mean 'cub'"):
        losses.build("triplet", preset="cbu")
    with pytest.raises(UserError, match=r"unknown preset of nca 'cub'. Possible: none"):
        losses.build("nca", preset="cub")


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_accepted_by_every_loss(name):
    losses.build(name, classes=5, dim=7)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PAIR_NAMES])
def test_a_missing_fact_is_named(name):
    with pytest.raises(UserError, match=f"^loss '{name}' needs classes and dim"):
        losses.build(name)


@pytest.mark.parametrize("name", NAMES)
def test_learnable_parts_are_handed_out_once(name):
    """Every parameter is in exactly one group, with its rate and decay; a loss without any needs no groups."""
    loss = build(name)
    parameters = list(loss.parameters())
    groups = loss.parameter_groups(1e-3) if hasattr(loss, "parameter_groups") else []
    handed = [id(p) for group in groups for p in group["params"]]
    assert sorted(handed) == sorted(map(id, parameters))
    assert all(group["lr"] > 0 and "weight_decay" in group for group in groups)
