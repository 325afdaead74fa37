"""Near duplicates among many images: hashes that differ in few bits, confirmed by the correlation of the thumbnails.

All pairs are compared, 100,000 images in seconds; two that are in one group already are not confirmed again, so a
thousand copies of one photo cost no more than others. Imported on first use, because numba compiles it then.
"""

from typing import no_type_check

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
@no_type_check
def _bits(word):
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(nogil=True, cache=True)
@no_type_check
def root_of(parent, node):
    """The root of a node's tree; the path to it becomes shorter on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@njit(nogil=True, cache=True)
@no_type_check
def link(hashes, shapes, parent, bits, least):
    """Unite (in `parent`, a forest) all rows whose hashes differ in at most `bits` and whose shapes correlate."""
    count = len(hashes)
    near = np.empty(count, np.uint8)
    for row in range(count):
        this = hashes[row]
        for other in range(row + 1, count):  # no branch in this loop, so that the compiler vectorises it
            near[other] = _bits(this ^ hashes[other]) <= np.uint64(bits)
        for other in range(row + 1, count):
            if near[other] and root_of(parent, row) != root_of(parent, other):
                product = np.float32(0)
                for place in range(shapes.shape[1]):
                    product += shapes[row, place] * shapes[other, place]
                if product >= least:
                    parent[root_of(parent, other)] = root_of(parent, row)
