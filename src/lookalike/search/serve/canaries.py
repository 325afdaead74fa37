"""Known pictures that a server asks for now and then: those of some items, which must still be what they were."""

from itertools import islice

import numpy as np
from jaxtyping import Float32

from lookalike.image_files import UnreadableError
from lookalike.search.items import Item
from lookalike.search.pictures import content_of
from lookalike.search.stores import Store

MOST = 5  # pictures
LOOKED = 50  # items among which they are sought: many have no picture that can be read
NEAR = 0.01  # of its length: so far may a vector be from the one that was kept


def canaries(store: Store) -> list[tuple[Item, bytes]]:
    """Some items with the files of their pictures."""
    found = []
    for item in islice(store.listed(), LOOKED):
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
