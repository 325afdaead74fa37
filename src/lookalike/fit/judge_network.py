"""One network at one size, judged without training: by the better of its features as they are and whitened.

Of a network with a class token, every pooling is judged: its features are computed once for all of them.

Folds of train classes judge it, each by a whitening fitted to the other folds: the value is map@r on held-out classes.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike import data
from lookalike.data import Dataset
from lookalike.data.images.decoded_cache import Decoded
from lookalike.evaluation import Result, compare
from lookalike.evaluation.statistics.paired import Difference
from lookalike.features import extract
from lookalike.fit import stages
from lookalike.fit.folds import judge_by_folds
from lookalike.fit.networks import NetworkAtSize, cell_of, pooled
from lookalike.fit.readouts import one_thread
from lookalike.fit.timing import embedding_seconds
from lookalike.geometry import normalise
from lookalike.models import Model, Readout
from lookalike.models.backends import BackendName
from lookalike.models.whitening import whitening
from lookalike.processes import Ranks
from lookalike.recipe import Recipe, build

METRICS = ("map@r", "recall@1")
FROZEN, WHITENED, HALF = "frozen features", "whitened features", "whitened by half of the images"
FOLDS, CLASSES = 4, 4  # folds at most, and classes of each at least


@dataclass(frozen=True)
class Measured:
    """A cell on some images: its better readout, and what an image takes.

    learnt: map@r that twice as many images gave to the whitening.
    embedding, decoding: seconds per image, the former by torch.
    model: one to use, as far as these images can teach it.
    """

    cell: NetworkAtSize
    pooling: str
    readout: str
    result: Result
    learnt: float
    embedding: float
    decoding: float
    model: Model

    @property
    def value(self) -> float:
        return self.result["map@r"]

    def minus(self, other: "Measured", level: float) -> Difference:
        """How much better this one is in map@r, paired over classes, with an interval of this level."""
        pair = {"other": other.result, "this": self.result}
        return compare(pair, ["map@r"], level=level, over="classes").differences[1]

    def row(self, best: "Measured", images: int) -> dict[str, Any]:
        """A row of the table of networks; the difference is from the best on the same images."""
        gap = self.minus(best, 0.95)
        return {
            "backbone": self.cell.backbone,
            "size": self.cell.size,
            "warp": self.cell.warp,
            "pooling": self.pooling,
            "readout": self.readout,
            "images": images,
            "metrics": {name: self.result[name] for name in METRICS},
            "difference": [gap.difference, gap.low, gap.high],
            "milliseconds_per_image": 1000 * self.embedding,
            "learnt": self.learnt,
        }


def measure(recipe: Recipe, sample: Dataset, backend: BackendName, embedding: float | None = None) -> Measured:
    """The network of a recipe on a `sample` of train images; `backend` computes its features, which are kept.

    `embedding`: the seconds that torch takes for an image, where they are known.
    """
    model, start = build.model(recipe), time.monotonic()
    images = data.decoded(as_files(sample), stages.short_side(recipe))
    decoding = (time.monotonic() - start) / len(images)
    points = _features(recipe, model, images, backend)
    with one_thread():
        judged = {pooling: judge(vectors, images.labels, recipe.seed) for pooling, vectors in points.items()}
    pooling, readout = max(
        ((pooling, readout) for pooling in judged for readout in (FROZEN, WHITENED)),
        key=lambda pair: judged[pair[0]][pair[1]]["map@r"],
    )
    results = judged[pooling]
    learnt = max(0.0, results[readout]["map@r"] - results[HALF]["map@r"]) if readout == WHITENED else 0.0
    each = embedding_seconds(model, images) if embedding is None else embedding
    each, decoding = Ranks.current().from_first(lambda: (each, decoding))
    if len(points) > 1:
        model = build.model(pooled(recipe, pooling))
    ready = replace(_read(model, points[pooling], images, readout), classes=sample.label_names)
    return Measured(cell_of(recipe), pooling, readout, results[readout], learnt, each, decoding, ready)


def _features(recipe: Recipe, model: Model, images: Dataset, backend: BackendName) -> dict[str, Tensor]:
    """The features of every pooling that the network can have and the recipe asks for."""
    tokens = getattr(build.embedder_of(model).backbone, "prefix_tokens", 0)
    several = recipe.networks.poolings if recipe.networks is not None and tokens else ()
    poolings = several or (recipe.model.architecture.pooling,)
    return {name: extract(model.headless(name), images, backend=backend) for name in poolings}


def as_files(dataset: Dataset) -> Dataset:
    """The images as files, to be decoded in another size; images in memory stay as they are."""
    images = dataset.images
    return replace(dataset, images=images.names) if isinstance(images, Decoded) else dataset


def judge(points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"], seed: int) -> dict[str, Result]:
    """The features of a network, frozen, whitened, and whitened by half of the images."""
    directions = normalise(points, "sphere")
    count = max(2, min(FOLDS, len(labels.unique()) // CLASSES))  # type: ignore[no-untyped-call]

    def whitened(teachers: Tensor, own: Tensor) -> Tensor:
        mean = directions[teachers].mean(0)
        return (directions[own] - mean) @ whitening(directions[teachers] - mean, labels[teachers])

    def vectors(others: Tensor, own: Tensor) -> dict[str, Tensor]:
        half = others & (torch.arange(len(labels)) % 2 == 0)
        return {FROZEN: points[own], WHITENED: whitened(others, own), HALF: whitened(half, own)}

    return judge_by_folds(labels, count, seed, vectors, METRICS)


def _read(model: Model, points: Tensor, images: Dataset, readout: str) -> Model:
    """The network with its features read in this way."""
    if readout == FROZEN:
        return replace(model.headless(), geometry="sphere")
    directions = normalise(points, "sphere")
    mean = directions.mean(0)
    whole = Readout("features", points.shape[1])
    return replace(model.with_readout(whole, mean, whitening(directions - mean, images.labels)), geometry="sphere")
