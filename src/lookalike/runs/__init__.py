"""Finished runs on disk, read back: one by one, and put together as methods with their seeds."""

from lookalike.runs.finished import Finished, read
from lookalike.runs.methods import Collection, Method, collect

__all__ = ["Collection", "Finished", "Method", "collect", "read"]
