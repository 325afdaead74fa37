"""ndcg@K [math F.14] (Järvelin & Kekäläinen 2002): DCG / IDCG with gains 0 and 1 and discount 1 / log2(1 + rank).

Where relevance is graded, its grades are the gains: write 2^grade − 1 into the matrix for the other usual form.
"""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def ndcg(order: Order, k: int) -> Values:
    """DCG over the DCG of the best possible order, both up to rank k."""
    reach = int(min(k, order.size.max()))
    total = np.r_[0.0, np.cumsum(1 / np.log2(np.arange(2, reach + 2)))]
    begin = np.minimum(order.before, reach)
    if order.plain:
        near = order.before < reach
        gains = np.zeros(len(begin))
        gains[near] = 1 / np.log2(order.before[near] + 2)
    else:
        members = order.relevant + order.others
        gains = (total[np.minimum(order.before + members, reach)] - total[begin]) * order.relevant / members
    if order.gains is not None:
        return order.per_query(gains * order.gains / order.relevant) / best_gain(order, reach)
    ideal: Values = total[np.minimum(order.counts, reach)]
    return order.per_query(gains) / ideal


def best_gain(order: Order, reach: int) -> Values:
    """The DCG of each query's gains in falling order."""
    assert order.ideal is not None
    query = np.repeat(np.arange(len(order.counts)), order.counts)
    rank = np.arange(len(query)) - np.repeat(np.cumsum(order.counts) - order.counts, order.counts)
    near = rank < reach
    discounted = order.ideal[near] / np.log2(rank[near] + 2)
    return np.bincount(query[near], weights=discounted, minlength=len(order.counts)).astype(np.float64, copy=False)
