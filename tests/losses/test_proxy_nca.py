"""ProxyNCA: its equation as loops [math A13a], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import lse, mean, placed

DEFAULTS = {"scale": 3.0, "rate_factor": 50.0}
TRAINING = ["optimiser.loss_lr=1e-2"]


def proxy_nca(z, y, proxies, scale=3.0, geometry="sphere"):
    rows, points = ([placed(v, geometry) for v in vectors] for vectors in (z, proxies))
    terms = []
    for i, label in enumerate(y):
        apart = [scale**2 * ((rows[i] - point) ** 2).sum() for point in points]
        others = [-x for k, x in enumerate(apart) if k != label]
        terms.append(apart[label] + lse(others) if others else 0 * apart[label])
    return mean(terms, z)


FORMS = {
    "default": ({}, proxy_nca),
    "1 ball": ({"scale": 1.0, "normalise": "ball"}, lambda z, y, w: proxy_nca(z, y, w, 1.0, geometry="ball")),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("proxy_nca", *FORMS[form], batch)
