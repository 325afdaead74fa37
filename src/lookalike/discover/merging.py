"""Average link along a graph of neighbours: the compiled loops.

The mean similarity of two groups is that of all pairs between them. It needs no pair: on the sphere it is
⟨Σa, Σb⟩ / (n_a n_b), elsewhere half of the mean squares of both groups less. So a group is one sum, its size, and the
sum of its squares (0 on the sphere). A heap holds the edges of the graph. A mean of two merged groups is at most the
larger of theirs, so that a value in the heap bounds what the edge is worth now: it is computed again when its turn
comes, and waits again where it has fallen.
"""

from heapq import heapify, heappop, heappush
from typing import no_type_check

import numpy as np
from numba import njit

from lookalike.data.audit.hamming import root_of


@njit(nogil=True, cache=True)
@no_type_check
def dot(one, other):
    total = 0.0
    for column in range(len(one)):
        total += one[column] * other[column]
    return total


@njit(nogil=True, cache=True)
@no_type_check
def merge(sums, squares, sizes, parent, known, edges, scores, lowest):
    """Merge the two most similar groups that an edge connects, down to `lowest`; two `known` ones are never merged.

    Returns both roots of every merge, the one that stays first, and the mean similarity at which it took place.
    `sums`, `squares`, `sizes`, `parent` and `known` are changed.
    """
    waiting = [(-scores[edge], edge) for edge in range(len(edges))]
    heapify(waiting)
    kept, joined, heights = [], [], []
    while len(waiting) > 0:
        bound, edge = heappop(waiting)
        one, other = root_of(parent, edges[edge, 0]), root_of(parent, edges[edge, 1])
        if one == other or (known[one] and known[other]):
            continue
        first, second = min(one, other), max(one, other)
        half = (squares[first] / sizes[first] + squares[second] / sizes[second]) / 2
        mean = dot(sums[first], sums[second]) / (sizes[first] * sizes[second]) - half
        if mean < lowest:
            continue
        if mean < -bound:
            heappush(waiting, (-mean, edge))
            continue
        for column in range(sums.shape[1]):
            sums[first, column] += sums[second, column]
        squares[first] += squares[second]
        sizes[first] += sizes[second]
        known[first] = known[first] or known[second]
        parent[second] = first
        kept.append(first)
        joined.append(second)
        heights.append(mean)
    return np.array(kept, np.int64), np.array(joined, np.int64), np.array(heights, np.float64)


@njit(nogil=True, cache=True)
@no_type_check
def similarities(vectors, squares, groups, neighbours, count):
    """The mean similarity of each item to the others of its group, and the largest one to a group of a neighbour.

    −∞ for the only item of a group, and where no neighbour is in another group. `squares` are those of the items.
    """
    sums = np.zeros((count, vectors.shape[1]), np.float64)
    norms, sizes = np.zeros(count), np.zeros(count)
    for item in range(len(vectors)):
        group = groups[item]
        for column in range(vectors.shape[1]):
            sums[group, column] += vectors[item, column]
        norms[group] += squares[item]
        sizes[group] += 1
    own = np.full(len(vectors), -np.inf)
    other = np.full(len(vectors), -np.inf)
    for item in range(len(vectors)):
        group = groups[item]
        if sizes[group] > 1:
            itself = dot(vectors[item], vectors[item]) - squares[item]
            total = dot(vectors[item], sums[group]) - (sizes[group] * squares[item] + norms[group]) / 2
            own[item] = (total - itself) / (sizes[group] - 1)
        for place in range(neighbours.shape[1]):
            near = groups[neighbours[item, place]]
            if near != group:
                half = (squares[item] + norms[near] / sizes[near]) / 2
                other[item] = max(other[item], dot(vectors[item], sums[near]) / sizes[near] - half)
    return own, other
