"""The compiled loops of `whole_rows`: one row of float64 scores put in order, and what stands above its relevant items.

A row is sorted by buckets of equal width (about one score each), then by insertion. What a query may not see is −∞.
"""

from typing import no_type_check

import numpy as np
from numba import njit

CROWDED = 48  # scores of one bucket that insertion would sort slowly


@njit(nogil=True, cache=True)
@no_type_check
def buckets_of(row, slots, last):
    """The bucket of every score, a monotone map: 0 for −∞, the highest scores in `last`."""
    low, high = np.inf, -np.inf
    for j in range(row.shape[0]):
        high = max(high, row[j])
        low = min(low, row[j] if row[j] > -np.inf else np.inf)
    scale = (last - 1) / (high - low) if high > low else 0.0
    for j in range(row.shape[0]):
        slots[j] = np.int32(min(max((row[j] - low) * scale, -1.0), last - 1.0)) + 1 if scale > 0 else row[j] > -np.inf


@njit(nogil=True, cache=True)
@no_type_check
def in_order(row, first, last, slots, begins, values, marks):  # noqa: C901 - calls inside a loop cost
    """The scores of a row ascending, with whether each is of the columns first … last − 1; returns how many are −∞."""
    buckets_of(row, slots, begins.shape[0] - 2)
    begins[:] = 0
    for j in range(row.shape[0]):
        begins[slots[j] + 1] += 1
    hidden = begins[1]
    for b in range(1, begins.shape[0]):
        begins[b] += begins[b - 1]
    for start, stop, mark in ((0, first, 0), (first, last, 1), (last, row.shape[0], 0)):
        for j in range(start, stop):
            place = begins[slots[j]]
            values[place], marks[place] = row[j], mark
            begins[slots[j]] = place + 1
    start = hidden
    for b in range(1, begins.shape[0] - 1):  # begins[b] is where bucket b ends by now
        if begins[b] - start > CROWDED:
            order = np.argsort(values[start : begins[b]])
            values[start : begins[b]] = values[start : begins[b]][order]
            marks[start : begins[b]] = marks[start : begins[b]][order]
        start = begins[b]
    for j in range(hidden + 1, row.shape[0]):
        value, mark, k = values[j], marks[j], j
        while k > hidden and values[k - 1] > value:
            values[k], marks[k] = values[k - 1], marks[k - 1]
            k -= 1
        values[k], marks[k] = value, mark
    return hidden


@njit(nogil=True, cache=True)
@no_type_check
def ranks_of_rows(scores, first, last, buckets, tolerance, over, upto):
    """For each row the irrelevant items above its relevant ones, the best first, rows one behind the other.

    Returns how many relevant items each row has. `over` counts what is above by more than the tolerance, `upto` also
    what is tied.
    """
    width = scores.shape[1]
    slots, begins = np.empty(width, np.int32), np.empty(buckets + 2, np.int32)
    values, marks = np.empty(width), np.empty(width, np.uint8)
    others, own = np.empty(width + 1), np.empty(width + 1)
    counts, end = np.zeros(scores.shape[0], np.int64), 0
    for i in range(scores.shape[0]):
        hidden = in_order(scores[i], first[i], last[i], slots, begins, values, marks)
        passed, begin = 0, end
        for j in range(width - 1, hidden - 1, -1):  # without branches: every score is written to both
            mark = np.int64(marks[j])
            own[end - begin], others[passed] = values[j], values[j]
            over[end], upto[end] = passed, passed
            end += mark
            passed += 1 - mark
        counts[i] = end - begin
        for p in range(counts[i]):
            score, above = own[p], over[begin + p]
            if above > 0 and others[above - 1] - score <= tolerance:
                while above > 0 and others[above - 1] - score <= tolerance:
                    above -= 1
                over[begin + p] = above
            above = upto[begin + p]
            if above < passed and score - others[above] <= tolerance:
                while above < passed and score - others[above] <= tolerance:
                    above += 1
                upto[begin + p] = above
    return counts
