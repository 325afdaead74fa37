"""Sweeps: many runs of one recipe. A study runs a grid of changes and ends in a table; `tune` searches ranges of
settings on validation classes only (extra `tune`: optuna).

Throughout, `study` is what `read` gives, `dataset` the images of all its runs, `out` the folder of the sweep, `source`
whatever `data.load` takes (None: what the file says), and `overrides` texts such as `train.steps=100`. `tell` is called
with every event, `stop()` after every step: true ends the work by `StoppedError`, and the next call continues it.
"""

from lookalike.sweeps.earlier import adopt, remaining
from lookalike.sweeps.grid import Cell, Study, read
from lookalike.sweeps.ranges import Range, take
from lookalike.sweeps.rehearsal import rehearse
from lookalike.sweeps.study import possible, work
from lookalike.sweeps.table import as_text, gather
from lookalike.sweeps.tune import Search, SearchResult, search
from lookalike.sweeps.tune_page import write

__all__ = [
    "Cell",
    "Range",
    "Search",
    "SearchResult",
    "Study",
    "adopt",
    "as_text",
    "gather",
    "possible",
    "read",
    "rehearse",
    "remaining",
    "search",
    "take",
    "work",
    "write",
]
