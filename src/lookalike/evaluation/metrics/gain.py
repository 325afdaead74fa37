"""ndcg@K [math F.14] (Järvelin & Kekäläinen 2002): DCG / IDCG with gains 0 and 1 and discount 1 / log2(1 + rank)."""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values


def ndcg(order: Order, k: int) -> Values:
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
    ideal: Values = total[np.minimum(order.counts, reach)]
    return order.per_query(gains) / ideal
