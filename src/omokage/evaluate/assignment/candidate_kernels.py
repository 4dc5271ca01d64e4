"""Compiled kernels that choose candidates: which columns of a block of values belong to the best of their row.

The kernels release the GIL and hold no parallel loops: threads call them on blocks of rows, and no result depends on how
many threads there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.compiling import MINIMA, SUMS, kernel

CHUNK = 64  # values looked at together: a chunk whose least value is no candidate is skipped

_entry, _inner, _entry_sum = kernel(), kernel(cached=False), kernel(reorder=SUMS)
_entry_min, _inner_min = kernel(reorder=MINIMA), kernel(cached=False, reorder=MINIMA)


class Best(NamedTuple):
    """What may be among the best of each row of a block, in no order; all of it is written."""

    value: NDArray[np.float32]  # (rows, room)
    column: NDArray[np.int32]  # (rows, room)
    size: NDArray[np.int64]  # (rows,): how many are gathered
    bound: NDArray[np.float32]  # (rows,): only values below are gathered


@_inner_min
def _least(values, begin, end):
    least = values[begin]
    for j in range(begin + 1, end):
        least = min(least, values[j])
    return least


@_entry_min
def raise_to_columns(values, row_value, most):
    """Raise ``most[j]`` to the maximum of ``row_value[b] - values[b, j]``."""
    for b in range(values.shape[0]):
        u = row_value[b]
        row = values[b]
        for j in range(values.shape[1]):
            most[j] = max(most[j], u - row[j])


@_inner
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


@_entry
def collect(values, first, keep, best):
    """Take from a block of values those that may be among the ``keep`` smallest of their row, into ``best``.

    A full buffer is cut back to ``keep`` entries, which lowers the bound. ``first`` is the column number of the block's
    first column.
    """
    value, column = best.value, best.column
    room, width = value.shape[1], values.shape[1]
    for b in range(values.shape[0]):
        row = values[b]
        top, filled = best.bound[b], best.size[b]
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
        best.bound[b], best.size[b] = top, filled


@_entry
def cut_back(best, keep):
    """Bring the ``keep`` smallest of every row to the front, and ``bound`` to the largest of them."""
    for b in range(best.size.shape[0]):
        best.bound[b] = _keep_smallest(best.value[b], best.column[b], best.size[b], keep)
        best.size[b] = keep


@_entry_sum
def exact_costs(rows, x, y, column, cost):
    """−2 x·y in float64 of every row in ``rows`` with its candidates, into ``cost``."""
    for b in range(rows.shape[0]):
        a = x[rows[b]]
        for t in range(column.shape[1]):
            c = y[column[b, t]]
            total = 0.0
            for j in range(a.shape[0]):
                total += a[j] * c[j]
            cost[b, t] = -2.0 * total
