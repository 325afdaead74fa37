"""A study as a TOML file: a recipe, what is changed in all cells, named rows of changes, a grid across them, seeds.

like = "other.toml"                 # everything as in that study, published figures apart; optional
recipe = "glyphs.toml"              # from where this file is; another one is another dataset
data = "glyphs"                     # as for lookalike fit; optional
seeds = 3
folds = 4                           # each fold of cross_validation as a cell of its own; optional
baseline = "all pairs"              # the row that the others are compared with
metrics = ["recall@1", "map@r"]     # "train:rho" is measured on the train images; see `PARTS`
note = "…"                          # what a reader of the table must know; printed below it

[change]                            # parts of a recipe: in all cells
loss = { name = "binomial_deviance" }
[rows."all pairs"]                  # in the cells of a row
[rows."mined pairs"]
miner.name = "multi_similarity"
[variants."small"]                  # every row in each of these
sampler.batch_size = 32
[grid]                              # every row with every combination of these
sampler.batch_size = [32, 64]
[compare]                           # further pairs, beside those with the baseline
"mined pairs, batch_size 64" = ["all pairs, batch_size 64"]
[published]                         # a paper's figures in %, in the order of `metrics`; "" where it has none
"all pairs" = [71.9, "45.2 ± 0.3"]
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.errors import UserError, check, unknown
from lookalike.recipe import Recipe, layer_of, layered, merged, of_tree, to_toml, tree
from lookalike.report.compare.methods import slug
from lookalike.sweeps.rows import rows_of

Tree = Mapping[str, Any]
KEYS = (
    "title",
    "like",
    "recipe",
    "data",
    "seeds",
    "folds",
    "baseline",
    "compare",
    "metrics",
    "note",
    "change",
    "rows",
    "variants",
    "grid",
    "published",
)
METRICS = ("recall@1", "map@r")
PARTS = {  # before the colon of a metric, and how the name of the result begins, or what is in it
    "train": "train images",
    "max": "each metric's maximum over training",
    "mean": "-D, mean of ",
    "medium": "medium list",
    "large": "large list",
}


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
        seed, fold = self.run
        return f"{slug(self.row)}-seed-{seed}-" + (f"fold-{fold}-" if fold else "") + digest


@dataclass(frozen=True)
class Study:
    """What a study file says.

    title: above its tables.
    source: where the images are, as `data.load` takes it.
    cells: in the order they are run: all rows with one seed and fold, then the next.
    baseline: the row the others are compared with; None: there is none.
    metrics: one table each; those that begin with "train:" are measured on the train images.
    compare: further pairs: a row, and the one it is compared with.
    published: the figures of a paper, by row and metric: mean, and deviation where it has one.
    note: what a reader of the table must know.
    refused: rows that cannot be read, and why; they have no cells.
    """

    title: str
    source: str
    cells: tuple[Cell, ...]
    baseline: str | None
    metrics: tuple[str, ...]
    compare: tuple[tuple[str, str], ...] = ()
    published: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    note: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)

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


def part_of(metric: str) -> tuple[str, str]:
    """What is measured, and the metric.

    >>> part_of("train:rho"), part_of("recall@1")
    (('train', 'rho'), ('', 'recall@1'))
    """
    part, _, name = metric.rpartition(":")
    if part and part not in PARTS:
        raise unknown("part of a metric", part, PARTS)
    return part, name


def read(
    path: str | Path, source: str | None = None, recipe: str | Path | None = None, overrides: Iterable[str] = ()
) -> Study:
    """The study in the file `path`; `recipe` takes the place of the one it names, `overrides` go into all cells.

    A row that no recipe can be made of is refused by its name, and the others are read.
    """
    path = Path(path)
    values = _values(path)
    check("recipe" in values or recipe is not None, f'{path} does not name a recipe: add recipe = "FILE.toml"')
    base = tree(recipe) if recipe is not None else tree(values["recipe"])
    common = (values.get("change", {}), layer_of(overrides))
    where = source or values.get("data") or layered(base, *common).get("data", {}).get("source") or ""
    rows = dict(rows_of(values))
    check(bool(rows), f"{path} has no rows: every one of them is none")
    pairs = [(row, against) for row, others in values.get("compare", {}).items() for against in others]
    baseline = values.get("baseline")
    for name in (*([] if baseline is None else [baseline]), *(name for pair in pairs for name in pair)):
        if name not in rows:
            raise unknown("row to compare with", name, rows)
    metrics = tuple(values.get("metrics", METRICS))
    cells, refused = [], {}
    for seed, fold in _runs(values, layered(base, *common).get("seed", 0), path):
        for row, changes in rows.items():
            try:
                tables = layered(base, *common, *_fold(fold), *changes)
                cells.append(Cell(row, _recipe(tables, seed, str(where), metrics)))
            except UserError as mistake:
                refused[row] = str(mistake)
    published = _published(values.get("published", {}), metrics, rows)
    whole = Study(
        values.get("title", path.stem),
        str(where),
        tuple(cells),
        baseline,
        metrics,
        tuple(pairs),
        published,
        values.get("note", ""),
    )
    return without(whole, refused)


def without(study: Study, refused: Mapping[str, str]) -> Study:
    """The study without the rows that were refused; where none is left, the first refusal is the mistake."""
    cells = tuple(cell for cell in study.cells if cell.row not in refused)
    for row, why in refused.items():
        check(bool(cells), f"row '{row}' cannot run: {why}")
    baseline = None if study.baseline in refused else study.baseline
    compare = tuple(pair for pair in study.compare if not refused.keys() & set(pair))
    return replace(study, cells=cells, baseline=baseline, compare=compare, refused=refused)


def _runs(values: Tree, first: int, path: Path) -> list[tuple[int, int]]:
    """Seeds and folds that every row is run with; fold 0: the recipe says."""
    seeds, folds = values.get("seeds", 1), values.get("folds", 0)
    check(isinstance(seeds, int) and seeds > 0, f"{path}: seeds is a number of runs, such as 3, not {seeds!r}")
    check(isinstance(folds, int) and folds >= 0, f"{path}: folds is how many of them are run, such as 4, not {folds!r}")
    return [(seed, fold) for seed in range(first, first + seeds) for fold in (range(1, folds + 1) if folds else [0])]


def _values(path: Path) -> dict[str, Any]:
    """The tables of a study file, on top of those of the study that it is like."""
    values = tree(path)
    for key in values:
        if key not in KEYS:
            raise unknown("key of a study", key, KEYS)
    if "recipe" in values:
        values["recipe"] = path.parent / values["recipe"]
    if "like" not in values:
        return values
    known = _values(path.parent / values.pop("like"))
    return merged({key: value for key, value in known.items() if key != "published"}, values)


def _published(table: Tree, metrics: tuple[str, ...], rows: Iterable[str]) -> dict[str, dict[str, tuple[float, ...]]]:
    """The figures of a paper as shares.

    >>> _published({"MS": [77.3, "", "24.1 ± 0.2"]}, ("recall@1", "recall@2", "map@r"), ["MS"])
    {'MS': {'recall@1': (0.773,), 'map@r': (0.241, 0.002)}}
    """
    result: dict[str, dict[str, tuple[float, ...]]] = {}
    for row, figures in table.items():
        if row not in rows:
            raise unknown("row with published figures", row, rows)
        check(len(figures) <= len(metrics), f"published '{row}' has {len(figures)} figures for {len(metrics)} metrics")
        known = [(name, str(figure).split("±")) for name, figure in zip(metrics, figures, strict=False) if figure != ""]
        try:
            result[row] = {name: tuple(round(float(part) / 100, 6) for part in parts) for name, parts in known}
        except ValueError:
            raise UserError(f"published '{row}': a figure is a number such as 71.9, or '71.9 ± 0.3'") from None
    return result


def _fold(fold: int) -> list[Tree]:
    """The layer that makes a cell one fold of the train classes."""
    return [{"protocol": {"name": "cross_validation", "fold": fold}}] if fold else []


def _recipe(values: Tree, seed: int, source: str, metrics: tuple[str, ...]) -> Recipe:
    recipe = of_tree(values)
    # category_nmi comes with nmi, where the data have categories
    on_test = dict.fromkeys(name.removeprefix("category_") for part, name in map(part_of, metrics) if part != "train")
    on_train = tuple(name for part, name in map(part_of, metrics) if part == "train")
    return replace(
        recipe,
        seed=seed,
        data=replace(recipe.data, source=source),
        protocol=replace(recipe.protocol, seeds=1),
        evaluation=replace(recipe.evaluation, metrics=tuple(on_test), train=on_train),
    )
