"""PNP: its equation as loops [math A24k], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, mean, soft_count

DEFAULTS = {"variant": "O", "temperature": 0.01, "bound": 2.0, "power": 1.0}


WORTH = {
    "O": lambda r: r,
    "Iu": lambda r: (1 + r) * (1 + r).log(),
    "Ib": lambda r: (3 * r - (1 + 3 * r).log()) / 9,
    "Ds": lambda r: (1 + r).log(),
    "Dq": lambda r: 1 - 1 / (1 + r) ** 2,
}


def pnp(z, c, pos, neg, variant="O", temperature=0.01, geometry="sphere"):
    """With b = 3 and α = 2 where the variant has them."""
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        before = [soft_count(S[i][p], [S[i][n] for n in neg[i]], temperature, z) for p in pos[i]]
        terms += [mean([WORTH[variant](r) for r in before], z)] if before else []
    return mean(terms, z)


FORMS = {
    "default": ({}, pnp),
    "Iu": (
        {"variant": "Iu", "temperature": 0.2, "bound": 3.0, "power": 2.0},
        partial(pnp, variant="Iu", temperature=0.2),
    ),
    "Ib": (
        {"variant": "Ib", "temperature": 0.2, "bound": 3.0, "power": 2.0},
        partial(pnp, variant="Ib", temperature=0.2),
    ),
    "Ds": (
        {"variant": "Ds", "temperature": 0.2, "bound": 3.0, "power": 2.0},
        partial(pnp, variant="Ds", temperature=0.2),
    ),
    "Dq": (
        {"variant": "Dq", "temperature": 0.2, "bound": 3.0, "power": 2.0},
        partial(pnp, variant="Dq", temperature=0.2),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("pnp", *FORMS[form], batch)
