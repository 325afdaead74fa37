"""f1_retrieval@K (SPEC F.6b; Roth et al. eq. 28 as printed, ERR-33): harmonic mean of hits/K and hits/R_q per query."""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def f1_retrieval(order: Order, k: int) -> Values:
    return 2 * order.hits_within(k) / (np.minimum(k, order.size) + order.counts)
