"""Curves over ranks: CMC, and precision against recall averaged over queries."""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values
from lookalike.evaluation.metrics.recall import recall

LEVELS = np.linspace(0, 1, 101)  # recall levels of the retrieval curve
REACH = 100  # last K of the CMC curve


def cmc_sums(order: Order) -> Values:
    """Σ over queries of "a relevant item among the first k", for k = 1 … REACH [math F.14]."""
    return np.array([recall(order, k).sum() for k in range(1, REACH + 1)])


def precision_recall_sums(order: Order) -> Values:
    """Σ over queries of the best precision at a recall of at least each level: interpolated precision (Manning, 8.4).

    `order` must be without tied groups.
    """
    ends = np.cumsum(order.counts)
    precision = (order.hits + 1) / (order.before + 1)
    # running maximum from the last hit of each query backwards: shifted apart by query, one sweep does them all
    lift = order.query * 2.0
    best = np.maximum.accumulate((precision - lift)[::-1])[::-1] + lift
    needed = np.ceil(LEVELS[:, None] * order.counts - 1e-9).astype(np.int64) - 1
    totals: Values = best[(ends - order.counts) + np.maximum(needed, 0)].sum(1)
    return totals
