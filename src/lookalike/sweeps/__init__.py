"""Sweeps: many runs of one recipe. A study runs a grid of changes and ends in a table; `tune` searches ranges of
settings on validation classes only (extra `tune`: optuna).
"""

from lookalike.sweeps.grid import Cell, Study, read
from lookalike.sweeps.ranges import Range, take
from lookalike.sweeps.study import check_all, work
from lookalike.sweeps.table import as_text, gather
from lookalike.sweeps.tune import Search, SearchResult, search
from lookalike.sweeps.tune_page import write

__all__ = [
    "Cell",
    "Range",
    "Search",
    "SearchResult",
    "Study",
    "as_text",
    "check_all",
    "gather",
    "read",
    "search",
    "take",
    "work",
    "write",
]
