"""Recipes: a whole run as one TOML file. `load` reads one, `build` makes its objects, `to_toml` writes it out.

Throughout, `path` is a TOML file, `values` are its tables as dictionaries, and `overrides` texts such as
`loss.name=triplet`; `recipe` is a `Recipe`, `model` the model that it trains, and `train` the images that train it.
"""

from lookalike.recipe import build
from lookalike.recipe.overrides import layer_of, layered, merged, overridden
from lookalike.recipe.settings import Recipe
from lookalike.recipe.toml import as_tree, load, of_tree, to_toml, tree

__all__ = [
    "Recipe",
    "as_tree",
    "build",
    "layer_of",
    "layered",
    "load",
    "merged",
    "of_tree",
    "overridden",
    "to_toml",
    "tree",
]
