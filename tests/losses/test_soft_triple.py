"""SoftTriple: its equation as loops [math A13e], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean, placed

DEFAULTS = {"scale": 8.0, "temperature": 0.1, "margin": 0.01, "centre_weight": 0.2, "per_class": 2}
PRESETS = {
    "cub": {"scale": 20.0, "temperature": 0.1, "centre_weight": 0.2, "margin": 0.01},
    "cars": {"scale": 17.69, "temperature": 19.18, "centre_weight": 0.0669, "margin": 0.3588},
    "inshop": {"scale": 20.0, "temperature": 0.1, "centre_weight": 0.2, "margin": 0.01},
    "sop": {"scale": 100.0, "temperature": 47.9, "centre_weight": 0.2, "margin": 0.3145},
}
TRAINING = ["optimiser.loss_lr=1e-2"]


def soft_triple(z, y, centres, per_class, lam=8.0, ga=0.1, de=0.01, tau=0.2, geometry="sphere"):
    """`centres` class after class, `per_class` of each."""
    S = dots(z, centres, geometry)
    classes, terms = len(centres) // per_class, []
    for i, label in enumerate(y):
        logits = []
        for k in range(classes):
            own = S[i][k * per_class : (k + 1) * per_class]
            weights = [(x / ga).exp() for x in own]
            relaxed = sum(w * x for w, x in zip(weights, own, strict=True)) / sum(weights)
            logits.append(lam * (relaxed - (de if k == label else 0.0)))
        terms.append(cross_entropy(logits, label))
    return mean(terms, z) + tau * merging(centres, classes, per_class, geometry)


def merging(centres, classes, per_class, geometry):
    units = [placed(v, geometry) for v in centres]
    total = 0 * centres.sum()
    for k in range(classes):
        for first in range(per_class):
            for second in range(first + 1, per_class):
                cosine = (units[k * per_class + first] * units[k * per_class + second]).sum()
                total = total + (2 + 1e-5 - 2 * cosine).sqrt()
    return total / (classes * per_class * (per_class - 1)) if per_class > 1 else total


FORMS = {
    "default": ({}, partial(soft_triple, per_class=2)),
    "cars": (
        {"preset": "cars", "centres": 4},
        partial(soft_triple, per_class=4, lam=17.69, ga=19.18, tau=0.0669, de=0.3588),
    ),
    "one centre": ({"centres": 1}, partial(soft_triple, per_class=1)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("soft_triple", *FORMS[form], batch)
