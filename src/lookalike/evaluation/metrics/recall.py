"""Recall@K [math F.1]: the share of queries with a relevant item among the first K. Under query/gallery: CMC(K).

Under expected ties: its probability, 1 − C(m, c) / C(t + m, c) for c drawn of t relevant and m tied irrelevant items.
"""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def recall(order: Order, k: int) -> Values:
    """
    >>> from lookalike.evaluation.engine.ranks import RelevantRanks, order
    >>> one = np.array([1])
    >>> ranks = RelevantRanks(np.array([0]), one, one, np.array([9]), np.array([2]), np.array([2]))
    >>> third = order(ranks, "pessimistic")
    >>> recall(third, 2), recall(third, 3)
    (array([0.]), array([1.]))
    """
    if order.plain:
        return (order.hits_within(k) > 0).astype(np.float64)
    first = order.first()
    relevant, others = order.relevant[first], order.others[first]
    drawn = np.clip(k - order.before[first], 0, relevant + others)
    missed = np.ones(len(first))
    for number in range(int(relevant.max())):
        active = (number < relevant) & (missed > 0)
        if not active.any():
            break
        left = (relevant + others - number)[active]
        missed[active] *= np.maximum(left - drawn[active], 0) / left
    return 1 - missed
