"""f1_retrieval@K [math F.6b, ERR-33] (Roth et al. eq. 28 as printed): harmonic mean of hits/K and hits/R_q."""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def f1_retrieval(order: Order, k: int) -> Values:
    return 2 * order.hits_within(k) / (np.minimum(k, order.size) + order.counts)
