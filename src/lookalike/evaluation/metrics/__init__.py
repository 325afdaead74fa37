"""Ranking metrics: each takes where the relevant items stand and gives one value per query; averages come later."""

from collections.abc import Callable

from lookalike.evaluation.engine.ranks import Order, Values
from lookalike.evaluation.metrics.average_precision import map_1000, map_c, map_full, map_lim, map_r
from lookalike.evaluation.metrics.f1_retrieval import f1_retrieval
from lookalike.evaluation.metrics.gain import ndcg
from lookalike.evaluation.metrics.precision import precision, precision_1000_printed, precision_c_doc, r_precision
from lookalike.evaluation.metrics.recall import recall
from lookalike.evaluation.metrics.reciprocal_rank import mrr

AT_K: dict[str, Callable[[Order, int], Values]] = {
    "recall": recall,
    "precision": precision,
    "f1_retrieval": f1_retrieval,
    "ndcg": ndcg,
}
PLAIN: dict[str, Callable[[Order], Values]] = {
    "r_precision": r_precision,
    "map@r": map_r,
    "map@c": map_c,
    "map@1000": map_1000,
    "map_lim": map_lim,
    "map": map_full,
    "precision@c_doc": precision_c_doc,
    "precision@1000_doc": lambda order: precision(order, 1000),
    "mrr": mrr,
    "precision@1000_eq30": precision_1000_printed,
}
ON_REQUEST = ("precision@1000_eq30",)  # not among the metrics that are measured where none is named
__all__ = ["AT_K", "ON_REQUEST", "PLAIN"]
