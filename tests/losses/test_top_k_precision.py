"""TopKPrecision: its equation as loops [math A17], the values of its paper, and what it needs to train."""

from functools import partial

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lookalike.losses import TopKPrecision
from lookalike.targets import Pairs
from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, mean

DEFAULTS = {"k": 4, "margin": 0.1}


def top_k_swaps(scores, positive, negative, k, gap):
    """(entering pos, leaving neg) by the case distinction over the k candidates with the largest augmented scores."""
    raised = {j: scores[j].item() + (gap if j in negative else 0.0) for j in positive + negative}
    nearest = sorted(raised, key=lambda j: -raised[j])[:k]
    outside = sorted((j for j in positive if j not in nearest), key=lambda j: -scores[j].item())
    intruders = sorted((j for j in nearest if j in negative), key=lambda j: raised[j])
    if len(positive) < min(k, len(raised)):
        return outside, intruders[: len(outside)]
    return outside[: len(intruders)], intruders


def top_k_precision(z, c, pos, neg, k=4, gap=0.1, geometry="sphere"):
    S = dots(z, c, geometry)
    values = []
    for i in range(len(z)):
        if pos[i]:
            entering, leaving = top_k_swaps(S[i], pos[i], neg[i], k, gap)
            terms = [S[i][j] + gap for j in leaving] + [-S[i][j] for j in entering]
            values.append(sum(terms, 0 * z.sum()))
    return mean(values, z)


FORMS = {
    "default": ({}, top_k_precision),
    "1": ({"k": 1, "margin": 0.3}, partial(top_k_precision, k=1, gap=0.3)),
    "50": ({"k": 50}, partial(top_k_precision, k=50)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("top_k_precision", *FORMS[form], batch, kinked=True, flat=form == "50")


@st.composite
def queries(draw):
    """Distinct scores, relevance, k and a margin; score differences never coincide with the margin."""
    count = draw(st.integers(2, 12))
    grid = draw(st.lists(st.integers(-400, 400), min_size=count, max_size=count, unique=True))
    relevant = draw(st.lists(st.booleans(), min_size=count, max_size=count).filter(any))
    k = draw(st.integers(1, count))
    margin = draw(st.integers(0, 60)) / 100 + 0.003
    return [x / 100 for x in grid], relevant, k, margin


def masks(relevant):
    positive = torch.tensor([relevant])
    return Pairs(positive, ~positive)


def loss_of(scores, relevant, k, margin):
    row = torch.tensor([scores], dtype=torch.float64, requires_grad=True)
    value = TopKPrecision(k=k, margin=margin).per_query(row, masks(relevant)).squeeze(0)
    return value, torch.autograd.grad(value, row)[0][0]


def intruders(scores, relevant, k):
    """ℓ_Prec@k: irrelevant ones among the k highest scores."""
    order = sorted(range(len(scores)), key=lambda j: -scores[j])
    return sum(not relevant[j] for j in order[:k])


def split(scores, relevant):
    """Positive and negative scores, both from the highest down."""
    near = sorted((s for s, r in zip(scores, relevant, strict=True) if r), reverse=True)
    far = sorted((s for s, r in zip(scores, relevant, strict=True) if not r), reverse=True)
    return near, far


@given(queries())
def test_theorems_1_and_3_upper_bound(query):
    scores, relevant, k, margin = query
    value, _ = loss_of(*query)
    missing, wrong = max(0, k - sum(relevant)), intruders(scores, relevant, k)
    assert wrong - missing >= 0
    assert value.item() >= margin * (wrong - missing) - 1e-9
    assert value.item() >= -1e-9


@given(queries(), st.floats(0.01, 0.5))
def test_theorems_2_and_4_separation(query, slack):
    """Positives lifted until the margin holds: the loss vanishes, and precision is as good as it can be."""
    scores, relevant, k, margin = query
    near, far = split(scores, relevant)
    rank = max(0, k - len(near))  # so many negatives must be among the first k
    assume(len(far) > rank)
    held = near[min(k, len(near)) - 1]  # the last positive that must be there
    lift = max(0.0, far[rank] + margin + slack - held)
    lifted = [s + lift if r else s for s, r in zip(scores, relevant, strict=True)]
    value, slope = loss_of(lifted, relevant, k, margin)
    assert value.item() == pytest.approx(0, abs=1e-9)
    assert intruders(lifted, relevant, k) == rank
    assert slope.abs().sum() < 1e-9


@given(queries())
def test_gradient_is_plus_one_on_leaving_and_minus_one_on_entering(query):
    scores, relevant, k, margin = query
    value, slope = loss_of(*query)
    near = [j for j, r in enumerate(relevant) if r]
    far = [j for j, r in enumerate(relevant) if not r]
    entering, leaving = top_k_swaps(torch.tensor(scores, dtype=torch.float64), near, far, k, margin)
    assert len(entering) == len(leaving)
    expected = [float(j in leaving) - float(j in entering) for j in range(len(scores))]
    assert slope.tolist() == pytest.approx(expected, abs=1e-9)
    total = sum(scores[j] + margin for j in leaving) - sum(scores[j] for j in entering)
    assert value.item() == pytest.approx(total, abs=1e-9)
    assert slope.sum().item() == pytest.approx(0, abs=1e-9)


@given(queries(), st.data())
def test_monotone_in_every_score(query, data):
    scores, relevant, k, margin = query
    place, step = data.draw(st.integers(0, len(scores) - 1)), data.draw(st.floats(0, 3))
    raised = [s + step if j == place else s for j, s in enumerate(scores)]
    before, after = loss_of(*query)[0], loss_of(raised, relevant, k, margin)[0]
    if relevant[place]:
        assert after <= before + 1e-9
    else:
        assert after >= before - 1e-9


@given(queries(), st.floats(-5, 5), st.randoms(use_true_random=False))
def test_shift_and_order_change_nothing(query, shift, random):
    scores, relevant, k, margin = query
    order = random.sample(range(len(scores)), len(scores))
    moved = loss_of([scores[j] + shift for j in order], [relevant[j] for j in order], k, margin)[0]
    assert moved.item() == pytest.approx(loss_of(*query)[0].item(), abs=1e-9)
