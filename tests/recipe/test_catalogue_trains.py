"""Every loss of the catalogue, with the miner and rates that its test file names, learns through a recipe: after a few
dozen steps on glyphs it separates unseen classes better than before, and its own value on fixed batches has fallen.
"""

import copy
from dataclasses import replace
from itertools import islice

import pytest
import torch

from lookalike import data, losses
from lookalike.data.splits import halves
from lookalike.evaluation import evaluate
from lookalike.features import embed
from lookalike.fit import defaults
from lookalike.recipe import build, of_tree, overridden
from lookalike.training import train
from tests.losses.facts import facts, training

pytestmark = pytest.mark.plain  # whole trainings: checks of shapes take longer than they do

STEPS, BATCH = 30, 32
SMALL = [
    f"train.steps={STEPS}",
    "images.size=16",
    "images.short_side=16",
    "model.channels=1",
    "model.width=32",
    "model.dim=32",
    f"sampler.batch_size={BATCH}",
    "sampler.per_class=4",
    "schedule.name=constant",
    "schedule.warmup=0",
    "optimiser.lr=1e-3",
    "train.device=cpu",
]


ALONE = [name for name in losses.names() if getattr(facts(name), "TRAINS_ALONE", True)]


@pytest.fixture(scope="session")
def glyphs(tmp_path_factory):
    """The Latin letters and their like: 60 classes, half of them to train on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKALIKE_CACHE", str(tmp_path_factory.mktemp("glyphs")))
        whole = data.load("glyphs", size=16, difficulty=0.3)
    return halves(whole.subset(whole.labels < 60).dense())


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_every_loss_ends_better_than_it_began(name, glyphs):
    recipe = of_tree(overridden(defaults.every()[0], [*SMALL, *training(name), *getattr(facts(name), "FEW_STEPS", [])]))
    train_images, unseen = glyphs.where(split="train").dense(), glyphs.where(split="test")
    model = build.model(recipe)
    loop = build.loop(recipe, model, train_images)
    fixed = [torch.tensor(rows) for rows in islice(build.sampler(recipe, train_images), 3)]  # as those it learns from
    raw = replace(model, geometry="none")  # losses have their own

    def measured():
        loss = copy.deepcopy(loop.objective.loss)
        if isinstance(loss, losses.HierarchicalProxy):
            loss.clustered.fill_(False)  # the coarse level is added only after an epoch: it was no part of `before`
        if getattr(loss, "generator", None) is not None:
            loss.generator = torch.Generator().manual_seed(0)  # the same tuples each time
        with torch.no_grad():
            values = [float(loss(embed(raw, train_images.subset(rows)), train_images.labels[rows])) for rows in fixed]
        return evaluate(embed(model, unseen), unseen.labels, metrics="map@r")["map@r"], sum(values) / len(values)

    before = measured()
    ending = train(loop, build.plan(recipe, STEPS))
    after = measured()
    assert ending.steps == STEPS
    assert after[0] > before[0], f"map@r of unseen classes: {before[0]:.4f}, then {after[0]:.4f}"
    assert after[1] < before[1], f"loss on the same images: {before[1]:.4f}, then {after[1]:.4f}"
