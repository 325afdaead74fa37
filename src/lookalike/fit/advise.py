"""What to expect of a run on these data, from their sizes and from the speed of a few images on this machine."""

from collections.abc import Iterator

import torch

from lookalike import data
from lookalike.data import Dataset
from lookalike.fit.choose import Source, choose
from lookalike.fit.choose_network import usual
from lookalike.fit.defaults import fit_batches
from lookalike.fit.networks import at, cells
from lookalike.fit.plan import REPORT, STEP, WORTHWHILE, minutes_needed, seconds_after
from lookalike.fit.timing import embedding_rate
from lookalike.fit.verdict import FEW_CLASSES, FEW_IMAGES
from lookalike.models import Model
from lookalike.protocols.class_disjoint import usable
from lookalike.recipe import Recipe, build, protocol

MEASURED = 32  # images
BEFORE = 1.5  # passes over all images before training: their features, and as long again for half of them to be read


def advise(source: Source) -> Iterator[str]:
    """About ten lines; nothing is trained."""
    dataset, recipe, model = choose(source, None, [])
    sizes = dataset.class_sizes()
    sizes = sizes[sizes > 0]
    yield f"data      {dataset.summary()}; {int(sizes.min())} to {int(sizes.max())} images per class"
    yield f"classes   {usable(dataset):,} of {dataset.present:,} have two or more images and can be compared"
    pretrained = recipe.model.weights is not None
    how = "pretrained, fine-tuned" if pretrained else "a small network, trained from scratch"
    colours = "grey" if model.preprocessing.channels == 1 else "colour"
    grid = cells(recipe)
    recipe = at(recipe, usual(recipe, grid))
    model = build.model(recipe)
    names, sizes_, _ = (list(dict.fromkeys(column)) for column in zip(*grid, strict=True))
    yield f"recipe    {', '.join(names)}: {how}"
    yield f"images    {' '.join(map(str, sizes_))} pixels, {colours}" + (
        ": fit measures which is best" if grid[1:] else ""
    )
    rate = _rate(model, dataset)
    yield f"speed     {rate:,.0f} images per second on this machine, measured on {min(MEASURED, len(dataset))}"
    yield f"minutes   {_minutes(recipe, dataset, rate)}: enough for about {WORTHWHILE} steps and everything else"
    yield f"expect    {_expectation(dataset, pretrained)}"
    yield f"why       {_reason(dataset, int(sizes.median()))}"
    yield f"next      lookalike fit {source} --minutes {_minutes(recipe, dataset, rate)}"


def _rate(model: Model, dataset: Dataset) -> float:
    rows = torch.linspace(0, len(dataset) - 1, min(MEASURED, len(dataset))).long()
    few = data.decoded(dataset.subset(rows), model.preprocessing.resize or model.preprocessing.crop)
    return embedding_rate(model, few)


def _minutes(recipe: Recipe, dataset: Dataset, rate: float) -> int:
    """Beside the steps: reading and embedding all images before them, and everything that `fit` expects after them."""
    parts = protocol.parts(recipe, dataset)
    batch: int = fit_batches(recipe, parts.train).sampler.settings["batch_size"]
    besides = BEFORE * len(dataset) / rate + seconds_after(recipe, parts, rate) + REPORT
    return minutes_needed(recipe, besides, STEP * batch / rate, len(cells(recipe)) > 1)


def _expectation(dataset: Dataset, pretrained: bool) -> str:
    if not pretrained:
        return "raw pixels are hard to beat with few classes; with hundreds of them training is far better"
    if dataset.present < FEW_CLASSES:
        return "the pretrained network is hard to beat with so few classes; if it is not beaten, it is delivered"
    return "fine-tuning usually beats the pretrained network; if it does not, that network is delivered"


def _reason(dataset: Dataset, images: int) -> str:
    if dataset.present < FEW_CLASSES:
        return f"{dataset.present} classes: half test, and up to a third of the others validate; more would help"
    if images < FEW_IMAGES:
        return f"{images} images in the median class: more would help"
    return "there are enough classes and images to learn from, and to tell whether training helped"
