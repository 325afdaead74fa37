"""From photos without labels to classes: groups of one kind, and pairs that a person compares to check them."""

from lookalike.discover.grouping import FoundGroups, Grouping, hierarchy
from lookalike.discover.purity import Checked

__all__ = ["Checked", "FoundGroups", "Grouping", "hierarchy"]
