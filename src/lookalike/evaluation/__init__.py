"""Evaluation: every metric of the field, exactly, in bounded memory."""

from lookalike.evaluation.evaluate import evaluate
from lookalike.evaluation.names import possible as metric_names
from lookalike.evaluation.neighbours import neighbours
from lookalike.evaluation.result import Result
from lookalike.evaluation.statistics.paired import compare

__all__ = ["Result", "compare", "evaluate", "metric_names", "neighbours"]
