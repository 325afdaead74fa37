"""The loops of `kernel` for relevant items that are listed one by one. Imported only when such are ranked."""

from typing import no_type_check

from numba import njit

from lookalike.evaluation.engine.kernel import dot


@njit(nogil=True, cache=True)
@no_type_check
def listed_scores(q, g, scale_q, scale_g, half_q, half_g, columns, out):
    """Float64 scores of row i with its listed columns of the gallery."""
    for i in range(q.shape[0]):
        for k in range(columns.shape[1]):
            j = columns[i, k]
            if j >= 0:
                out[i, k] = dot(q[i], g[j]) * scale_q[i] * scale_g[j] - half_q[i] - half_g[j]


@njit(nogil=True, cache=True)
@no_type_check
def fill_listed(block, columns, start, value):
    """A value for each row's listed columns (ascending, −1 behind them); `start` is the position of column 0."""
    for i in range(columns.shape[0]):
        low, high = 0, columns.shape[1]
        while low < high:
            middle = (low + high) // 2
            if 0 <= columns[i, middle] < start:
                low = middle + 1
            else:
                high = middle
        while low < columns.shape[1] and 0 <= columns[i, low] < start + block.shape[1]:
            block[i, columns[i, low] - start] = value
            low += 1
