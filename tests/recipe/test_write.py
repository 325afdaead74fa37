"""A recipe written and read again is the same recipe, whatever its words are."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.fit import defaults
from lookalike.models import Architecture, Unfreezing
from lookalike.recipe import Recipe, as_tree, load, of_tree, to_toml
from lookalike.recipe.settings import Data, Evaluation, Images, Member, Memory, Network, Optimiser, Train
from lookalike.training import Clipping, Plan, Schedule

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False) | st.integers(-(2**62), 2**62) | st.booleans()
values = numbers | words | st.lists(numbers | words, max_size=3)
OWN = {"name", "preset", "settings"}
further = st.dictionaries(words.filter(lambda word: word not in OWN), values, max_size=3)
members = st.builds(Member, words, st.none() | words.filter(lambda word: word != "none"), further)
some = st.none() | st.integers(0, 2**40)
recipes = st.builds(
    Recipe,
    members,
    members,
    st.integers(0, 2**40),
    data=st.builds(Data, source=words, name=st.none() | words.filter(lambda word: word != "none")),
    images=st.builds(Images, size=some, area=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1))),
    model=st.builds(Network, st.builds(Architecture, words, dim=st.integers(1, 9))),
    miner=st.none() | members,
    regularisers=st.dictionaries(words, further, max_size=2),
    memory=st.builds(Memory, batches=st.integers(0, 9), weight=st.floats(0, 1)),
    optimiser=st.builds(Optimiser, lr=st.floats(1e-12, 1), clipping=st.builds(Clipping, st.none() | st.floats(0, 9))),
    schedule=st.builds(Schedule, milestones=st.lists(st.integers(0, 99), max_size=3).map(tuple)),
    train=st.builds(Train, steps=some, plan=st.builds(Plan, min_improvement=st.floats(0, 1))),
    evaluation=st.builds(Evaluation, metrics=st.lists(words, max_size=3).map(tuple)),
)


@pytest.mark.plain  # checking shapes draws random numbers, which hypothesis forbids while it builds
@given(recipes)
@settings(max_examples=30)
def test_written_and_read_again(recipe):
    assert of_tree(tomllib.loads(to_toml(recipe, "A run.\nOf mine."))) == recipe


@pytest.mark.parametrize(
    "name", ['o"hara', "back\\slash", "new\nline", "tab\t", "naïve ☃ 漢字", "# no comment", "'", "\x00"]
)
def test_odd_names(tmp_path, name):
    recipe = Recipe(Member(name, settings={name: name}), Member("b"), data=Data(source=f"folder/{name}"))
    file = tmp_path / "recipe.toml"
    file.write_text(to_toml(recipe), encoding="utf-8")
    assert load(file) == recipe


@pytest.mark.parametrize("number", range(len(defaults.every())))
def test_the_defaults_are_whole_recipes(number):
    recipe = of_tree(defaults.every()[number])
    assert of_tree(tomllib.loads(to_toml(recipe))) == recipe
    assert as_tree(recipe)["loss"]["name"]


def test_a_recipe_written_by_0_1_0_still_says_the_same():
    file = Path(__file__).parent / "written" / "lookalike-0.1.0.toml"
    recipe = load(file)
    written = {key: _tuples(part) for key, part in tomllib.loads(file.read_text()).items()}
    written["train"] |= {"deliver": "trained", "dim": "auto"}  # all it could
    assert as_tree(recipe) == written
    assert recipe.model.architecture.settings == {"width": 12}
    assert recipe.model.unfreezing == Unfreezing(2, 1)
    assert recipe.optimiser.clipping == Clipping(10, 10)
    assert recipe.optimiser.settings == {"momentum": 0.9}
    assert recipe.schedule == Schedule("step", milestones=(3, 9))
    assert recipe.train.plan == Plan(validate_every=25, patience=60, log_every=4)


def _tuples(part):
    """TOML's lists as the tuples of the dataclasses."""
    if isinstance(part, dict):
        return {key: _tuples(value) for key, value in part.items()}
    return tuple(part) if isinstance(part, list) else part
