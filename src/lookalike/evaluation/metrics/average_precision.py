"""Mean average precision [math F.3, F.4]: Σ_j rel_j · P@j over the first `cap` ranks, divided by a number of items.

map@r: cap and divisor R_q (Musgrave et al.). map@c, map@1000, map_lim: as the code of Roth et al. has it [math ERR-31],
divisor n_c = R_q + 1, the class size including the query, so that perfect retrieval gives (n_c − 1) / n_c; cap n_c,
1000 and min(1023, N). map: the whole ranking, divisor R_q.
"""

import numpy as np

from lookalike.evaluation.engine.ranks import Order, Values
from lookalike.evaluation.inputs import Codes

NO_CAP = np.iinfo(np.int64).max // 2
LIMIT = 1023  # of map_lim


def precision_sum(order: Order, cap: int | Codes) -> Values:
    """Expected Σ_j rel_j · P@j over the ranks up to `cap`.

    In a group of t relevant and m others after L items with A hits, rank L + j holds a relevant item with probability
    t / (t + m), and then A + 1 + (j − 1)(t − 1)/(t + m − 1) hits are expected up to it. Harmonic numbers sum over j.
    """
    if order.plain:
        return order.precisions_within(cap)
    limit = cap if isinstance(cap, int) else cap[order.query]
    members = order.relevant + order.others
    reach = np.clip(limit - order.before, 0, members)
    harmonic = np.r_[0, np.cumsum(1 / np.arange(1, int((order.before + members).max()) + 1, dtype=np.longdouble))]
    step = (order.relevant - 1) / np.maximum(members - 1, 1).astype(np.longdouble)
    spread = harmonic[order.before + reach] - harmonic[order.before]
    total = (order.hits + 1 - step * (order.before + 1)) * spread + step * reach
    return order.per_query((total * order.relevant / members).astype(np.float64))


def map_at_r(order: Order) -> Values:
    return precision_sum(order, order.counts) / order.counts


def map_at_c(order: Order) -> Values:
    return precision_sum(order, order.counts + 1) / (order.counts + 1)


def map_at_1000(order: Order) -> Values:
    return precision_sum(order, 1000) / (order.counts + 1)


def map_lim(order: Order) -> Values:
    return precision_sum(order, LIMIT) / (order.counts + 1)


def map_(order: Order) -> Values:
    return precision_sum(order, NO_CAP) / order.counts
