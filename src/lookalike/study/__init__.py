"""Studies: a grid of changes to one recipe, run cell by cell by any number of processes, ending in one table."""

from lookalike.study.grid import Cell, Study, read
from lookalike.study.table import as_text, gather
from lookalike.study.work import check_all, work

__all__ = ["Cell", "Study", "as_text", "check_all", "gather", "read", "work"]
