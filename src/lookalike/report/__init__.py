"""The report of a run: one page that opens anywhere, and every figure of it as SVG, PNG and numbers."""

from lookalike.report.run.write import write

__all__ = ["write"]
