"""The official datasets in miniature, and the rows of the papers' tables with a network small enough for them."""

from dataclasses import replace
from pathlib import Path

from lookalike.data import Dataset
from lookalike.models import Architecture
from lookalike.recipe import Recipe
from lookalike.sweeps import Study
from lookalike.sweeps.grid import Cell
from tests.recipe.layouts import LAYOUTS, Album

CLASSES = 3  # in a batch
BIG = 16  # images of a big batch
PIXELS = 16  # four halvings


def miniature(name: str, folder: Path) -> Dataset:
    return LAYOUTS[name](Album(folder / name))


def stand_in(recipe: Recipe, own_network: bool = False, pixels: int = PIXELS) -> Recipe:
    """The recipe with few pixels and small batches and, but for `own_network`, a small network; the rest is its own."""
    how = recipe.model.architecture
    if not own_network:
        dim = None if how.dim is None else min(6, how.dim)
        how = Architecture(
            "conv4",
            dim=dim,
            batch_norm=how.batch_norm,
            bias=how.bias,
            init=how.init,
            settings={"width": 8, "channels": 3},
        )
    sampler = dict(recipe.sampler.settings)
    grouped = recipe.sampler.name.startswith("category") or recipe.sampler.name == "one_per_class"
    sampler["batch_size"] = 2 * CLASSES if grouped else CLASSES * sampler.get("per_class", 2)
    if recipe.sampler.name in ("coreset", "distribution_match", "frechet"):
        sampler["big_batch"] = BIG
    return replace(
        recipe,
        images=replace(recipe.images, size=pixels, short_side=pixels + 2),
        model=replace(recipe.model, architecture=how, weights=None),
        sampler=replace(recipe.sampler, settings=sampler),
        train=replace(recipe.train, device="cpu", chunk=None if recipe.train.chunk is None else 2 * CLASSES),
    )


def first_cells(study: Study) -> dict[str, Recipe]:
    """A recipe for every row."""
    return {row: next(cell.recipe for cell in study.cells if cell.row == row) for row in study.rows}


def as_study(recipes: dict[str, Recipe]) -> Study:
    return Study("rehearsal", "", tuple(Cell(name, recipe) for name, recipe in recipes.items()), None, ("recall@1",))
