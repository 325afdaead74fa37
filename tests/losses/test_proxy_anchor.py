"""ProxyAnchor: its equation as loops [math A13c], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import dots, log_one_plus, mean

DEFAULTS = {"alpha": 32.0, "delta": 0.1, "rate_factor": 100.0}
TRAINING = ["optimiser.loss_lr=1e-2"]


def proxy_anchor(z, y, proxies, al=32.0, de=0.1, geometry="sphere"):
    S = dots(z, proxies, geometry)
    pull, push = [], []
    for k in range(len(proxies)):
        own = [i for i, label in enumerate(y) if label == k]
        if own:
            pull.append(log_one_plus([-al * (S[i][k] - de) for i in own]))
        push.append(log_one_plus([al * (S[i][k] + de) for i, label in enumerate(y) if label != k]))
    return mean(pull, z) + mean(push, z)


FORMS = {
    "default": ({}, proxy_anchor),
    "10 0.3": ({"alpha": 10.0, "delta": 0.3}, lambda z, y, w: proxy_anchor(z, y, w, 10.0, 0.3)),
    "ball": ({"normalise": "ball"}, lambda z, y, w: proxy_anchor(z, y, w, geometry="ball")),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("proxy_anchor", *FORMS[form], batch)
