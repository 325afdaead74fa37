"""Never worse than what was there: candidates without training first, then the trained ones, and validation chooses."""

from collections.abc import Sequence
from dataclasses import replace

from lookalike.data import Dataset
from lookalike.errors import UserError
from lookalike.evaluation import compare
from lookalike.fit import candidates
from lookalike.fit.candidates import TRAINED, Candidate
from lookalike.fit.plan import Clock, NotEnoughTimeError, announce_none
from lookalike.fit.train_model import Choice, TrainedModel, train_model, weights
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts, usable
from lookalike.recipe import Recipe
from lookalike.runs import OpenRun, checkpoint
from lookalike.runs.log import read_log
from lookalike.training.train import Ending, Stop

CONFIDENCE = 0.8  # one-sided
PAYS = 0.005  # map@r that more dimensions must be able to add
CAN_JUDGE = 4  # validation classes, below which nothing that was trained can be told from luck
SATURATED = 0.98
TELLING = 10  # validation classes


def judges_candidates(recipe: Recipe) -> bool:
    """Whether the recipe asks for the best of all candidates and holds classes back to tell which it is."""
    held = recipe.data.validation > 0 and recipe.protocol.select == "validation"
    held = held and recipe.features is None  # which trains heads on a frozen network, and only that
    return recipe.train.deliver == "best" and recipe.protocol.name == "class_disjoint" and held


def best_model(recipe: Recipe, model: Model, parts: Parts, run: OpenRun, clock: Clock, stop: Stop) -> TrainedModel:
    """Judge what needs no training, train where there is time, and choose by validation."""
    judges = parts.train if parts.validation is None else parts.validation
    before = weights(model)
    cheap = candidates.untrained(recipe, model, parts, judges, run.stage("judging what needs no training"))
    needed = _too_short(run)
    trained = TrainedModel(replace(model, classes=parts.train.label_names), before, recipe, _no_training(cheap))
    if needed is None and parts.validation is not None and not _too_few_images(recipe, parts):
        try:
            trained = train_model(recipe, model, parts, run, clock, stop)
        except UserError as refusal:
            if not isinstance(refusal.__cause__, NotEnoughTimeError):
                raise
            needed = refusal.__cause__.needed
            announce_none(run, recipe, needed)
    found = list(cheap)
    if trained.ending.steps:
        progress = run.stage("judging the trained network")
        found += candidates.trained(trained.recipe, trained.model, parts, judges, progress)
    return _delivered(trained, found, parts, needed, run)


def _too_few_images(recipe: Recipe, parts: Parts) -> bool:
    """Whether the principal components that the head starts from cannot be computed."""
    return recipe.model.head == "principal" and len(parts.train) < (recipe.model.architecture.dim or 0)


def _delivered(
    trained: TrainedModel, found: Sequence[Candidate], parts: Parts, needed: int | None, run: OpenRun
) -> TrainedModel:
    eligible = [each for each in found if _eligible(each, trained.recipe, parts)]
    winner = choose(eligible or found)
    rows = [each.row(each is winner) for each in found]
    warnings = doubts(found, parts.validation)
    if _too_few_images(trained.recipe, parts):
        dim = trained.recipe.model.architecture.dim
        warnings.append(
            f"{len(parts.train)} train images cannot fill a head of {dim} dimensions: give fewer with --dim"
        )
    choice = Choice(winner.name, rows, [_training_helped(winner, found, trained, needed)], warnings, needed)
    run.note(f"delivered: {winner.name}, validation map@r {winner.value:.3f}")
    model = replace(winner.create(), classes=parts.train.label_names)
    return trained._replace(delivered=model, choice=choice)


def _too_short(run: OpenRun) -> int | None:
    """The minutes that training would have needed, where a resumed run found that before it began."""
    plans = read_log(run.folder.log).of("plan")
    return (
        plans[-1]["minutes"]
        if plans and plans[-1]["steps"] == 0 and not checkpoint.exists(run.folder.checkpoint)
        else None
    )


def _no_training(cheap: Sequence[Candidate]) -> Ending:
    best = max(cheap, key=lambda each: each.value)
    return Ending("nothing was trained", 0, 0, {name: best.result[name] for name in candidates.METRICS}, 0.0)


def _eligible(candidate: Candidate, recipe: Recipe, parts: Parts) -> bool:
    most = recipe.train.most_dim
    judged = parts.validation is not None and usable(parts.validation) >= CAN_JUDGE
    return (most is None or candidate.dim <= most) and (judged or candidate.departure < TRAINED)


def choose(found: Sequence[Candidate]) -> Candidate:
    """The best by validation map@r, ties to the simpler.

    Validation with few classes cannot tell small differences, and nobody may get less than the network they had: what
    departs further from it wins only where it is better with 80 % confidence, in pairs over classes. Among those that
    depart as far, the smallest is taken that gives away nothing that matters.
    """
    best = max(found, key=lambda each: each.value)
    departure = min(each.departure for each in found if each is best or not surely_better(best, each))
    alike = [each for each in found if each.departure == departure]
    top = max(alike, key=lambda each: each.value)
    enough = [each for each in alike if each is top or _lower(each, top, 0.95) > -PAYS]
    return min(enough, key=lambda each: (each.dim, -each.value))


def surely_better(one: Candidate, other: Candidate) -> bool:
    return _lower(one, other, 2 * CONFIDENCE - 1) > 0


def _lower(one: Candidate, other: Candidate, level: float) -> float:
    """The lower end of the paired difference over classes."""
    pair = {"other": other.result, "one": one.result}
    return compare(pair, ["map@r"], level=level, over="classes").differences[1].low


def doubts(found: Sequence[Candidate], validation: Dataset | None) -> list[str]:
    """Why validation could not choose well."""
    if validation is None:
        return ["too few classes to hold some back: nothing that is trained could be judged, so nothing was trained"]
    result = []
    count = usable(validation)
    if all(each.value > SATURATED for each in found):
        result.append(f"validation is saturated: every candidate is above {SATURATED} map@r, so it cannot choose")
    if count < CAN_JUDGE:
        result.append(f"{count} validation classes cannot tell training from luck: no trained network is delivered")
    elif count < TELLING:
        result.append(f"{count} validation classes can tell only large differences")
    return result


def _training_helped(winner: Candidate, found: Sequence[Candidate], trained: TrainedModel, needed: int | None) -> str:
    if needed is not None:
        minutes = trained.recipe.train.minutes
        return f"{minutes:g} minutes were too short to train: fine-tuning would need about {needed} minutes."
    tuned = [each for each in found if each.departure == TRAINED]
    if not tuned:
        return "Nothing was trained."
    before = max((each for each in found if each.departure < TRAINED), key=lambda each: each.value)
    after = max(tuned, key=lambda each: each.value)
    figures = f"validation map@r {after.value:.3f} against {before.value:.3f} without it ({before.name})"
    if winner.departure == TRAINED:
        return f"Training helped: {figures}."
    return f"Training did not help enough to be sure of it: {figures}; so what was there is delivered."
