"""Bayesian search over a recipe's settings, on validation classes only (extra `tune`: optuna)."""

from lookalike.tuning.page import write
from lookalike.tuning.search import Found, Search, search
from lookalike.tuning.space import Range, take

__all__ = ["Found", "Range", "Search", "search", "take", "write"]
