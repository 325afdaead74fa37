"""What a run can deliver, judged alike: on the same queries of validation classes, by the same measure.

Some candidates need no training: raw pixels, the features of the network as it was, centred, and their principal
components. Others read the trained network: by its head, by its centred features, or by both side by side. Whatever
wins is one `Model`.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset
from lookalike.evaluation import Result, evaluate
from lookalike.features import embed, features
from lookalike.fit.plan import AFTER
from lookalike.fit.train_model import Weights, cached_features, weights, weights_of
from lookalike.geometry import normalise
from lookalike.models import Architecture, Model, Readout, principal_axes
from lookalike.models.readout import CentredFeatures, side_by_side
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe
from lookalike.recipe.network import embedder_of
from lookalike.recipe.prepare import for_components

METRICS = ("map@r", "recall@1")
WEIGHTS = (0.3, 0.5, 0.7)  # of the head beside the features
AS_IT_WAS, NOT_TRAINED, TRAINED = 0, 1, 2  # how far a candidate is from what was there before
TIMED = 32  # images


@dataclass(frozen=True)
class Candidate:
    """A model that could be delivered: `create` makes it, `result` is what validation says of it."""

    name: str
    departure: int  # AS_IT_WAS, NOT_TRAINED or TRAINED
    dim: int
    milliseconds: float  # per image
    result: Result
    create: Callable[[], Model]

    @property
    def value(self) -> float:
        return self.result["map@r"]

    def row(self, delivered: bool) -> dict[str, Any]:
        """A row of the table in result.json; intervals are over classes."""
        spans = {name: list(self.result.interval(name, over="classes")) for name in METRICS}
        return {
            "name": self.name, "metrics": {name: self.result[name] for name in METRICS}, "intervals": spans,
            "dim": self.dim, "milliseconds_per_image": self.milliseconds, "bytes_per_item": 4 * self.dim,
            "delivered": delivered,
        }  # fmt: skip


class Reading(NamedTuple):
    """A readout with the statistics of the train images; of the head it needs none."""

    readout: Readout
    mean: Float[Tensor, " width"]
    directions: Float[Tensor, "k width"] | None = None

    def vectors(self, model: Model, points: Float[Tensor, "n width"]) -> Float[Tensor, "n d"]:
        """What `model(model)` would embed images with these features to."""
        head, kind = embedder_of(model).head, self.readout.kind
        with torch.inference_mode():
            if kind == "head":
                return head(points.to(model.device)).cpu()  # type: ignore[no-any-return]
            centred = CentredFeatures(points.shape[1], self.readout.components)
            centred.fill(self.mean, self.directions)
            if kind == "features":
                return centred(points)  # type: ignore[no-any-return]
            return side_by_side(head(points.to(model.device)).cpu(), centred(points), self.readout.head_weight)

    def model(self, model: Model) -> Model:
        return replace(model.with_readout(self.readout, self.mean, self.directions), geometry="sphere")


def untrained(recipe: Recipe, model: Model, parts: Parts, judges: Dataset, progress: Any) -> list[Candidate]:
    """What needs no training, with a network that has not been trained yet. Its features are kept on disk."""
    before = weights(model)
    sample = cached_features(model, for_components(recipe, parts.train), progress)
    points = cached_features(model, judges, progress)
    pretrained = recipe.model.weights is not None
    what = "frozen features" if pretrained else "untrained network"
    cost = _milliseconds(model.headless(), judges)
    plain = _judged(what, AS_IT_WAS if pretrained else NOT_TRAINED, points, judges, cost, _frozen(model, before))
    rows = [plain]
    for name, reading in _readings(recipe, sample):
        rows.append(_judged(f"{what}, {name}", NOT_TRAINED, reading.vectors(model, points), judges, cost,
                            _frozen(model, before, reading)))  # fmt: skip
    thumbnails = _pixels(model)
    vectors = embed(thumbnails, judges)
    cost = _milliseconds(thumbnails, judges)
    departure = NOT_TRAINED if pretrained else AS_IT_WAS  # a random network is nothing that anybody had
    rows.append(_judged("raw pixels", departure, vectors, judges, cost, lambda: thumbnails))
    return rows


def _frozen(model: Model, before: Weights, reading: Reading | None = None) -> Callable[[], Model]:
    """Makes a model of the network as it was, whatever training has made of it in the meantime."""

    def create() -> Model:
        with weights_of(model.embedder, before):
            return replace(model.headless(), geometry="sphere") if reading is None else reading.model(model)

    return create


def trained(recipe: Recipe, model: Model, parts: Parts, judges: Dataset, progress: Any) -> list[Candidate]:
    """What can be read from the trained network."""
    points = features(model, judges, progress)
    rows = torch.randperm(len(parts.train), generator=torch.Generator().manual_seed(recipe.seed))[:AFTER].sort().values
    sample = features(model, parts.train.subset(rows), progress)
    cost = _milliseconds(model, judges)
    head = Reading(Readout(), torch.empty(0)).vectors(model, points)
    result = [_judged("trained network", TRAINED, head, judges, cost, lambda: model, model.geometry)]
    readings = list(_readings(recipe, sample))
    mean = readings[0][1].mean
    if model.architecture is not None and model.architecture.dim is not None:
        readings += [
            (f"head and features, {weight:.0%} head", Reading(Readout("both", head_weight=weight), mean))
            for weight in WEIGHTS
        ]
    for name, reading in readings:
        result.append(_judged(f"trained network, {name}", TRAINED, reading.vectors(model, points), judges, cost,
                              partial(reading.model, model)))  # fmt: skip
    return result


def _readings(recipe: Recipe, sample: Float[Tensor, "n width"]) -> Iterator[tuple[str, Reading]]:
    """The centred features, and as many components as the head has dimensions."""
    points = normalise(sample, "sphere")
    mean = points.mean(0)
    yield "centred features", Reading(Readout("features"), mean)
    count = recipe.train.most_dim or recipe.model.architecture.dim or 128
    if count < min(points.shape):
        axes = principal_axes(points - mean, count)
        yield "principal components", Reading(Readout("features", components=count), mean, axes)


def _judged(
    name: str, departure: int, vectors: Tensor, judges: Dataset, cost: float, create: Callable[[], Model],
    geometry: Any = "sphere",
) -> Candidate:  # fmt: skip
    result = evaluate(vectors, judges.labels, metrics=METRICS, normalise=geometry)
    return Candidate(f"{name}, {vectors.shape[1]}-D", departure, vectors.shape[1], cost, result, create)


def _pixels(like: Model) -> Model:
    """Thumbnails in the model's own colours, as the baseline has them."""
    how = like.preprocessing
    side = min(32, how.crop)
    architecture = Architecture("pixels", {"channels": how.channels, "side": side}, dim=None)
    return Model.create(architecture, preprocessing=how.sized(side, side))


def _milliseconds(model: Model, images: Dataset) -> float:
    few = images.subset(torch.arange(min(TIMED, len(images))))
    start = time.monotonic()
    embed(model, few)
    return 1000 * (time.monotonic() - start) / len(few)
