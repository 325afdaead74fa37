"""The report of a run: one page that opens anywhere, and each of its figures as SVG and numbers."""

from lookalike.report.run.write import write

__all__ = ["write"]
