"""Compiled kernels that choose candidates: which columns of a block of values belong to the best of their row.

The kernels release the GIL and hold no parallel loops: threads call them on blocks of rows, and no result depends on how
many threads there are.
"""

from __future__ import annotations

import numba as nb
import numpy as np

CHUNK = 64  # values looked at together: a chunk whose least value is no candidate is skipped

_jit = nb.njit(nogil=True, cache=True)
# Minima may be taken in any order (that is what lets them use vector registers); there is no NaN by construction.
_min = nb.njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "reassoc"})


@_min
def _least(values, begin, end):
    least = values[begin]
    for j in range(begin + 1, end):
        least = min(least, values[j])
    return least


@_min
def block_minima(values, least):
    """Lower ``least`` to the minimum of every row of a block of values."""
    for b in range(values.shape[0]):
        least[b] = min(least[b], _least(values[b], 0, values.shape[1]))


@_min
def raise_to_columns(values, row_value, most):
    """Raise ``most[j]`` to the maximum of ``row_value[b] - values[b, j]``."""
    for b in range(values.shape[0]):
        u = row_value[b]
        row = values[b]
        for j in range(values.shape[1]):
            most[j] = max(most[j], u - row[j])


@_jit
def _keep_smallest(value, column, size, keep):
    """Move the ``keep`` smallest of the first ``size`` values to the front (quickselect); return the largest kept."""
    low, high, k = 0, size - 1, keep - 1
    while low < high:
        pivot = value[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while value[i] < pivot:
                i += 1
            while value[j] > pivot:
                j -= 1
            if i <= j:
                value[i], value[j] = value[j], value[i]
                column[i], column[j] = column[j], column[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    most = value[0]
    for t in range(1, keep):
        most = max(most, value[t])
    return most


@_jit
def collect(values, first, keep, value, column, size, bound):
    """Take from a block of values those that may be among the ``keep`` smallest of their row.

    ``value[b, :size[b]]`` and ``column[b, :size[b]]`` gather what is below ``bound[b]``; a full buffer is cut back to
    ``keep`` entries, which lowers the bound. ``first`` is the column number of the block's first column.
    """
    room, width = value.shape[1], values.shape[1]
    for b in range(values.shape[0]):
        row = values[b]
        top, filled = bound[b], size[b]
        for begin in range(0, width, CHUNK):
            end = min(begin + CHUNK, width)
            if _least(row, begin, end) >= top:
                continue
            for j in range(begin, end):
                if row[j] < top:
                    value[b, filled] = row[j]
                    column[b, filled] = first + j
                    filled += 1
                    if filled == room:
                        top = _keep_smallest(value[b], column[b], filled, keep)
                        filled = keep
        bound[b], size[b] = top, filled


@nb.njit(nogil=True, cache=True, fastmath={"nsz", "contract", "reassoc"})
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@_jit
def finish_lists(rows, x, y, price, slack, value, column, size, table):
    """Write the gathered candidates of ``rows`` as lists: float64 costs, sorted by value, with their thresholds."""
    lists, cost, stale, threshold = table
    keep = lists.shape[1]
    for b in range(rows.shape[0]):
        i = rows[b]
        threshold[i] = np.inf
        if keep < price.shape[0]:
            threshold[i] = _keep_smallest(value[b], column[b], size[b], keep) - slack[i]
        exact = np.empty(keep)
        now = np.empty(keep)
        for t in range(keep):
            j = column[b, t]
            exact[t] = -2.0 * _dot(x[i], y[j])
            now[t] = exact[t] + price[j]
        order = np.argsort(now)
        for t in range(keep):
            s = order[t]
            lists[i, t], cost[i, t], stale[i, t] = column[b, s], exact[s], now[s]
        # What was left out was left out by float32; the best of the list is taken to be the best of all, and the
        # float64 certificate has the last word.
        threshold[i] = max(threshold[i], stale[i, 0])
