"""Ways to read the features of a network: centred, whitened, in few components, by a head, or by both."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from lookalike.fit.prepare import LabelledFeatures, start_head
from lookalike.geometry import normalise
from lookalike.models import Model, Readout, principal_axes
from lookalike.models.encoding import evaluating
from lookalike.models.readout import CentredFeatures, side_by_side
from lookalike.models.whitening import whitened_axes, whitening
from lookalike.recipe import Recipe
from lookalike.recipe.network import embedder_of
from lookalike.recipe.settings import HeadOnly

FITTED, WITH_HEAD = 1, 2  # how far a readout departs from the features themselves
WEIGHTS = (0.3, 0.5, 0.7)  # of the head beside the features
HEAD = HeadOnly(steps=400, lr=1e-3, batch_size=64)  # beyond that, a head on frozen features learns its classes by heart


class FittedReadout(NamedTuple):
    """A readout with what it needs from train images; `head` is None where the network's own is read."""

    name: str
    complexity: int
    readout: Readout
    mean: Float[Tensor, " width"]
    directions: Float[Tensor, "k width"] | None = None
    head: nn.Sequential | None = None

    @torch.inference_mode()
    def vectors(self, model: Model, points: Float[Tensor, "n width"]) -> Float[Tensor, "n d"]:
        """What `self.model(model)` makes of images with these features."""
        kind, centred = self.readout.kind, CentredFeatures(points.shape[1], self.readout.components)
        if kind == "features":
            centred.fill(self.mean, self.directions)
            return centred(points)  # type: ignore[no-any-return]
        head = self.head or embedder_of(model).head
        with evaluating(head):
            read = head(points.to(model.device)).cpu()
        if kind == "head":
            return read  # type: ignore[no-any-return]
        centred.fill(self.mean, self.directions)
        return side_by_side(read, centred(points), self.readout.head_weight)

    def model(self, model: Model) -> Model:
        """The network read in this way."""
        own = model
        if self.head is not None:
            own = replace(model, embedder=copy.deepcopy(model.embedder))
            embedder_of(own).head = copy.deepcopy(self.head)
        if self.readout.kind != "head":
            own = own.with_readout(self.readout, self.mean, self.directions)
        return replace(own, geometry="sphere")


def of_features(
    recipe: Recipe, points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"]
) -> Iterator[FittedReadout]:
    """The centred features, whole and whitened, and as many components of both as the head has dimensions."""
    directions = normalise(points, "sphere")
    mean = directions.mean(0)
    centred, width, whole = directions - mean, points.shape[1], Readout("features")
    yield FittedReadout("centred features", FITTED, whole, mean)
    whiten = whitening(centred, labels)
    yield FittedReadout("whitened features", FITTED, replace(whole, components=width), mean, whiten)
    count = dimensions(recipe)
    if count < min(points.shape):
        few = replace(whole, components=count)
        yield FittedReadout("principal components", FITTED, few, mean, principal_axes(centred, count))
        yield FittedReadout("whitened components", FITTED, few, mean, whitened_axes(centred, whiten, count))


def dimensions(recipe: Recipe) -> int:
    """The dimensions of a head, and of readouts in few components."""
    most = recipe.train.dim
    return most if isinstance(most, int) else recipe.model.architecture.dim or 128


def beside(head: nn.Sequential | None, features: FittedReadout, complexity: int) -> Iterator[FittedReadout]:
    """A head side by side with features."""
    for weight in WEIGHTS:
        readout = Readout("both", features.readout.components, weight)
        name = f"head and {features.name}, {weight:.0%} head"
        yield FittedReadout(name, complexity, readout, features.mean, features.directions, head)


def with_own_head(recipe: Recipe, model: Model, taught: LabelledFeatures) -> Iterator[FittedReadout]:
    """All readouts of a network that is not trained: of its features, and by a head that is trained on them."""
    readouts = list(of_features(recipe, taught.points, taught.labels))
    yield from readouts
    if recipe.model.architecture.dim is None or recipe.model.architecture.dim > min(taught.points.shape):
        return
    head = trained_head(recipe, model, taught)
    yield FittedReadout("head on the features", WITH_HEAD, Readout(), readouts[0].mean, head=head)
    whitened = next(readout for readout in readouts if readout.name == "whitened features")
    yield from beside(head, whitened, WITH_HEAD)


def trained_head(recipe: Recipe, model: Model, taught: LabelledFeatures) -> nn.Sequential:
    """A head that starts from the principal components and learns the recipe's loss on features; `model` stays.

    Labels are learnt in proportion to their chances, where there are some.
    """
    dense = taught._replace(labels=torch.unique(taught.labels, return_inverse=True)[1])
    own = replace(model, embedder=copy.deepcopy(model.embedder))
    start = "principal" if recipe.model.architecture.hidden is None else "default"
    start_head(replace(recipe, head=HEAD, model=replace(recipe.model, head=start)), own, dense)
    return embedder_of(own).head


@contextmanager
def one_thread() -> Iterator[None]:
    """For products so small that threads mostly wait for each other, which takes very long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
