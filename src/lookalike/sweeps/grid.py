"""A study as a TOML file: a recipe, what is changed in all cells, named rows of changes, a grid across them, seeds.

recipe = "glyphs.toml"              # from where this file is; another one is another dataset
data = "glyphs"                     # as for lookalike fit; optional
seeds = 3
folds = 4                           # each fold of cross_validation as a cell of its own; optional
baseline = "all pairs"              # the row that the others are compared with
metrics = ["recall@1", "map@r"]     # "train:rho" is measured on the train images

[change]                            # parts of a recipe: in all cells
loss = { name = "binomial_deviance" }
[rows."all pairs"]                  # in the cells of a row
[rows."mined pairs"]
miner.name = "multi_similarity"
[grid]                              # every row with every combination of these
sampler.batch_size = [32, 64]
[compare]                           # further pairs, beside those with the baseline
"mined pairs, batch_size 64" = ["all pairs, batch_size 64"]
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.errors import check, unknown
from lookalike.recipe import Recipe, layer_of, layered, of_tree, to_toml, tree

Tree = Mapping[str, Any]
KEYS = ("title", "recipe", "data", "seeds", "folds", "baseline", "compare", "metrics", "change", "rows", "grid")
METRICS = ("recall@1", "map@r")
TRAIN = "train:"


class Cell(NamedTuple):
    """One run of a study.

    row: the row of the table that it belongs to.
    recipe: the whole of it, with one seed and one fold.
    """

    row: str
    recipe: Recipe

    @property
    def name(self) -> str:
        fold = self.recipe.protocol.fold
        return f"{self.row}, seed {self.recipe.seed}" + (f", fold {fold}" if fold is not None else "")

    @property
    def run(self) -> tuple[int, int]:
        """Seed and fold, by which the cells of two rows are paired; 0: no fold of its own."""
        return self.recipe.seed, self.recipe.protocol.fold or 0

    @property
    def key(self) -> str:
        """The name of its folder: another recipe is another folder, so that nothing old is taken for new."""
        digest = blake2b(to_toml(self.recipe).encode(), digest_size=5).hexdigest()
        row = re.sub("[^a-z0-9]+", "-", self.row.lower()).strip("-")[:60]
        seed, fold = self.run
        return f"{row}-seed-{seed}-" + (f"fold-{fold}-" if fold else "") + digest


@dataclass(frozen=True)
class Study:
    """What a study file says.

    title: above its tables.
    source: where the images are, as `data.load` takes it.
    cells: in the order they are run: all rows with one seed and fold, then the next.
    baseline: the row the others are compared with; None: there is none.
    metrics: one table each; those that begin with "train:" are measured on the train images.
    compare: further pairs: a row, and the one it is compared with.
    """

    title: str
    source: str
    cells: tuple[Cell, ...]
    baseline: str | None
    metrics: tuple[str, ...]
    compare: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Seeds and folds, which every row has."""
        return list(dict.fromkeys(cell.run for cell in self.cells))

    @property
    def digest(self) -> str:
        """Of all cells with their whole recipes, wherever the images lie: another plan is another study."""
        recipes = (replace(cell.recipe, data=replace(cell.recipe.data, source="")) for cell in self.cells)
        keys = (Cell(cell.row, recipe).key for cell, recipe in zip(self.cells, recipes, strict=True))
        return sha256("\n".join(keys).encode()).hexdigest()[:16]


def read(
    path: str | Path, source: str | None = None, recipe: str | Path | None = None, overrides: Iterable[str] = ()
) -> Study:
    """The study in the file `path`; `recipe` takes the place of the one it names, `overrides` go into all cells."""
    path = Path(path)
    values = tree(path)
    for key in values:
        if key not in KEYS:
            raise unknown("key of a study", key, KEYS)
    check("recipe" in values or recipe is not None, f'{path} does not name a recipe: add recipe = "FILE.toml"')
    base = tree(recipe) if recipe is not None else tree(path.parent / values["recipe"])
    common = (values.get("change", {}), layer_of(overrides))
    every = layered(base, *common)
    where = source or values.get("data") or every.get("data", {}).get("source") or ""
    metrics = tuple(values.get("metrics", METRICS))
    seeds = values.get("seeds", 1)
    check(isinstance(seeds, int) and seeds > 0, f"{path}: seeds is a number of runs, such as 3, not {seeds!r}")
    folds = values.get("folds", 0)
    check(isinstance(folds, int) and folds >= 0, f"{path}: folds is how many of them are run, such as 4, not {folds!r}")
    cells = [
        Cell(row, _recipe(layered(base, *common, *_fold(fold), *changes), seed, str(where), metrics))
        for seed in range(every.get("seed", 0), every.get("seed", 0) + seeds)
        for fold in (range(1, folds + 1) if folds else [0])
        for row, changes in _rows(values.get("rows", {}), values.get("grid", {}))
    ]
    pairs = tuple((row, against) for row, others in values.get("compare", {}).items() for against in others)
    study = Study(values.get("title", path.stem), str(where), tuple(cells), values.get("baseline"), metrics, pairs)
    for name in (*([] if study.baseline is None else [study.baseline]), *(name for pair in pairs for name in pair)):
        if name not in study.rows:
            raise unknown("row to compare with", name, study.rows)
    return study


def _fold(fold: int) -> list[Tree]:
    """The layer that makes a cell one fold of the train classes."""
    return [{"protocol": {"name": "cross_validation", "fold": fold}}] if fold else []


def _rows(rows: Tree, grid: Tree) -> Iterator[tuple[str, list[Tree]]]:
    """Names of all rows of the table, with their layers of changes."""
    axes = list(_axes(grid, ""))
    for name, changes in (rows or {"": {}}).items():
        for values in product(*(choices for _, choices in axes)):
            words = [name] if name else []
            layers = [changes]
            for (key, _), value in zip(axes, values, strict=True):
                words.append(_word(key, value))
                layers.append(_nested(key, value))
            yield ", ".join(words) or "the recipe", layers


def _word(key: str, value: Any) -> str:
    """A value of the grid as people write it.

    >>> _word("sampler.batch_size", 32), _word("sampler", {"name": "class_balanced", "per_class": 4})
    ('batch_size 32', 'class_balanced 4')
    """
    if isinstance(value, Mapping):
        return " ".join(str(part) for part in value.values())
    return f"{key.rsplit('.', 1)[-1]} {value}"


def _axes(grid: Tree, where: str) -> Iterator[tuple[str, list[Any]]]:
    for key, value in grid.items():
        if isinstance(value, Mapping):
            yield from _axes(value, f"{where}{key}.")
        else:
            check(isinstance(value, list) and len(value) > 0, f"grid.{where}{key} is a list of values, not {value!r}")
            yield f"{where}{key}", value


def _nested(key: str, value: Any) -> dict[str, Any]:
    first, dot, rest = key.partition(".")
    return {first: _nested(rest, value) if dot else value}


def _recipe(values: Tree, seed: int, source: str, metrics: tuple[str, ...]) -> Recipe:
    recipe = of_tree(values)
    on_test = tuple(name for name in metrics if not name.startswith(TRAIN))
    on_train = tuple(name.removeprefix(TRAIN) for name in metrics if name.startswith(TRAIN))
    return replace(
        recipe,
        seed=seed,
        data=replace(recipe.data, source=source),
        protocol=replace(recipe.protocol, seeds=1),
        evaluation=replace(recipe.evaluation, metrics=on_test, train=on_train),
    )
