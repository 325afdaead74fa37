"""The candidates of a run, judged alike: by one measure, on the same queries of held-out classes.

Some candidates leave the network as it was: raw pixels, its features, and every readout of them (`readouts`). Others
read the trained network. Whatever wins is one `Model`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.data import Dataset
from lookalike.evaluation import Result, evaluate
from lookalike.features import extract, features
from lookalike.fit import readouts
from lookalike.fit.folds import fold_count, judge_by_folds
from lookalike.fit.plan import AFTER, by_graph
from lookalike.fit.prepare import LabelledFeatures, Read
from lookalike.fit.readouts import FITTED, FittedReadout
from lookalike.fit.sample import evenly
from lookalike.fit.timing import embedding_seconds
from lookalike.fit.train_model import Weights, cached_features, weights, weights_of
from lookalike.geometry import Geometry
from lookalike.models import Architecture, Model, Readout
from lookalike.progress import Progress
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe

METRICS = ("map@r", "recall@1")
AS_IT_WAS, TRAINED = 0, 3  # how far a candidate is from what was there before; between them: readouts of the network
MOST = 8192  # train images that readouts are fitted to
Refit = Callable[[Model, Dataset], Model]


@dataclass(frozen=True)
class Candidate:
    """A model that could be delivered: `create` makes it, `result` is what the validation classes say of it.

    `folds` is what all classes but the test classes say, each by a readout that was fitted to the other folds. `refit`
    makes the same of a network, trained or not as this one's was, and of other images.
    """

    name: str
    complexity: int  # from AS_IT_WAS to TRAINED
    dim: int
    milliseconds: float  # per image
    result: Result
    create: Callable[[], Model]
    folds: Result | None = None
    refit: Refit = lambda model, _: model

    @property
    def value(self) -> float:
        return self.result["map@r"]

    def row(self, delivered: bool) -> dict[str, Any]:
        """A row of the table in result.json; intervals are over classes."""
        facts = {"name": self.name, **_figures(self.result)}
        folds = {} if self.folds is None else {"folds": _figures(self.folds)}
        cost = {"milliseconds_per_image": self.milliseconds, "bytes_per_item": 4 * self.dim}
        return facts | folds | {"dim": self.dim} | cost | {"delivered": delivered}


def _figures(result: Result) -> dict[str, Any]:
    spans = {name: list(result.interval(name, over="classes")) for name in METRICS}
    return {"metrics": {name: result[name] for name in METRICS}, "intervals": spans}


class Seen(NamedTuple):
    """Images that fit and judge candidates: train images, then those of the validation classes, if there are any."""

    train: Dataset
    held: Dataset | None

    @property
    def labels(self) -> Integer[Tensor, " n"]:
        """The labels of all of them; no number means two classes."""
        own = self.train.labels
        return own if self.held is None else torch.cat((own, self.held.labels + own.max() + 1))

    @property
    def judges(self) -> Dataset:
        """The validation images; without any the train images, which can judge what was not fitted to them."""
        return self.train if self.held is None else self.held

    @property
    def chances(self) -> Float[Tensor, " n"] | None:
        """The chances of their labels, where they weigh."""
        parts = [part.chances for part in (self.train, self.held) if part is not None]
        known = [part for part in parts if part is not None]
        return torch.cat(known) if len(known) == len(parts) else None

    @property
    def judging(self) -> Bool[Tensor, " n"]:
        """Those that may judge: groups that a machine found do not, unless there is nothing else."""
        found = self.of_origin("found")
        return found if found.all() else ~found

    def of_origin(self, origin: str) -> Bool[Tensor, " n"]:
        """Those whose label is of this `origin`."""
        return torch.cat([part.of_origin(origin) for part in (self.train, self.held) if part is not None])

    def read(self, vectors: Callable[[Dataset], Tensor]) -> Tensor:
        """The vectors of all of them."""
        return torch.cat([vectors(part) for part in (self.train, self.held) if part is not None])


@dataclass(frozen=True)
class Untrained:
    """The candidates that leave the network as it was, from the features of all images that may judge them."""

    recipe: Recipe
    model: Model
    seen: Seen
    points: Float[Tensor, "n width"]
    before: Weights

    def candidates(self) -> list[Candidate]:
        pretrained, seen = self.recipe.model.weights is not None, self.seen
        what = "frozen features" if pretrained else "untrained network"
        fit = self.readouts if pretrained else lambda _: []  # random features are not worth a readout
        cost, folds = 1000 * embedding_seconds(self.model.headless(), seen.judges), self._by_folds(self.points, fit)
        complexity = AS_IT_WAS if pretrained else FITTED  # a random network is no starting point
        bare = self._judged(what, complexity, self._judging(self.points), cost, partial(self._create, None), folds)
        rows = [replace(bare, refit=lambda model, _: self._bare(model))]
        for readout in fit(slice(0, len(seen.train))) if folds or seen.held is not None else []:
            if folds and readout.name not in folds:  # a fold has too few images to fit it
                continue
            vectors = readout.vectors(self.model, self._judging(self.points))
            create = partial(self._create, readout.name)
            row = self._judged(f"{what}, {readout.name}", readout.complexity, vectors, cost, create, folds)
            rows.append(replace(row, refit=partial(_fitted_to, self.recipe, readout.name)))
        thumbnails = _pixels(self.model)
        pixels = seen.read(lambda part: extract(thumbnails, part))
        cost, folds = 1000 * embedding_seconds(thumbnails, seen.judges), self._by_folds(pixels, lambda _: [])
        complexity = FITTED if pretrained else AS_IT_WAS
        raw = self._judged("raw pixels", complexity, self._judging(pixels), cost, lambda: thumbnails, folds)
        return [*rows, replace(raw, refit=lambda *_: thumbnails)]

    def readouts(self, rows: Any) -> list[FittedReadout]:
        with readouts.one_thread():
            taught = LabelledFeatures(self.points, self.seen.labels, self.seen.chances).of(rows)
            return list(readouts.with_own_head(self.recipe, self.model, taught))

    def _judging(self, points: Tensor) -> Tensor:
        return points[-len(self.seen.judges) :]

    def _by_folds(self, points: Tensor, fit: Callable[[Tensor], Sequence[FittedReadout]]) -> dict[str, Result]:
        labels, judging = self.seen.labels, self.seen.judging
        count = fold_count(int((labels[judging].bincount() > 1).sum()), self.recipe.train.minutes)
        if count == 1:
            return {}

        def vectors(others: Tensor, own: Tensor) -> Mapping[str, Tensor]:
            return {"": points[own]} | {each.name: each.vectors(self.model, points[own]) for each in fit(others)}

        return judge_by_folds(labels, count, self.recipe.seed, vectors, METRICS, judging)

    def _create(self, readout: str | None) -> Model:
        """The network as it was before training. Images that have judged a readout may now be used to fit it."""
        with weights_of(self.model.embedder, self.before):
            if readout is None:
                return self._bare(self.model)
            return next(each for each in self.readouts(slice(None)) if each.name == readout).model(self.model)

    @staticmethod
    def _bare(model: Model) -> Model:
        return replace(model.headless(), geometry="sphere")

    def _judged(
        self,
        name: str,
        complexity: int,
        vectors: Tensor,
        cost: float,
        create: Callable[[], Model],
        folds: Mapping[str, Result],
    ) -> Candidate:
        over_folds = folds.get(name.partition(", ")[2])
        if over_folds is not None and self.seen.held is None:
            result = over_folds
        else:
            result = evaluate(vectors, self.seen.judges.labels, metrics=METRICS, normalise="sphere")
        return Candidate(
            f"{name}, {vectors.shape[1]}-D", complexity, vectors.shape[1], cost, result, create, over_folds
        )


def seen_of(recipe: Recipe, parts: Parts, most: int = MOST) -> Seen:
    """The images of a run that fit and judge, or a sample of them."""
    held = None if parts.validation is None else evenly(parts.validation, most, recipe.seed)
    named = parts.train.subset(~parts.train.undecided())
    return Seen(evenly(named, most, recipe.seed), held)


def untrained(recipe: Recipe, model: Model, parts: Parts, progress: Progress) -> list[Candidate]:
    """What leaves the network as it was. Its features are kept on disk."""
    seen = seen_of(recipe, parts)
    points = seen.read(lambda part: cached_features(model, part, progress))
    if recipe.model.weights is not None:
        cached_features(model, parts.test, progress)  # a baseline needs them at the end: the clock knows them done
    return Untrained(recipe, model, seen, points, weights(model)).candidates()


def _fitted_to(recipe: Recipe, readout: str, model: Model, images: Dataset) -> Model:
    """A readout of a network that is not trained, fitted to images."""
    seen = Seen(evenly(images, MOST, recipe.seed), None)
    points = seen.read(lambda part: cached_features(model, part))
    return Untrained(recipe, model, seen, points, weights(model))._create(readout)


def trained(recipe: Recipe, model: Model, parts: Parts, progress: Progress) -> list[Candidate]:
    """What can be read from the trained network."""
    assert parts.validation is not None
    judges = evenly(parts.validation, MOST, recipe.seed)
    read = cached_features if by_graph(recipe, len(parts.test)) else features
    points, own = read(model, judges, progress), _of_trained(recipe, model, parts.train, progress, read)
    cost = 1000 * embedding_seconds(model, judges)

    def judged(name: str, vectors: Tensor, readout: FittedReadout | None, geometry: Geometry = "sphere") -> Candidate:
        result = evaluate(vectors, judges.labels, metrics=METRICS, normalise=geometry)
        whole = Candidate(f"{name}, {vectors.shape[1]}-D", TRAINED, vectors.shape[1], cost, result, lambda: model)
        if readout is None:
            return whole
        refit = partial(_fitted_to_trained, recipe, readout.name)
        return replace(whole, create=partial(readout.model, model), refit=refit)

    head = FittedReadout("head", TRAINED, Readout(), own[0].mean).vectors(model, points)
    return [
        judged("trained network", head, None, model.geometry),
        *(judged(f"trained network, {each.name}", each.vectors(model, points), each) for each in own),
    ]


def _of_trained(
    recipe: Recipe, model: Model, train: Dataset, progress: Progress | None = None, read: Read = features
) -> list[FittedReadout]:
    """All readouts of a trained network, fitted to some of the images."""
    sample = evenly(train, AFTER, recipe.seed)
    points = read(model, sample, progress)
    with readouts.one_thread():
        own = list(readouts.of_features(recipe, points, sample.labels))
    if model.architecture is not None and model.architecture.dim is not None:
        own += [each for readout in own[:2] for each in readouts.beside(None, readout, TRAINED)]
    return own


def _fitted_to_trained(recipe: Recipe, readout: str, model: Model, images: Dataset) -> Model:
    return next(each for each in _of_trained(recipe, model, images) if each.name == readout).model(model)


def _pixels(like: Model) -> Model:
    """Thumbnails in the model's own colours, as the baseline has them."""
    how = like.preprocessing
    side = min(32, how.crop)
    architecture = Architecture("pixels", {"channels": how.channels, "side": side}, dim=None)
    return Model.create(architecture, preprocessing=how.sized(side, side))
