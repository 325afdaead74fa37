"""Errors of calibration have no bias, however few classes answer."""

import numpy as np
import pytest

from lookalike.search.calibration.reliability import products


def test_products_are_those_of_trials_that_share_no_class():
    draw = np.random.default_rng(0)
    own, answered = draw.integers(0, 6, (2, 40))
    values = draw.standard_normal((3, 40))
    apart = np.array([[not {own[a], answered[a]} & {own[b], answered[b]} for a in range(40)] for b in range(40)])
    assert products(values, own, answered) == pytest.approx([row @ apart @ row for row in values])


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_their_mean_is_the_squared_error_with_few_classes_too(shift):
    """Eight classes that differ much, half of the answers wrong: on average it is the squared shift."""
    draw, found = np.random.default_rng(1), []
    own = np.repeat(np.arange(8), 5)
    for _ in range(1500):
        gaps = shift - draw.normal(0, 0.2, 8)[own] + draw.normal(0, 0.1, 40)
        answered = np.where(draw.random(40) < 0.5, own, 8 + np.arange(40))
        found.append(products(gaps[None], own, answered) / products(np.ones((1, 40)), own, answered))
    assert np.mean(found) == pytest.approx(shift**2, abs=0.003)
