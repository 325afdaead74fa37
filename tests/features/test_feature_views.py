"""Features in the place of images: every loss, miner, sampler, strategy and regulariser trains on them unchanged."""

import copy
from collections import Counter
from itertools import count

import numpy as np
import pytest
import torch

from lookalike import losses, miners, samplers
from lookalike.data import arrays
from lookalike.data.images.view import Ticket
from lookalike.errors import UserError
from lookalike.features import FeatureViews, embed, embed_features, extract
from lookalike.fit.prepare import fill_bank, train_features
from lookalike.processes import Ranks
from lookalike.recipe import build, of_tree, overridden
from lookalike.recipe.validity import check_recipe
from lookalike.training import Plan, train
from lookalike.training.stream import stream
from tests.losses.facts import training

pytestmark = pytest.mark.plain  # whole trainings: checks of shapes take longer than they do

RECIPE = {
    "data": {"validation": 0.2},
    "features": {"views": 2, "backend": "torch"},
    "images": {"preset": "glyphs", "size": 16, "short_side": 16},
    "model": {"backbone": "conv4", "width": 8, "channels": 1, "dim": 6},
    "loss": {"name": "triplet"},
    "sampler": {"name": "class_balanced", "batch_size": 12, "per_class": 3},
    "optimiser": {"lr": 0.01},
    "train": {"steps": 3, "validate_every": 3, "device": "cpu"},
}


@pytest.fixture(scope="module")
def train_images():
    images = np.random.default_rng(0).integers(0, 256, (48, 20, 20), dtype=np.uint8)
    kinds = [f"kind {row // 24}" for row in range(48)]
    return arrays(images, [f"class {row // 6}" for row in range(48)], categories=kinds)


def built(train_images, *settings):
    recipe = of_tree(overridden(RECIPE, settings))
    check_recipe(recipe)
    model = build.model(recipe)
    loop = build.loop(recipe, model, train_images, train_features(recipe, model, train_images))
    fill_bank(recipe, loop, model, train_images)
    return recipe, model, loop


def trained(train_images, *settings):
    """The model after three steps, and its weights before them."""
    recipe, model, loop = built(train_images, *settings)
    before = copy.deepcopy(model.embedder.state_dict())
    figures = count()  # ever better: the last weights are kept
    ending = train(loop, build.plan(recipe, 3), validate=lambda: {"map@r": next(figures)})
    assert ending.steps == 3
    return model, before


def check_head_alone_learnt(model, before):
    changed = {name for name, value in model.embedder.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert all(name.startswith("head.") for name in changed), changed
    assert all(value.isfinite().all() for value in model.embedder.state_dict().values())


@pytest.mark.parametrize("name", losses.names())
def test_every_loss_trains_the_head(train_images, name):
    slack = ["loss.positive_slack=0.0"] if name == "intra_pair_variance" else []  # vectors of noise are all alike
    check_head_alone_learnt(*trained(train_images, *training(name), *slack, "optimiser.lr=0.01"))


@pytest.mark.parametrize("name", miners.names())
def test_every_miner(train_images, name):
    check_head_alone_learnt(*trained(train_images, f"miner.name={name}", "loss.name=triplet"))


SAMPLERS = {
    "one_per_class": ["sampler.batch_size=4", "loss.name=proxy_nca"],
    "category_random": ["sampler.batch_size=12"],
    "category_pairs": ["sampler.batch_size=12"],
    "class_random": ["sampler.batch_size=12"],
}


@pytest.mark.parametrize("name", samplers.names())
def test_every_sampler(train_images, name):
    settings = SAMPLERS.get(name, ["sampler.batch_size=12", "sampler.per_class=2"])
    check_head_alone_learnt(*trained(train_images, f"sampler.name={name}", *settings))


@pytest.mark.parametrize(
    "settings",
    [
        ["ccp.proxies=2", "ccp.pool=3", "loss.name=margin_contrastive"],
        ["mixup.alpha=2.0"],
        ["memory.batches=2", "memory.start=1", "loss.name=cosine_contrastive"],
        ["regularisers.embedding_norm.weight=0.1"],
        ["regularisers.spectral_decay.weight=0.1"],
        ["model.hidden=10"],
        ["model.head=principal"],
        ["train.chunk=5"],
        ["model.layer_norm=true", "optimiser.head_lr=0.1"],
    ],
    ids=lambda settings: settings[0],
)
def test_every_strategy(train_images, settings):
    check_head_alone_learnt(*trained(train_images, *settings))


def test_training_is_that_of_plain_loops(train_images):
    """One Adam step after another on the centre features, with the sampler's own batches."""
    recipe, model, loop = built(train_images, "features.views=0", "loss.name=multi_similarity")
    head = copy.deepcopy(model.embedder.head)
    points = extract(model.headless(), train_images)
    batches = iter(build.sampler(recipe, train_images))
    optimiser = torch.optim.Adam(head.parameters(), lr=0.01)
    loss = losses.build("multi_similarity")
    for _ in range(3):
        rows = torch.tensor(next(batches))
        optimiser.zero_grad()
        loss(head(points[rows]), train_images.labels[rows]).backward()
        optimiser.step()
    train(loop, Plan(3, log_every=1))
    for one, other in zip(head.parameters(), model.embedder.head.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(embed_features(model, points), embed(model, train_images), atol=1e-5, rtol=0)


def test_a_ticket_always_takes_the_same_view_and_all_views_are_taken():
    vectors = torch.arange(40.0).view(5, 4, 2)
    views = FeatureViews(vectors, torch.arange(5), seed=3)
    tickets = [Ticket(row, epoch, 0, place) for epoch in range(30) for place, row in enumerate([4, 0, 4, 1])]
    batch = views.batch(tickets)
    again = FeatureViews(vectors, torch.arange(5), seed=3)
    each = [again[ticket] for ticket in reversed(tickets)][::-1]
    assert torch.equal(batch.image, torch.stack([sample.image for sample in each]))
    assert batch.row.tolist() == batch.label.tolist() == [ticket.row for ticket in tickets]
    taken = Counter(int(vector[0] % 8) // 2 for vector in batch.image)
    assert set(taken) == {0, 1, 2, 3}
    assert min(taken.values()) > 15
    other = FeatureViews(vectors, torch.arange(5), seed=4).batch(tickets)
    assert not torch.equal(other.image, batch.image)


def test_processes_share_a_batch(train_images):
    recipe, _, loop = built(train_images)
    whole = next(stream(loop.dataset, build.sampler(recipe, train_images)))
    shares = [next(stream(loop.dataset, build.sampler(recipe, train_images), 0, Ranks(rank, 2))) for rank in (0, 1)]
    both = torch.cat([share.row for share in shares])
    assert sorted(both.tolist()) == sorted(whole.row.tolist())
    by_row = {int(row): vector for row, vector in zip(whole.row, whole.image, strict=True)}
    for share in shares:
        for row, vector in zip(share.row.tolist(), share.image, strict=True):
            assert torch.equal(vector, by_row[row])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["features.views=-1"], "features.views"),
        (["features.view=2"], "did you mean 'views'"),
        (["features.backend=tensorflow"], "backend"),
        (["model.dim=none"], "set model.dim"),
        (["model.unfreeze_epoch=1"], "keeps the backbone frozen"),
        (["model.hidden=8", "model.head=principal"], "cannot start as principal components"),
        (['mixup.places=["block1"]'], "set mixup.places to input"),
    ],
)
def test_mistakes(train_images, settings, message):
    with pytest.raises(UserError, match=message):
        built(train_images, *settings)
