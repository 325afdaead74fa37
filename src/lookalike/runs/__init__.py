"""Runs on disk: the only owner of their folders. Begun, resumed, locked, and read back.

Throughout, `path` is the folder of a run, and `tell` is called with every event of it. `intent`: "new", "resume",
"fresh" (replace what is there) or "either" (resume what is there, or begin).
"""

from lookalike.runs.finished import Finished, read
from lookalike.runs.folder import OpenRun, RunFolder

__all__ = ["Finished", "OpenRun", "RunFolder", "read"]
