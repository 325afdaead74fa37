"""Search: an index of images that remembers, finds, and knows when it does not know."""

from lookalike.search.index import Index
from lookalike.search.items import Answer, Hit, Item

__all__ = ["Answer", "Hit", "Index", "Item"]
