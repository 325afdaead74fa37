"""Several runs, or a whole study, side by side: one page and one table, with paired differences."""

from lookalike.report.compare.content import MethodComparison, compare
from lookalike.report.compare.methods import Collection, Method, collect
from lookalike.report.compare.sections import write
from lookalike.report.compare.text import as_text

__all__ = ["Collection", "Method", "MethodComparison", "as_text", "collect", "compare", "write"]
