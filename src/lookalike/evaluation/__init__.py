"""Evaluation: every metric of the field, exactly, in bounded memory."""

from lookalike.evaluation.evaluate import evaluate
from lookalike.evaluation.names import possible as metric_names
from lookalike.evaluation.neighbours import neighbours
from lookalike.evaluation.pair_curves import Tally, tally_pairs
from lookalike.evaluation.result import Result
from lookalike.evaluation.statistics.paired import compare

__all__ = ["Result", "Tally", "compare", "evaluate", "metric_names", "neighbours", "tally_pairs"]
