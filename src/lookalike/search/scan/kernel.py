"""The compiled loops of the scan. They release the GIL; nothing here allocates more than a block."""

from typing import no_type_check

import numpy as np
from numba import njit

BLOCK = 4096  # rows whose integer products stay in the cache while they are scaled


@njit(nogil=True, fastmath=True, cache=True)
@no_type_check
def _products(items, query, out):
    # integers out, and a query of 16 bits: with a float here, or 8 bits on both sides, the compiled loop is slower
    for row in range(items.shape[0]):
        total = np.int32(0)
        for column in range(items.shape[1]):
            total += np.int32(items[row, column]) * np.int32(query[column])
        out[row] = total


@njit(nogil=True, fastmath=True, cache=True)
@no_type_check
def scan(items, offsets, queries, scales, scores):
    """scores[q, i] = scale_q · ⟨items_i, queries_q⟩ + offset_i, block by block: one pass over the items."""
    whole = np.empty(BLOCK, np.int32)
    for start in range(0, items.shape[0], BLOCK):
        stop = min(start + BLOCK, items.shape[0])
        for q in range(queries.shape[0]):
            _products(items[start:stop], queries[q], whole)
            for row in range(start, stop):
                scores[q, row] = scales[q] * whole[row - start] + offsets[row]


@njit(nogil=True, fastmath=True, cache=True)
@no_type_check
def scaled(whole, offsets, scales, scores):
    """The same scores from integer products that are there already."""
    for q in range(whole.shape[0]):
        for row in range(whole.shape[1]):
            scores[q, row] = scales[q] * whole[q, row] + offsets[row]


@njit(nogil=True, cache=True)
@no_type_check
def at_least(scores, floor, places):
    """How many scores reach the floor; the places of the first of them."""
    count = 0
    for row in range(len(scores)):
        if scores[row] >= floor:
            if count < len(places):
                places[count] = row
            count += 1
    return count
