"""Evaluation: every metric of the field, exactly, in bounded memory."""

from lookalike.evaluation.measure import evaluate
from lookalike.evaluation.result import Result

__all__ = ["Result", "evaluate"]
