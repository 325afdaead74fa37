"""Which labels a run learns from: all alike, weighed by their chances, or without doubtful ones; with groups or not.

The whitened features of the network before training give each label a chance (`data.audit.label_noise`), among
train and validation images together; test classes play no part. The ways are compared by what is learnt on the features
without training the network, in two folds of these classes. All given labels judge, wrong ones too, which lower every
figure: labels that agree with the features would favour the way that trusts the features. What departs from the labels
as they were given must be better beyond luck. What a person confirmed is never in doubt. Learning by chances means that
images of a class are drawn in proportion to them. Found groups are learnt or left out in the same manner; what the
recipe says of suspects then goes for the labels that are learnt.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lookalike.data import Dataset
from lookalike.data.audit.label_noise import LabelChances, label_chances, wrong_labels
from lookalike.data.audit.label_table import doubted
from lookalike.evaluation import Result
from lookalike.fit import readouts
from lookalike.fit.candidates import METRICS, Seen, seen_of
from lookalike.fit.folds import SHORT, judge_by_folds
from lookalike.fit.never_worse import surely_better
from lookalike.fit.prepare import LabelledFeatures
from lookalike.fit.readouts import FittedReadout
from lookalike.fit.train_model import cached_features
from lookalike.geometry import normalise
from lookalike.models import Model, Readout
from lookalike.models.whitening import whitening
from lookalike.protocols.class_disjoint import LEAST, Parts, usable
from lookalike.recipe import Recipe
from lookalike.recipe.validity import WEIGHS
from lookalike.runs import OpenRun

DECISION = "labels"
GIVEN = "given"  # labels that somebody gave, without found groups
KEEP, WEIGH, DROP = "keep", "weigh", "drop"  # all alike, all by their chances, only those that are not in doubt
FOLDS = 2  # of all classes that train and validate
Chances = Float[Tensor, " n"]


@dataclass(frozen=True)
class Doubts:
    """What `vectors` say of labels, numbered by `codes`; those that are not `open` were confirmed by a person."""

    vectors: Float[Tensor, "n width"]
    codes: Int64[Tensor, " n"]
    open: Bool[Tensor, " n"]

    @cached_property
    def _found(self) -> LabelChances:
        if not self.codes.any():  # a class alone
            return LabelChances(torch.ones(len(self.codes)), self.codes, torch.zeros(len(self.codes)))
        with readouts.one_thread():
            return label_chances(self.vectors, self.codes)

    @property
    def chances(self) -> Chances:
        """The chance of every label by the others; 1 for confirmed ones."""
        return torch.where(self.open, self._found.own, 1.0)

    @property
    def contradicted(self) -> Bool[Tensor, " n"]:
        """Where another label is likelier."""
        return (self._found.own < self._found.rival) & self.open

    @cached_property
    def doubted(self) -> Bool[Tensor, " n"]:
        """What `lookalike audit --labels` would doubt by these vectors."""
        if not self.contradicted.any():
            return self.contradicted
        with readouts.one_thread():
            return doubted(self._found, self.codes, wrong_labels(self.vectors, self.codes)) & self.open


class Way(NamedTuple):
    """The rows that are learnt, and the chances by which they are drawn; None: all alike."""

    rows: Bool[Tensor, " n"]
    chances: Chances | None = None


def settle(recipe: Recipe, model: Model, parts: Parts, run: OpenRun) -> Parts:
    """The parts of a run with the labels that it learns from; a resumed run follows what was decided."""
    compares = recipe.model.weights is not None and parts.train.sets is None and parts.judged
    grouped = bool(parts.train.of_origin("found").any())
    if not compares or (recipe.train.suspects == KEEP and not grouped):
        return parts
    made = run.decisions.get(DECISION)
    if made is None:
        seen = seen_of(recipe, parts)
        progress = run.stage("comparing labels with features")
        points = seen.read(lambda part: cached_features(model, part, progress))
        made = decided(recipe, model, seen, points)
        run.decisions.make(DECISION, made)
    if made["sentence"]:
        run.note(made["sentence"])
    return _learning(recipe, model, parts, made)


def doubts_of(seen: Seen, points: Float[Tensor, "n width"], rows: Bool[Tensor, " n"] | None = None) -> Doubts:
    """What the whitened features say of the labels, or of those in `rows` alone; nothing if there is one class."""
    some = torch.ones(len(points), dtype=torch.bool) if rows is None else rows
    unit = normalise(points[some], "sphere")
    centred, codes = unit - unit.mean(0), torch.unique(seen.labels[some], return_inverse=True)[1]
    return Doubts(centred @ whitening(centred, codes), codes, ~seen.of_origin("confirmed")[some])


def decided(recipe: Recipe, model: Model, seen: Seen, points: Float[Tensor, "n width"]) -> dict[str, Any]:
    """What to learn, and why; of equal ones what departs least from the labels as they were given."""
    found, suspects = seen.of_origin("found"), recipe.train.suspects
    ways, doubts = _ways(recipe, seen, points)
    learn, judged = next(iter(ways)), dict[str, Result]()
    if suspects is not None and not found.any():
        learn = suspects
    elif len(ways) > 1 and not found.all():
        judged = _judged(recipe, model, seen, points, ways)
        for way in list(judged)[1:]:
            learn = way if surely_better(judged[way], judged[learn]) else learn
    figures = {way: result["map@r"] for way, result in judged.items()}
    sentence = _sentence(learn, figures, doubts, int(found.sum()), len(points))
    if found.any() and suspects in (WEIGH, DROP):
        words = _words(suspects, doubts_of(seen, points, ways[learn].rows))
        return {"learn": learn, "suspects": suspects, "map@r": figures, "sentence": f"{sentence} {words}"}
    return {"learn": learn, "map@r": figures, "sentence": sentence if figures or learn != KEEP else ""}


def _ways(recipe: Recipe, seen: Seen, points: Tensor) -> tuple[dict[str, Way], Doubts | None]:
    """What may be learnt, by name, the least departure first: the question is found groups, or else doubtful labels."""
    found, every = seen.of_origin("found"), torch.ones(len(points), dtype=torch.bool)
    ways, doubts = {KEEP: Way(every)}, None
    if found.any():
        few = usable(seen.train.subset(~seen.train.of_origin("found"))) < LEAST
        ways = ways if few else {GIVEN: Way(~found), **ways}
    elif _has_time(recipe):
        doubts = doubts_of(seen, points)
        if recipe.sampler.name == WEIGHS and doubts.contradicted.any():
            ways[WEIGH] = Way(every, doubts.chances)
        if doubts.doubted.any():
            ways[DROP] = Way(~doubts.doubted)
    return ways, doubts


def _words(suspects: str, doubts: Doubts) -> str:
    """What becomes of suspects among the labels that are learnt."""
    if suspects == DROP:
        return f"{int(doubts.doubted.sum()):,} of them are in doubt and left out."
    return f"Their chances weigh them; for {int(doubts.contradicted.sum()):,} another label is likelier."


def _has_time(recipe: Recipe) -> bool:
    """Whether there is time to compare, or nothing to compare; short runs have none."""
    minutes = recipe.train.minutes
    return minutes is None or minutes >= SHORT or recipe.train.suspects is not None


def _sentence(learn: str, figures: Mapping[str, float], doubts: Doubts | None, found: int, count: int) -> str:
    """What is learnt, and how the others compare."""
    contradicted, doubted = (0, 0) if doubts is None else (int(doubts.contradicted.sum()), int(doubts.doubted.sum()))
    what = {
        GIVEN: f"{count - found:,} given labels are learnt, and not {found:,} photos in found groups",
        KEEP: f"{count:,} labels are learnt" + (f", {found:,} of them from found groups" if found else " as they are"),
        WEIGH: f"{count:,} labels are learnt in proportion to their chance; for {contradicted:,} another is likelier",
        DROP: f"{count - doubted:,} labels are learnt, and not {doubted:,} that are in doubt",
    }[learn]
    names = {
        GIVEN: "given ones alone",
        KEEP: "all of them" if found else "all alike",
        WEIGH: "their chances",
        DROP: "those that are not in doubt",
    }
    shown = ", ".join(f"{figures[way]:.3f} with {names[way]}" for way in figures)
    judged = f"on held-out {'given ' if found else ''}labels, without training the network"
    return f"{what}: map@r {shown}, {judged}." if shown else f"{what}."


def _judged(
    recipe: Recipe,
    model: Model,
    seen: Seen,
    points: Float[Tensor, "n width"],
    ways: Mapping[str, Way],
) -> dict[str, Result]:
    """The best that is learnt in each way; nothing where too few labels can judge."""
    labels, judging = seen.labels, seen.judging

    def vectors(others: Tensor, own: Tensor) -> dict[str, Tensor]:
        return {
            f"{name}: {each.name}": each.vectors(model, points[own])
            for name, way in ways.items()
            for each in _learnt(recipe, model, points, seen, way, others, GIVEN in ways)
        }

    if int((labels[judging].bincount() > 1).sum()) < FOLDS * LEAST:
        return {}
    with readouts.one_thread():
        results = judge_by_folds(labels, FOLDS, recipe.seed, vectors, METRICS, judging)
    named = {way: [result for name, result in results.items() if name.startswith(f"{way}:")] for way in ways}
    return {way: max(own, key=lambda each: each["map@r"]) for way, own in named.items() if own}


def _learnt(
    recipe: Recipe, model: Model, points: Tensor, seen: Seen, way: Way, others: Tensor, whiten: bool
) -> Iterator[FittedReadout]:
    """A head that learns in one way from some rows; with `whiten` also readouts, which chances do not change."""
    taught = LabelledFeatures(points, seen.labels, way.chances).of(others & way.rows)
    if whiten:
        yield from readouts.of_features(recipe, taught.points, taught.labels)
    if (recipe.model.architecture.dim or len(points)) <= min(taught.points.shape):
        head = readouts.trained_head(recipe, model, taught)
        yield FittedReadout("head", readouts.WITH_HEAD, Readout(), points.mean(0), head=head)


def _learning(recipe: Recipe, model: Model, parts: Parts, made: Mapping[str, Any]) -> Parts:
    """The parts with what is learnt: not only the images that decided are looked at. Validation keeps every label."""
    if made["learn"] == GIVEN:
        parts = parts._replace(train=parts.train.subset(~parts.train.of_origin("found")).dense())
    train, held = parts.train, parts.validation
    learn = made.get("suspects", made["learn"])
    if learn in (GIVEN, KEEP):
        return parts
    seen = seen_of(recipe, parts, len(train) + (0 if held is None else len(held)))
    doubts = doubts_of(seen, seen.read(lambda part: cached_features(model, part)))
    count, named = len(seen.train), ~train.undecided()
    if learn == DROP:
        learnt = torch.ones(len(train), dtype=torch.bool)
        learnt[named] = ~doubts.doubted[:count]
        return parts._replace(train=train.subset(learnt).dense())
    chances = torch.ones(len(train))
    chances[named] = doubts.chances[:count]
    judges = None if held is None else replace(held, chances=doubts.chances[count:])
    return parts._replace(train=replace(train, chances=chances), validation=judges)


def once_more(everything: Dataset, recipe: Recipe, model: Model, run: OpenRun) -> Dataset:
    """All classes, for a refit after the proof, with the labels that the run chose to learn from."""
    made = run.decisions.get(DECISION)
    whole = Parts(everything.dense(), None, everything)
    return whole.train if made is None else _learning(recipe, model, whole, made).train
