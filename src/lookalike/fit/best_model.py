"""Never worse than what was there: what needs no training is judged first, then the trained network."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from lookalike.evaluation import Result
from lookalike.fit import candidates
from lookalike.fit.candidates import TRAINED, Candidate
from lookalike.fit.frozen_stages import with_frozen_stages, with_low_rank
from lookalike.fit.never_worse import TELLING, as_good, surely_better
from lookalike.fit.plan import NotEnoughTimeError, RunClock, decide_against
from lookalike.fit.readouts import FITTED
from lookalike.fit.train_model import Choice, TrainedModel, train_model, weights
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts, usable
from lookalike.recipe import Recipe
from lookalike.runs import OpenRun
from lookalike.training.divergence import DivergedError
from lookalike.training.train import Ending, Stop

CAN_JUDGE = 4  # validation classes, below which nothing that was trained can be told from luck
SATURATED = 0.98
Judgement = Callable[[Candidate], Result]


def judges_candidates(recipe: Recipe) -> bool:
    """Whether the recipe asks for the best of all candidates and holds classes back to tell which it is."""
    held = recipe.data.validation > 0 and recipe.protocol.select == "validation"
    held = held and not recipe.head_only  # which trains heads on a frozen network, and only that
    return recipe.train.deliver == "best" and recipe.protocol.name == "class_disjoint" and held


def best_model(recipe: Recipe, model: Model, parts: Parts, run: OpenRun, clock: RunClock, stop: Stop) -> TrainedModel:
    """Judge what leaves the network as it was, train where that can help and there is time, and choose."""
    before = weights(model)
    cheap = candidates.untrained(recipe, model, parts, run.stage("judging what needs no training"))
    small = _small_enough(cheap, recipe) or [min(cheap, key=lambda each: each.dim)]
    best = choose(small, by_folds) if parts.judged else _unjudged(small)
    run.note(f"best without training: {best.name}, map@r {by_folds(best)['map@r']:.3f} on held-out classes")
    first = _created(best, parts)
    if run.decisions.get("delivered") is None:
        first.save(run.folder.model)  # in the place of one that a few photos taught
    trained = TrainedModel(model, before, recipe, _no_training(best))
    needed, useless = run.decisions.get("minutes_needed"), _useless(recipe, parts, cheap)
    if needed is None and useless is None:
        try:
            learning, taught = with_frozen_stages(with_low_rank(recipe, model, run), model, parts, run, clock)
            trained = train_model(learning, model, taught, run, clock, stop)
        except DivergedError as failure:
            useless = f"{failure}; what needs no training is delivered"
        except NotEnoughTimeError as refusal:
            needed = refusal.needed
            decide_against(run, recipe, needed)
    tuned = []
    if trained.ending.steps:
        tuned = candidates.trained(trained.recipe, trained.model, parts, run.stage("judging the trained network"))
    winner = _chosen([*cheap, *tuned], run) or choose(_small_enough([best, *tuned], recipe) or [best])
    run.decisions.make("delivered", winner.name)
    sentence = _training_helped(winner, best, tuned, _reason(trained.recipe, needed, useless))
    rows = [each.row(each is winner) for each in (*cheap, *tuned)]
    choice = Choice(winner.name, rows, [sentence], doubts(cheap, tuned, parts), needed)
    run.note(f"delivered: {winner.name}")
    delivered = first if winner is best else _created(winner, parts)
    return trained._replace(
        delivered=delivered, choice=choice, uses_training=winner.complexity == TRAINED, refit=winner.refit
    )


def _chosen(every: Sequence[Candidate], run: OpenRun) -> Candidate | None:
    """What a resumed run had chosen before."""
    name = run.decisions.get("delivered")
    return next((each for each in every if each.name == name), None)


def _unjudged(candidates: Sequence[Candidate]) -> Candidate:
    """Without labels: what whitening on found groups makes of the network, which was measured to be better than it."""
    whitened = [each for each in candidates if each.complexity == FITTED and ", whitened" in each.name]
    return max(whitened or candidates[:1], key=lambda each: each.dim)


def _created(candidate: Candidate, parts: Parts) -> Model:
    """The model; the classes that chose it count as seen."""
    seen = [parts.train] if parts.validation is None else [parts.train, parts.validation.dense()]
    return replace(candidate.create(), classes=tuple(name for part in seen for name in part.label_names))


def _small_enough(candidates: Sequence[Candidate], recipe: Recipe) -> list[Candidate]:
    """Those with no more dimensions than the recipe allows."""
    return [each for each in candidates if recipe.train.dim == "auto" or each.dim <= recipe.train.dim]


def _useless(recipe: Recipe, parts: Parts, cheap: Sequence[Candidate]) -> str | None:
    """Why training would be in vain."""
    if recipe.model.weights is not None and not parts.judged:
        return "groups that were found cannot judge it, and heads that learnt them were worse than frozen features"
    count = 0 if parts.validation is None else usable(parts.validation)
    if count < CAN_JUDGE:
        return f"{count} validation classes cannot tell a trained network from luck: at least {CAN_JUDGE} are needed"
    dim = recipe.model.architecture.dim or 0
    if recipe.model.head == "principal" and len(parts.train) < dim:
        return f"{len(parts.train)} train images cannot fill a head of {dim} dimensions: give fewer with --dim"
    if max(each.value for each in cheap) > SATURATED:
        return f"validation map@r is above {SATURATED} without it, so nothing could be seen to improve"
    return None


def _reason(recipe: Recipe, needed: int | None, useless: str | None) -> str | None:
    if needed is not None:
        minutes = recipe.train.minutes
        return f"{minutes:g} minutes were too short to train: fine-tuning would need about {needed} minutes."
    return None if useless is None else f"No trained network is delivered: {useless}."


def _no_training(best: Candidate) -> Ending:
    return Ending("nothing was trained", 0, 0, {name: best.result[name] for name in candidates.METRICS}, 0.0)


def by_validation(candidate: Candidate) -> Result:
    return candidate.result


def by_folds(candidate: Candidate) -> Result:
    """The result of the most classes: that of the folds, if there are any."""
    return candidate.result if candidate.folds is None else candidate.folds


def choose(candidates: Sequence[Candidate], judged: Judgement = by_validation) -> Candidate:
    """The best by map@r, ties to the simpler.

    Few classes cannot tell small differences, and nobody may get less than the network they had: what departs further
    from it wins only where it is better with 80% confidence (95% with fewer than ten classes), in pairs over classes,
    and recall@1 does not suffer.
    Among those that depart as far, the smallest is taken that gives away nothing that matters.
    """
    alike: list[Candidate] = []
    for complexity in sorted({each.complexity for each in candidates}):
        further = [each for each in candidates if each.complexity == complexity]
        better = [each for each in further if not alike or surely_better(judged(each), judged(_top(alike, judged)))]
        alike = better or alike
    top = _top(alike, judged)
    enough = [each for each in alike if each is top or as_good(judged(each), judged(top))]
    return min(enough, key=lambda each: (each.dim, -judged(each)["map@r"]))


def _top(candidates: Sequence[Candidate], judged: Judgement) -> Candidate:
    return max(candidates, key=lambda each: judged(each)["map@r"])


def doubts(cheap: Sequence[Candidate], tuned: Sequence[Candidate], parts: Parts) -> list[str]:
    """Why the choice may not be the best."""
    result = []
    if all(each.value > SATURATED for each in (*cheap, *tuned)):
        result.append(f"validation is saturated: every candidate is above {SATURATED} map@r, so it cannot choose")
    classes = 0 if parts.validation is None else usable(parts.validation)
    judges = classes if cheap[0].folds is None else len(set(cheap[0].folds.labels))
    if judges < TELLING:
        result.append(f"{judges} held-out classes can tell only large differences between candidates")
    elif tuned and classes < TELLING:
        result.append(f"{classes} validation classes can tell only whether training helped a lot")
    return result


def _training_helped(winner: Candidate, before: Candidate, tuned: Sequence[Candidate], reason: str | None) -> str:
    if not tuned:
        return reason or "Nothing was trained."
    after = max(tuned, key=lambda each: each.value)
    figures = f"validation map@r {after.value:.3f} against {before.value:.3f} without it ({before.name})"
    if winner.complexity == TRAINED:
        return f"Training helped: {figures}."
    return f"Training did not help enough to be sure of it: {figures}; so the untrained candidate is delivered."
