"""Precision@K [math F.2]: the share of relevant items among the first K (of the whole gallery where that is smaller).

The document forms [math F.4, ERR-31] (eq. 29 and 30 of Roth et al. as printed): precision@c_doc with K = class size
including the query, precision@1000_doc with K = 1000, or the gallery where that is smaller; precision@1000_eq30 divides
by 1000 then, too. R-precision [math F.3]: K = R_q, the number of relevant items.
"""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def precision(order: Order, k: int) -> Values:
    return order.hits_within(k) / np.minimum(k, order.size)


def precision_at_c_doc(order: Order) -> Values:
    k = np.minimum(order.counts + 1, order.size)
    return order.hits_within(k) / k


def precision_at_1000_doc(order: Order) -> Values:
    return precision(order, 1000)


def precision_at_1000_eq30(order: Order) -> Values:
    """Eq. 30 to the letter: 1000 in the denominator, however small the gallery."""
    return order.hits_within(1000) / 1000


def r_precision(order: Order) -> Values:
    return order.hits_within(order.counts) / order.counts
