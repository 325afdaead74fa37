"""The network and the size of its images, by sequential halving: every cell is judged alike, the better ones longer.

Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed Bandits", ICML 2013: all cells see a few images, the
better half of them more, and so on. A cell that is surely worse, in pairs over classes, goes at once, so that choosing
ends when one is ahead. Cropped or warped photos are compared only for the few cells that are left: each is measured
beside its twin, the same network with the other kind. Features stay in the cache, where the run itself finds them.
"""

import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike.data import Dataset
from lookalike.errors import UserError
from lookalike.files import write_text
from lookalike.fit import stages
from lookalike.fit.judge_network import CLASSES, Measured, measure
from lookalike.fit.networks import NetworkAtSize, at, cells, cheapest, settled, twins
from lookalike.fit.plan import CHOOSING, EXPORT
from lookalike.fit.result_content import header
from lookalike.fit.sample import ONNX, fitting, seconds_per_image, turns
from lookalike.models.backends import possible as has_onnx
from lookalike.processes import Ranks
from lookalike.protocols.class_disjoint import usable
from lookalike.recipe import Recipe, build, to_toml
from lookalike.recipe.protocol import tasks
from lookalike.runs import OpenRun

DECISION = "networks"
UNLIMITED = 240.0  # seconds for choosing, where there are no minutes
FIRST, MOST = 48, 1024  # images of the first round and of the last
EACH = 6  # images of a class, until all classes are there
WORTH = 1.5  # times as many images that a further round must have
SURE = 0.8  # the interval outside of which a cell is surely worse: one-sided 90%
PAYS = 0.01  # map@r that a slower cell must add
FEW = 4  # cells that are measured beside their twins
LONG = 1.1  # longer side by shorter side of a photo, from which on its centre is not nearly all of it
Row = Mapping[str, Any]


def choose_network(recipe: Recipe, dataset: Dataset, run: OpenRun) -> Recipe:
    """The recipe with the network and size that pay, for the images of `dataset`; its test classes are left alone."""
    grid = cells(recipe)
    if len(grid) == 1 and not (twins(recipe, grid[0]) and are_long(dataset)):
        return recipe
    made = run.decisions.get(DECISION) or _begun(recipe, grid)
    if "chosen" not in made:
        train = stages.split(dataset, tasks(recipe)[0].recipe).train
        train = train.subset(~train.of_origin("found")).dense()  # groups that one network found favour it
        reason = _why_not(recipe, train)
        if reason is None:
            made = _Rounds(recipe, train, len(dataset), run).to_the_end(made)
        else:
            made |= {"chosen": usual(recipe, grid)}
            run.note(f"{NetworkAtSize(*made['chosen']).name}, without measuring others: {reason}")
        run.decisions.make(DECISION, made)
    recipe = settled(recipe, NetworkAtSize(*made["chosen"]), made.get("pooling"))
    write_text(run.folder.recipe, to_toml(recipe, header()))
    return recipe


def first_recipe(recipe: Recipe, run: OpenRun) -> Recipe:
    """The recipe with the cell that a run begins with, in whose size its images are audited."""
    made = run.decisions.get(DECISION)
    return at(recipe, cheapest(recipe) if made is None else NetworkAtSize(*made["first"]))


def _why_not(recipe: Recipe, train: Dataset) -> str | None:
    """Why the train classes cannot choose."""
    if len(tasks(recipe)) > 1:
        return "what trains in one of several runs tests in another"
    if train.sets is not None or usable(train) < 2 * CLASSES:
        return f"that takes {2 * CLASSES} train classes with two or more labelled images"
    return None


def usual(recipe: Recipe, grid: Sequence[NetworkAtSize]) -> NetworkAtSize:
    """The first network, at the size nearest to that of its training."""
    return _by_network(recipe, grid)[0]


def _by_network(recipe: Recipe, grid: Sequence[NetworkAtSize]) -> list[NetworkAtSize]:
    """One network after the other, the size nearest to that of its training first."""
    names = list(dict.fromkeys(cell.backbone for cell in grid))
    models = {cell.backbone: build.model(at(recipe, cell)) for cell in grid if cell.size == grid[0].size}
    own = {name: build.embedder_of(model).backbone.preprocessing.crop for name, model in models.items()}
    return sorted(grid, key=lambda cell: (names.index(cell.backbone), abs(cell.size - own[cell.backbone])))


def _begun(recipe: Recipe, grid: Sequence[NetworkAtSize]) -> dict[str, Any]:
    """Before the first round: the cheapest cell, which soon gives a model, then what is likely to be good."""
    first = cheapest(recipe)
    left = [first, *(cell for cell in _by_network(recipe, grid) if cell != first)]
    return {"first": first, "left": left, "images": 0, "backend": "torch", "rows": []}


def sample_order(train: Dataset, seed: int) -> Int64[Tensor, " n"]:
    """Train images class by class, a few of each, then a few more of each: the first of them are a sample."""
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(train), generator=generator)
    shuffled = shuffled[train.class_sizes()[train.labels[shuffled]] > 1]
    labels, rank = train.labels[shuffled], torch.randperm(train.classes, generator=generator)
    return shuffled[torch.argsort(turns(labels) // EACH * train.classes + rank[labels], stable=True)]


def are_long(dataset: Dataset) -> bool:
    """Whether a quarter or more of the photos, judged by some of them, are long."""
    photos = [dataset.images.open(row) for row in torch.linspace(0, len(dataset) - 1, FIRST).long().tolist()]
    shapes = torch.tensor([[photo.height, photo.width] for photo in photos]).double().log()
    return bool((shapes[:, 0] - shapes[:, 1]).abs().quantile(0.75) > math.log(LONG))


class _Rounds:
    """The rounds of a choice. Each is a decision of the run, from which a resumed run goes on."""

    def __init__(self, recipe: Recipe, train: Dataset, total: int, run: OpenRun) -> None:
        self.recipe, self.train, self.total, self.run = recipe, train, total, run
        self.order = sample_order(train, recipe.seed)[:MOST]
        self.progress = run.stage("choosing network and size")
        minutes = recipe.train.minutes
        self.ends = time.monotonic() + (UNLIMITED if minutes is None else CHOOSING * 60 * minutes)

    def to_the_end(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """All rounds for which there is time, and the cell that pays."""
        made = dict(made)
        while True:
            made |= self._with_twins(made)
            planned = self._planned(made) or self._with_last_twins(made)
            if planned is None:
                break
            made |= planned
            measured = self._round([NetworkAtSize(*cell) for cell in made["left"]], made)
            left = self._better_half(measured)
            left[0].model.save(self.run.folder.model)
            made |= {"rows": self._rows(made, measured), "left": [each.cell for each in left]}
            self.run.decisions.make(DECISION, made)
        taken = self._taken([row for row in made["rows"] if row["images"] == made["images"]])
        rows = [row | {"chosen": row is taken} for row in made["rows"]]
        return made | {"rows": rows, "chosen": _cell(taken), "pooling": taken.get("pooling")}

    @cached_property
    def long(self) -> bool:
        return are_long(self.train)

    def _with_twins(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """The cells that are left and their twins, once they are few and where photos are long."""
        left = [NetworkAtSize(*cell) for cell in made["left"]]
        if not made["rows"] or len(left) > FEW or made.get("twins"):
            return {}
        others = [twin for cell in left for twin in twins(self.recipe, cell)] if self.long else []
        return {"twins": True, "left": left + others}

    def _with_last_twins(self, made: Mapping[str, Any]) -> dict[str, Any] | None:
        """Where time has ended before twins were measured: the best cell with its twins, on the images it has seen."""
        if made.get("last"):
            return None
        last = [row for row in made["rows"] if row["images"] == made["images"]]
        best = _cell(max(last, key=lambda row: row["metrics"]["map@r"]))
        new = [twin for twin in twins(self.recipe, best) if _row(made["rows"], twin) is None]
        return {"twins": True, "last": True, "left": [best, *new]} if new and self.long else None

    def _planned(self, made: Mapping[str, Any]) -> dict[str, Any] | None:
        """How many images the next round has, and what computes their features; None: there is no next round."""
        before, backend, rows = made["images"], made["backend"], made["rows"]
        if before == 0:
            return {"images": min(FIRST, len(self.order))}
        left = [NetworkAtSize(*cell) for cell in made["left"]]
        if len(left) < 2:
            return None
        known = [cell for cell in left if _row(rows, cell) is not None]
        rounds = math.ceil(math.log2(len(left))) + (not made.get("twins"))
        seconds = Ranks.current().from_first(self._left) / rounds
        each, again = (sum(_seconds(rows, cell) for cell in group) for group in (left, known))
        reach = {} if backend == "auto" else {"torch": (seconds + before * again) / each}
        if has_onnx() and self.recipe.model.weights is not None:
            new = backend != "auto"  # then each network is exported, and computes all images again
            exported = len({cell[:2] for cell in left})
            kept = 0.0 if new else before * again
            reach["auto"] = ((seconds - new * EXPORT * exported) * ONNX + kept) / each
        best = max(reach, key=lambda name: reach[name])
        count = min(len(self.order), int(reach[best]))
        whole = count == len(self.order) > before
        least = WORTH * before if len(known) == len(left) else before
        return {"images": count, "backend": best} if whole or count >= least else None

    def _left(self) -> float:
        return self.ends - time.monotonic()

    def _round(self, left: Sequence[NetworkAtSize], made: Mapping[str, Any]) -> list[Measured]:
        """The cells on the same images, as many as there is time for: half of it in the first round; the last twins
        are always measured."""
        spare = -math.inf if made.get("last") else 0.0 if made["rows"] else self._left() / 2
        sample = self.train.subset(self.order[: made["images"]])
        measured: list[Measured] = []
        for place, cell in enumerate(left):
            if measured and Ranks.current().from_first(self._left) < spare:
                break
            try:
                known = _seconds(made["rows"], cell) if made["rows"] else None
                measured.append(measure(at(self.recipe, cell), sample, made["backend"], known))
            except UserError as refusal:  # not every network takes every size
                if cell == left[-1] and not measured:
                    raise
                self.run.note(f"{cell.name} is left out: {refusal}")
                continue
            if not self.run.folder.model.exists():  # from here on there is a model, whatever becomes of the run
                measured[0].model.save(self.run.folder.model)
            self.progress(place + 1, len(left))
        return measured

    def _better_half(self, measured: Sequence[Measured]) -> list[Measured]:
        """The better half, best first, without clearly worse cells."""
        most = self.recipe.train.most_ms
        quick = [each for each in measured if most is None or 1000 * each.embedding <= most]
        ranked = sorted(quick or [min(measured, key=lambda each: each.embedding)], key=lambda each: -each.value)
        half = ranked[: math.ceil(len(ranked) / 2)]
        return [each for each in half if each is half[0] or each.minus(half[0], SURE).high > 0]

    def _rows(self, made: Mapping[str, Any], measured: Sequence[Measured]) -> list[dict[str, Any]]:
        """The table so far, with the latest figures of every cell."""
        best = max(measured, key=lambda each: each.value)
        rows = {_cell(row): row for row in made["rows"]}
        for each in measured:
            rows[each.cell] = each.row(best, made["images"]) | {"photos": self._photos(each)}
        self.run.note(
            f"{best.cell.name}: map@r {best.value:.3f} on {made['images']} train photos, the best of {len(measured)}"
        )
        return list(rows.values())

    def _photos(self, measured: Measured) -> int:
        """For how many of all photos a run with this cell has time."""
        minutes = self.recipe.train.minutes
        if minutes is None:
            return self.total
        each = seconds_per_image(at(self.recipe, measured.cell), measured.decoding, measured.embedding)
        return fitting(self.total, minutes, each)

    def _taken(self, last: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The quickest of the last round that is as good as the best, each with the photos for which it has time.

        What a doubling of the images gave on the sample is taken off for each halving of the photos.
        """
        limit = self.recipe.train.most_ms or math.inf
        left = [row for row in last if row["milliseconds_per_image"] <= limit]
        left = left or [min(last, key=lambda row: row["milliseconds_per_image"])]
        most = max(row["photos"] for row in left)
        worth = {id(row): row["metrics"]["map@r"] + row["learnt"] * math.log2(row["photos"] / most) for row in left}
        enough = [row for row in left if worth[id(row)] >= max(worth.values()) - PAYS]
        return min(enough, key=lambda row: (row["milliseconds_per_image"], -worth[id(row)]))


def _cell(row: Row) -> NetworkAtSize:
    return NetworkAtSize(row["backbone"], row["size"], row.get("warp", False))


def _row(rows: Sequence[Row], cell: NetworkAtSize) -> Row | None:
    return next((row for row in rows if _cell(row) == cell), None)


def _seconds(rows: Sequence[Row], cell: NetworkAtSize) -> float:
    """The time for an image, which is the same for twins."""
    milliseconds: float = next(row["milliseconds_per_image"] for row in rows if _cell(row)[:2] == cell[:2])
    return milliseconds / 1000
