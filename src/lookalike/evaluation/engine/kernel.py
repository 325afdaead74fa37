"""The compiled loops of the counting engine (CPU). Imported only when something is ranked: numba loads slowly.

No prange and no numba threads: numba's threading layers abort under fork or with two callers. Every loop releases the
GIL, and `ranking` runs them on ordinary threads. `low` and `high` are the two edges around each relevant
score, items × queries, the best first. Between the two a float32 score proves nothing and is settled in float64.
"""

from typing import no_type_check

import numpy as np
from numba import njit

FAST_SUMS = {"reassoc", "nsz", "contract"}  # lets the compiler vectorise a float64 dot product, nothing else


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
@no_type_check
def dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += np.float64(a[k]) * np.float64(b[k])
    return total


@njit(nogil=True, cache=True)
@no_type_check
def relevant_scores(q, g, scale_q, scale_g, half_q, half_g, first, last, out):
    """Float64 scores of row i with the columns first[i] … last[i] − 1 of the gallery."""
    for i in range(q.shape[0]):
        for j in range(first[i], last[i]):
            out[i, j - first[i]] = dot(q[i], g[j]) * scale_q[i] * scale_g[j] - half_q[i] - half_g[j]


@njit(nogil=True, cache=True)
@no_type_check
def hide_classes(scores, first, last, start):
    """−∞ for the columns of the query's own class; `start` is the gallery position of column 0."""
    for i in range(first.shape[0]):
        begin = max(first[i] - start, 0)
        end = min(last[i] - start, scores.shape[1])
        for j in range(begin, end):
            scores[i, j] = -np.inf


@njit(nogil=True, cache=True)
@no_type_check
def hide_groups(scores, row_groups, column_groups):
    for i in range(row_groups.shape[0]):
        group = row_groups[i]
        for j in range(column_groups.shape[0]):
            if column_groups[j] == group:
                scores[i, j] = -np.inf


@njit(nogil=True, cache=True)
@no_type_check
def few_rows(scores, low, high, above, near):
    """How many scores of row i are > high[p, i]. Branch-free: one sweep of the row per relevant item.

    `above` must be zeros. Scores between the edges are listed in `near` as (query, column, item, item + 1). Returns
    how many there are, or −1 if they do not fit.
    """
    listed = 0
    for i in range(low.shape[1]):
        row = scores[i]
        for p in range(low.shape[0] - 1, -1, -1):
            edge, far = low[p, i], high[p, i]
            if edge == np.inf:
                continue
            m, n = np.int32(0), np.int32(0)
            for j in range(row.shape[0]):
                m = np.int32(m + np.int32(row[j] >= edge))
                n = np.int32(n + np.int32(row[j] > far))
            if m == 0:  # nor is any score near a better item
                break
            above[p, i] = n
            if m > n:
                if listed + m - n > near.shape[0]:
                    return -1
                listed = list_row(row, edge, far, i, p, near, listed)
    return listed


@njit(nogil=True, cache=True)
@no_type_check
def list_row(row, edge, far, i, p, near, listed):
    """List the near scores of one row; only stretches of 64 that hold one are searched."""
    for start in range(0, row.shape[0], 64):
        stretch = row[start : start + 64]
        inside = np.int32(0)
        for j in range(stretch.shape[0]):
            inside = np.int32(inside + np.int32((stretch[j] >= edge) & (stretch[j] <= far)))
        if inside > 0:
            for j in range(stretch.shape[0]):
                if edge <= stretch[j] <= far:
                    near[listed, 0], near[listed, 1], near[listed, 2], near[listed, 3] = i, start + j, p, p + 1
                    listed += 1
    return listed


@njit(nogil=True, cache=True)
@no_type_check
def add_eight(rows, low, high, at_least, above):
    """Add the counts of eight rows of scores to those of all columns; columns are queries."""
    a, b, c, d, e, f, g, h = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
    for p in range(low.shape[0]):
        edge, far, m, n = low[p], high[p], at_least[p], above[p]
        for j in range(low.shape[1]):
            x, y = edge[j], far[j]
            m[j] += (np.int32(a[j] >= x) + np.int32(b[j] >= x) + np.int32(c[j] >= x) + np.int32(d[j] >= x)) + (
                np.int32(e[j] >= x) + np.int32(f[j] >= x) + np.int32(g[j] >= x) + np.int32(h[j] >= x)
            )
            n[j] += (np.int32(a[j] > y) + np.int32(b[j] > y) + np.int32(c[j] > y) + np.int32(d[j] > y)) + (
                np.int32(e[j] > y) + np.int32(f[j] > y) + np.int32(g[j] > y) + np.int32(h[j] > y)
            )


@njit(nogil=True, cache=True)
@no_type_check
def few_columns(scores, low, high, above, near):  # noqa: C901 - one loop, and calls inside it cost
    """`few_rows` with columns as queries, without a transposed copy: eight rows at a time (their number divides by 8).

    Rows come in strips, so that a column with a near score is searched in a strip that is still in the cache.
    """
    listed = 0
    at_least, more = np.zeros(low.shape, np.int32), np.zeros(low.shape, np.int32)
    above[:] = 0
    for start in range(0, scores.shape[0], 64):
        stop = min(start + 64, scores.shape[0])
        for i in range(start, stop, 8):
            add_eight(scores[i : i + 8], low, high, at_least, more)
        for p in range(low.shape[0]):
            for j in range(low.shape[1]):
                inside = at_least[p, j] - more[p, j]
                above[p, j] += more[p, j]
                at_least[p, j], more[p, j] = 0, 0
                if inside > 0:
                    if listed + inside > near.shape[0]:
                        return -1
                    for i in range(start, stop):
                        if low[p, j] <= scores[i, j] <= high[p, j]:
                            near[listed, 0], near[listed, 1], near[listed, 2], near[listed, 3] = j, i, p, p + 1
                            listed += 1
    return listed


@njit(nogil=True, cache=True)
@no_type_check
def few_exact(scores, low, high, at_least, above):
    """How many scores of row i are ≥ low[p, i] and > high[p, i], for float64 scores."""
    for i in range(low.shape[1]):
        row = scores[i]
        for p in range(low.shape[0]):
            edge, far = low[p, i], high[p, i]
            m, n = 0, 0
            for j in range(row.shape[0]):
                m += np.int64(row[j] >= edge)
                n += np.int64(row[j] > far)
            at_least[p, i], above[p, i] = m, n


@njit(nogil=True, cache=True)
@no_type_check
def passed_by(edges, score):
    """How many of the ascending edges are below a score."""
    first, last = 0, edges.shape[0]
    while first < last:
        middle = (first + last) // 2
        if edges[middle] < score:
            first = middle + 1
        else:
            last = middle
    return first


@njit(nogil=True, cache=True)
@no_type_check
def slots_of(scores, base, scale, last, slots):
    """The slot of each score: 0 below `base`, `last` far above it. Any monotone map would do."""
    for j in range(scores.shape[0]):
        slots[j] = np.int32(min(max((scores[j] - base) * scale, np.float32(-1)), np.float32(last - 1))) + 1


@njit(nogil=True, cache=True)
@no_type_check
def fill_tables(low, high, counts, tables, bases, scales):
    """How many edges a score in each slot has passed, a row per query; n + 1 where a band touches the slot."""
    last = tables.shape[1] - 1
    slot_up, slot_down = np.empty(high.shape[0], np.int32), np.empty(high.shape[0], np.int32)
    for i in range(counts.shape[0]):
        n, slot = counts[i], 0
        if n > 0:
            bases[i] = low[n - 1, i]
            scales[i] = (last - 2) / (high[0, i] - low[n - 1, i])
            slots_of(high[:n, i], bases[i], scales[i], last, slot_up)
            slots_of(low[:n, i], bases[i], scales[i], last, slot_down)
        for k in range(n):
            while slot < slot_down[n - 1 - k]:
                tables[i, slot] = k
                slot += 1
            while slot <= slot_up[n - 1 - k]:
                tables[i, slot] = n + 1
                slot += 1
        tables[i, slot:] = n


@njit(nogil=True, cache=True)
@no_type_check
def many_rows(scores, low, high, counts, tables, bases, scales, above, near):  # noqa: C901 - calls inside a loop cost
    """`few_rows` for queries with many relevant items: a table holds how many edges a score has passed.

    Slots are much finer than the distances of edges, so few scores fall into one with an edge and need a search.
    Returns the number of near scores listed, or −1 if there are too many.
    """
    most, width, last = high.shape[0], scores.shape[1], tables.shape[1] - 1
    slots, unsure = np.empty(width, np.int32), np.empty(width + 1, np.int32)
    up, down = np.empty(most, high.dtype), np.empty(most, high.dtype)
    tally = np.empty((2, most + 2), np.int32)
    listed, pairs = 0, 0
    for i in range(counts.shape[0]):
        n = counts[i]
        if n == 0:
            continue
        slots_of(scores[i], bases[i], scales[i], last, slots)
        table = tables[i]
        tally[:, : n + 2] = 0
        doubts = 0
        for j in range(width):
            code = table[slots[j]]
            tally[j & 1, code] += 1  # two tallies: equal codes in a row do not wait for each other
            unsure[doubts] = j
            doubts += code > n
        if doubts > 0:
            for k in range(n):
                up[k], down[k] = high[n - 1 - k, i], low[n - 1 - k, i]
        for d in range(doubts):
            score = scores[i, unsure[d]]
            k = passed_by(up[:n], score)
            tally[0, k] += 1
            if k < n and down[k] <= score:
                end = k + 1
                while end < n and down[end] <= score:
                    end += 1
                pairs += end - k
                if listed == near.shape[0] or pairs > near.shape[0]:
                    return -1
                near[listed, 0], near[listed, 1], near[listed, 2], near[listed, 3] = i, unsure[d], n - end, n - k
                listed += 1
        total = 0
        for k in range(n - 1, -1, -1):
            total += tally[0, k + 1] + tally[1, k + 1]
            above[n - 1 - k, i] = total
    return listed


@njit(nogil=True, cache=True)
@no_type_check
def many_exact(scores, edges, counts, above):
    """How many scores of row i are > edges[p, i], for many edges and scores that need no second look."""
    up = np.empty(edges.shape[0], edges.dtype)
    tally = np.empty(edges.shape[0] + 1, np.int32)
    for i in range(counts.shape[0]):
        n = counts[i]
        for k in range(n):
            up[k] = edges[n - 1 - k, i]
        tally[: n + 1] = 0
        for j in range(scores.shape[1]):
            tally[passed_by(up[:n], scores[i, j])] += 1
        total = 0
        for k in range(n - 1, -1, -1):
            total += tally[k + 1]
            above[n - 1 - k, i] = total


@njit(nogil=True, cache=True)
@no_type_check
def settle(q, g, scale_q, scale_g, half_q, half_g, near, relevant, tolerance, over, upto):
    """Scores too close to call in float32, compared again in float64."""
    for k in range(near.shape[0]):
        i, j = near[k, 0], near[k, 1]
        score = dot(q[i], g[j]) * scale_q[i] * scale_g[j] - half_q[i] - half_g[j]
        for p in range(near[k, 2], near[k, 3]):
            difference = score - relevant[p, i]
            if difference > tolerance:
                over[p, i] += 1
            if difference >= -tolerance:
                upto[p, i] += 1
