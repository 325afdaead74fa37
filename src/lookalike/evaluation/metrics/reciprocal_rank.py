"""Mean reciprocal rank [math F.14]: 1 / rank of the first relevant item."""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def expected_reciprocal(before: int, relevant: int, others: int) -> float:
    """E[1 / rank of the first relevant item] in a shuffled group: Σ_c P(c others come first) / (before + c + 1)."""
    drawn = np.arange(others + 1)
    left = relevant + others - drawn
    missed = np.r_[1.0, np.cumprod((others - drawn[:-1]) / left[:-1])]
    return float(np.sum(missed * relevant / left / (before + drawn + 1)))


def mrr(order: Order) -> Values:
    first = order.first()
    if order.plain:
        return 1.0 / (order.before[first] + 1)
    groups = np.stack((order.before[first], order.relevant[first], order.others[first]), 1)
    kinds, which = np.unique(groups, axis=0, return_inverse=True)
    return np.array([expected_reciprocal(*kind) for kind in kinds.tolist()])[which.reshape(-1)]
