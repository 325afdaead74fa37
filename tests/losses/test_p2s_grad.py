"""P2SGrad: its equation as loops [math A24i], the values of its paper, and what it needs to train."""

import pytest
import torch

from lookalike import losses
from tests.losses.cases import CLASS_BATCHES, LABELS, assert_class_equation, random_rows
from tests.losses.loops import dots

DEFAULTS = {"learning_rate": 0.0005, "normalise": "sphere"}
TRAINING = ["optimiser.loss_lr=1e-2"]


def p2s_grad(z, y, weights):
    S = dots(z, weights, "sphere")
    total = 0 * z.sum()
    for i, label in enumerate(y):
        total = total + sum(0.5 * (x - float(k == label)) ** 2 for k, x in enumerate(S[i]))
    return total / len(z)


FORMS = {
    "default": ({}, p2s_grad),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("p2s_grad", *FORMS[form], batch)


def test_p2s_grad_has_the_gradient_of_the_paper():
    loss = losses.P2SGrad(classes=5, dim=4).double()
    z = random_rows(len(LABELS), seed=12)
    units, centres = (v / v.norm(dim=1, keepdim=True) for v in (z, loss.weights))
    cosines = units @ centres.T
    slopes = cosines.detach() - torch.nn.functional.one_hot(torch.tensor(LABELS), 5)
    expected = torch.autograd.grad((slopes * cosines).sum() / len(LABELS), z)[0]
    torch.testing.assert_close(torch.autograd.grad(loss(z, torch.tensor(LABELS)), z)[0], expected)
