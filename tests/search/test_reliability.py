"""The bound on a precision: its deviation by brute force over pairs of trials, its promise by simulation."""

import numpy as np
import pytest

from lookalike.search.calibration.reliability import DOUBT, SPREAD, Curve, Judgements, lowest_reliable


def drawn(classes, each, seed, twins=0.2):
    """Classes with scores of their own, some of them twins that are mistaken for each other with confidence."""
    draw = np.random.default_rng(seed)
    ease = draw.normal(0, 0.7, classes)
    asked = np.repeat(np.arange(classes), each)
    scores = draw.normal(0, 1, len(asked)) + ease[asked]
    right = draw.random(len(asked)) < 1 / (1 + np.exp(-1.5 * scores))
    twin = draw.permutation(classes)
    mistaken = draw.random(classes) < twins
    answered = np.where(right, asked, np.where(mistaken[asked], twin[asked], draw.integers(0, classes, len(asked))))
    return judgements(asked, answered), scores


def judgements(asked, answered, weights=None):
    ones = np.ones(len(asked))
    return Judgements(np.array(asked), np.array(answered), ones > 0, ones if weights is None else weights)


def test_the_deviation_is_that_of_all_pairs_of_trials_that_share_a_class():
    trials, scores = drawn(30, 6, seed=1)
    curve = Curve.of(trials, scores)
    right = trials.right
    for place in (20, 90, len(curve.thresholds) - 1):
        admitted = np.flatnonzero(scores >= curve.thresholds[place])
        precision = right[admitted].mean()
        total = 0.0
        for a in admitted:
            for b in admitted:
                if {trials.classes[a], trials.answers[a]} & {trials.classes[b], trials.answers[b]}:
                    total += (right[a] - precision) * (right[b] - precision)
        assert curve.precision[place] == pytest.approx(precision)
        # trials of the same pair of classes are one pair in two sums, as in the formula
        assert curve.deviation[place] == pytest.approx(np.sqrt(total) / len(admitted), rel=1e-9)


def test_the_deviation_is_what_other_classes_would_show():
    """Against the spread over fresh draws of all classes."""
    precisions, deviations = [], []
    for seed in range(200):
        trials, scores = drawn(60, 10, seed)
        admitted = scores >= 0.5
        precisions.append(trials.right[admitted].mean())
        curve = Curve.of(trials, scores)
        deviations.append(curve.deviation[np.flatnonzero(curve.thresholds >= 0.5)[-1]])
    assert np.mean(deviations) == pytest.approx(np.std(precisions), rel=0.15)


@pytest.mark.parametrize("target", [0.8, 0.9])
def test_a_threshold_holds_on_other_classes(target):
    """Fresh classes from the same source: the target is reached in 90% of 300 draws."""
    reached = []
    for seed in range(300):
        (here, scores), (there, others) = drawn(60, 10, 2 * seed), drawn(60, 10, 2 * seed + 1)
        sure, _ = lowest_reliable(Curve.of(here, scores), target)
        accepted = others >= (np.inf if sure is None else sure)
        reached.append(not accepted.any() or there.right[accepted].mean() >= target)
    assert np.mean(reached) >= 0.9


def test_no_errors_promise_no_more_than_all_classes_but_one():
    def perfect(classes):
        names = np.arange(10 * classes) % classes
        return Curve.of(judgements(names, names), np.linspace(0, 1, len(names)))

    assert perfect(30).spread[-1] == pytest.approx(30)
    assert lowest_reliable(perfect(30), 0.96)[0] == 0.0
    assert lowest_reliable(perfect(30), 0.97)[0] is None
    assert lowest_reliable(perfect(8), 0.88)[0] == 0.0
    assert lowest_reliable(perfect(8), 0.89)[0] is None


def test_a_few_classes_that_are_always_right_promise_nothing_for_the_others():
    names = [row % 10 for row in range(1000)] + [row % 100 for row in range(3000)]
    answers = names[:1000] + [(row + 7) % 100 for row in range(3000)]
    curve = Curve.of(judgements(names, answers), np.linspace(1, 0, 4000))
    assert curve.precision[:100].min() == 1.0
    assert curve.spread[:100].max() < SPREAD < curve.classes
    assert lowest_reliable(curve, 0.6)[0] is None


def test_a_trial_of_weight_two_counts_as_two():
    trials, scores = drawn(30, 6, seed=2)
    twice = np.random.default_rng(0).permutation(len(scores))[:60]
    rows = np.concatenate([np.arange(len(scores)), twice])
    weights = np.bincount(rows).astype(float)
    weighted = Curve.of(judgements(trials.classes, trials.answers, weights), scores)
    repeated = Curve.of(judgements(trials.classes[rows], trials.answers[rows]), scores[rows])
    for name in ("thresholds", "precision", "coverage", "deviation", "spread"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name)), name


def test_one_doubt_holds_for_all_thresholds_since_one_of_them_is_chosen():
    """Classes differ and scores say nothing, so the true share is the same at every threshold."""
    draw, crossed = np.random.default_rng(0), []
    asked = np.repeat(np.arange(60), 8)
    for _ in range(100):
        right = draw.random(len(asked)) < np.clip(draw.normal(0.8, 0.15, 60), 0.6, 1)[asked]
        curve = Curve.of(judgements(asked, np.where(right, asked, 60 + np.arange(len(asked)))), draw.random(len(asked)))
        widths = curve.doubt(-np.inf), DOUBT
        assert DOUBT < widths[0] < 4
        expected = curve.precision * curve.spread / (curve.spread + 1)
        crossed.append([(expected - width * curve.deviation > 0.8)[curve.wide].any() for width in widths])
    together, each = np.mean(crossed, axis=0)
    assert together <= 0.12
    assert each >= 0.15
    assert curve.doubt(float(curve.thresholds[curve.wide][0])) == pytest.approx(DOUBT, abs=0.15)
    assert curve.doubt(np.inf) == DOUBT
