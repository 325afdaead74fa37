"""Ranking metrics: each takes where the relevant items stand and gives one value per query; averages come later.

One line per metric, in the order in which results list them. `_at_` in the name of a function is the @ in the name of
its metric; a function that takes `k` is a metric for every K.
"""

# ruff: noqa: I001 - the order has a meaning
import inspect
from collections.abc import Callable

from lookalike.evaluation.engine.ranks import Order, Values
from lookalike.evaluation.metrics.recall import recall as recall
from lookalike.evaluation.metrics.precision import precision as precision
from lookalike.evaluation.metrics.f1_retrieval import f1_retrieval as f1_retrieval
from lookalike.evaluation.metrics.gain import ndcg as ndcg
from lookalike.evaluation.metrics.precision import r_precision as r_precision
from lookalike.evaluation.metrics.average_precision import LIMIT
from lookalike.evaluation.metrics.average_precision import map_at_r as map_at_r
from lookalike.evaluation.metrics.average_precision import map_at_c as map_at_c
from lookalike.evaluation.metrics.average_precision import map_at_1000 as map_at_1000
from lookalike.evaluation.metrics.average_precision import map_lim as map_lim
from lookalike.evaluation.metrics.average_precision import map_ as map_
from lookalike.evaluation.metrics.precision import precision_at_c_doc as precision_at_c_doc
from lookalike.evaluation.metrics.precision import precision_at_1000_doc as precision_at_1000_doc
from lookalike.evaluation.metrics.reciprocal_rank import mrr as mrr
from lookalike.evaluation.metrics.precision import precision_at_1000_eq30 as precision_at_1000_eq30

_METRICS = {
    name.removesuffix("_").replace("_at_", "@"): metric
    for name, metric in globals().items()
    if getattr(metric, "__module__", "").startswith(f"{__name__}.")
}
AT_K: dict[str, Callable[[Order, int], Values]] = {
    name: metric for name, metric in _METRICS.items() if "k" in inspect.signature(metric).parameters
}
PLAIN: dict[str, Callable[[Order], Values]] = {name: metric for name, metric in _METRICS.items() if name not in AT_K}
# how many ranks a metric looks at, where that is a number; metrics at K look at K
RANKS = {"map@1000": 1000, "map_lim": LIMIT, "precision@1000_doc": 1000, "precision@1000_eq30": 1000}
ON_REQUEST = ("precision@1000_eq30",)  # not among the metrics that are measured where none is named
