"""Runs on disk: the only owner of their folders. Begun, resumed, locked, read back, and put together as methods.

Throughout, `path` is the folder of a run, and `tell` is called with every event of it. `intent`: "new", "resume",
"fresh" (replace what is there) or "either" (resume what is there, or begin).
"""

from lookalike.runs.finished import Finished, read
from lookalike.runs.folder import OpenRun, RunFolder
from lookalike.runs.methods import Collection, Method, collect

__all__ = ["Collection", "Finished", "Method", "OpenRun", "RunFolder", "collect", "read"]
