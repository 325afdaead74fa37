"""Several runs, or a whole study, side by side: one page and one table, with differences in pairs."""

from lookalike.report.compare.content import Comparison, compare
from lookalike.report.compare.text import as_text
from lookalike.report.compare.write import write

__all__ = ["Comparison", "as_text", "compare", "write"]
