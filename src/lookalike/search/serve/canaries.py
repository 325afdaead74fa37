"""Known pictures that a server searches for now and then: those of some items, which must be found as they were."""

import numpy as np
from jaxtyping import Float32

from lookalike.geometry import Geometry
from lookalike.image_files import UnreadableError
from lookalike.search.items import Answer, Item
from lookalike.search.pictures import content_of
from lookalike.search.stores import Store

MOST = 5  # pictures
LOOKED = 50  # items among which they are sought: many have no picture that can be read
NEAR = 0.01  # of its length: so far may a vector be from the one that was kept
ROUNDING = 1e-5  # of the squares of the lengths: so far may a similarity be below what it is


def canaries(store: Store) -> list[tuple[Item, bytes]]:
    """Some items from all over the index with the files of their pictures."""
    found = []
    for item in store.sample(LOOKED):
        try:
            content = None if item.mapped else content_of(store, item)
        except UnreadableError:
            continue
        if content is not None:
            found.append((item, content))
        if len(found) == MOST:
            break
    return found


def same(vector: Float32[np.ndarray, " d"], own: Float32[np.ndarray, " d"]) -> bool:
    """Whether a picture still has the vector that it was given."""
    return float(np.linalg.norm(vector - own)) <= NEAR * max(float(np.linalg.norm(own)), 1e-12)


def reached(
    answer: Answer, vector: Float32[np.ndarray, " d"], own: Float32[np.ndarray, " d"], geometry: Geometry
) -> bool:
    """Whether the best hit is no farther than the item with the vector `own`; an approximate answer may miss it."""
    asked, kept = vector.astype(np.float64), own.astype(np.float64)
    similarity = asked @ kept if geometry == "sphere" else -np.square(asked - kept).sum() / 2
    least = similarity - ROUNDING * (asked @ asked + kept @ kept)
    return not answer.certified or bool(answer.hits and answer.hits[0].similarity >= least)
