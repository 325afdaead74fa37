"""Recipes: every key can be set and is checked, whatever is misspelt is refused with the nearest name."""

import os
from dataclasses import MISSING, fields, is_dataclass
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from lookalike.errors import UserError
from lookalike.recipe import as_tree, load, of_tree, overridden, tree
from lookalike.recipe.settings import Member, Recipe
from lookalike.recipe.toml import keys

LEAST = {"loss": {"name": "triplet"}, "sampler": {"name": "class_balanced"}}
WORDS = {("schedule", "name"): ("cosine",) * 2}  # the table itself knows which are possible
VALUES = {int: ("7", 7), float: ("0.25", 0.25), str: ("a word", "a word"), bool: ("true", True)}


def tables():
    for part in fields(Recipe):
        if part.name in ("seed", "regularisers"):
            continue
        hint = get_type_hints(Recipe)[part.name]
        kinds = (hint, *get_args(hint))
        yield part.name, next(kind for kind in kinds if is_dataclass(kind))


def settable():
    for table, kind in tables():
        for key, hint in keys(kind).items():
            if key != "settings":
                yield table, key, hint


def example(hint):
    """A value for a kind of key, as it is written on the command line and as it is read."""
    options = [option for option in (hint, *get_args(hint)) if option is not type(None)]
    for inner in (get_args(option) for option in options if get_origin(option) is tuple):
        written, value = VALUES[inner[0]]
        quoted = f'"{written}"' if inner[0] is str else written
        return f"[{quoted}, {quoted}]", (value, value)
    known = next((option for option in options if option in VALUES), None)
    words = next((get_args(option) for option in options if get_origin(option) is Literal), ())
    return VALUES[known] if known else (words[0],) * 2


def named(table, key):
    """The name without which the other keys of a table have no meaning."""
    return [f"{table}.name=triplet"] if table in ("loss", "miner", "sampler") and key != "name" else []


@pytest.mark.parametrize(("table", "key", "hint"), list(settable()), ids=str)
def test_every_key_of_every_table_can_be_set(table, key, hint):
    written, value = WORDS.get((table, key)) or example(hint)
    recipe = of_tree(overridden(LEAST, [*named(table, key), f"{table}.{key}={written}"]))
    assert as_tree(recipe)[table][key] == value


@pytest.mark.parametrize(("table", "key"), [(table, key) for table, key, _ in settable()])
def test_every_key_refuses_a_wrong_kind_of_value(table, key):
    with pytest.raises(UserError, match=rf"{table}\.{key} = .*: it must be") as raised:
        of_tree(overridden(LEAST, [*named(table, key), f"{table}.{key}={{odd = 1}}"]))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("table", "kind"), list(tables()), ids=str)
def test_a_misspelt_key_is_refused_with_the_nearest(table, kind):
    known = keys(kind)
    if "settings" in known:
        return  # passed on to what the table names, and refused there
    for name in known:
        with pytest.raises(UserError, match=f"unknown key of {table}.*Possible: .*{name}"):
            of_tree(overridden(LEAST, [f"{table}.{name}x=1"]))


def test_a_misspelt_table_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="unknown key of a recipe 'optimizer': did you mean 'optimiser'"):
        of_tree(overridden(LEAST, ["optimizer.lr=1"]))
    with pytest.raises(UserError, match="unknown key of a recipe 'sead': did you mean 'seed'"):
        of_tree({**LEAST, "sead": 1})


@pytest.mark.parametrize("table", ["loss", "sampler", "miner", "data", "train", "model", "memory"])
def test_a_value_where_a_table_belongs(table):
    with pytest.raises(UserError, match=f"{table} = .*it must be a table"):
        of_tree(overridden(LEAST, [f"{table}=semihard"]))
    with pytest.raises(UserError, match="is a value, not a table"):
        overridden({**LEAST, table: 3}, [f"{table}.name=x"])


def test_what_a_recipe_must_say():
    with pytest.raises(UserError, match=r"does not say sampler: add it"):
        of_tree({"loss": {"name": "triplet"}})
    with pytest.raises(UserError, match=r"does not say loss\.name: add it"):
        of_tree({**LEAST, "loss": {"margin": 0.1}})
    assert [part.name for part in fields(Recipe) if part.default is MISSING and part.default_factory is MISSING] == [
        "loss",
        "sampler",
    ]


def test_another_name_starts_the_table_anew_and_the_same_name_does_not():
    begun = {**LEAST, "loss": {"name": "margin", "margin": 0.3, "preset": "roth"}, "miner": {"name": "hard"}}
    assert overridden(begun, ["loss.name=triplet"])["loss"] == {"name": "triplet"}
    assert overridden(begun, ["loss.name=margin"])["loss"] == begun["loss"]
    assert overridden(begun, ["loss.name=triplet", "loss.margin=0.5"])["loss"] == {"name": "triplet", "margin": 0.5}
    assert overridden(begun, ["loss.margin=0.5", "loss.name=triplet"])["loss"] == {"name": "triplet", "margin": 0.5}
    assert "miner" not in overridden(begun, ["miner.name=none"])
    assert begun["loss"]["margin"] == 0.3  # the original is left alone
    assert begun["miner"] == {"name": "hard"}


def test_steps_and_epochs_replace_each_other_and_nothing_else():
    begun = {**LEAST, "train": {"steps": 400, "patience": 3}}
    assert overridden(begun, ["train.epochs=2"])["train"] == {"epochs": 2, "patience": 3}
    assert overridden(overridden(begun, ["train.epochs=2"]), ["train.steps=9"])["train"] == {"steps": 9, "patience": 3}
    both = overridden(begun, ["train.epochs=2", "train.steps=9"])["train"]
    assert both == {"steps": 9, "epochs": 2, "patience": 3}  # refused later


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-4", 1e-4),
        ("5", 5),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"quoted # text"', "quoted # text"),
        ("plain words", "plain words"),
        ("a=b", "a=b"),
        ("", ""),
        ("1.2.3", "1.2.3"),
        ("'", "'"),
    ],
)
def test_values_are_toml_or_else_the_text_itself(written, value):
    assert overridden({}, [f"loss.x={written}"])["loss"]["x"] == value


@pytest.mark.parametrize("text", ["steps", "=5", "train.steps"])
def test_overrides_without_key_or_value(text):
    with pytest.raises(UserError, match="write key=value"):
        overridden(LEAST, [text])


def test_files(tmp_path):
    file = tmp_path / "a recipe.toml"
    with pytest.raises(UserError, match="there is no recipe"):
        load(file)
    file.write_text("[loss\n")
    with pytest.raises(UserError, match="is not a recipe") as raised:
        load(file)
    assert "\n" not in str(raised.value)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not a recipe"):
        load(file)
    for content in ("a = " + "[" * 50_000, "a" * 100):
        file.write_text(content)
        with pytest.raises(UserError, match="is not a recipe"):
            load(file)
    os.truncate(file, 1 << 40)  # a sparse file: nothing of it is read
    with pytest.raises(UserError, match=r"is not a recipe .*it has more than"):
        load(file)
    file.write_text('[loss]\nname = "triplet"\nmargin = 0.1\n[sampler]\nname = "class_balanced"\n')
    assert load(file, ["seed=3"]).seed == 3
    assert load(file).loss == Member("triplet", settings={"margin": 0.1})
    assert tree(file)["loss"] == {"name": "triplet", "margin": 0.1}
