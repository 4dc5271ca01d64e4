"""Compiled kernels of Mondrian: spread of every column, the best column, the cut, and a whole subtree.

The kernels release the GIL and are called from plain Python threads, so that both ways of working in parallel
(chunks of one large set, many small sets) need no parallel runtime and survive a fork. Nothing depends on the
number of threads: the random dimensions of a set come from its place in the tree, and ties are cut by row number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.compiling import SUMS, kernel
from . import small

BLOCK = 2048  # columns handled at once, so that their two rows of bounds stay in a near cache

_entry, _entry_sum = kernel(), kernel(reorder=SUMS)
_inner, _inner_sum = kernel(cached=False), kernel(cached=False, reorder=SUMS)


class Settings(NamedTuple):
    """Least number of rows in a group, how many dimensions are compared, and where a set is cut."""

    k: int
    search: int
    seed: np.uint64
    multiples: bool


class Ends(NamedTuple):
    """Minimum and maximum of the compared columns; written."""

    low: NDArray[np.floating]
    high: NDArray[np.floating]


class Sums(NamedTuple):
    """Sum and sum of squares of the compared columns, less a shift; written."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    shift: NDArray[np.floating]


@_inner
def mix(x):
    """One step of SplitMix64: a 64-bit number that looks random for every input."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_entry
def draw_dims(seed, node, d, dims):
    """Fill ``dims`` with random different dimensions of ``d``, ascending; the node in the tree fixes which.

    Selection sampling: a dimension is taken with the share of those still needed among those still to come.
    """
    state = mix(np.uint64(seed) ^ mix(np.uint64(node)))
    taken = 0
    for j in range(d):
        state = mix(state)
        if state % np.uint64(d - j) < np.uint64(dims.shape[0] - taken):
            dims[taken] = j
            taken += 1


@_inner_sum
def _fold_row(row, low, high):
    for j in range(row.shape[0]):
        v = row[j]
        low[j] = v if v < low[j] else low[j]
        high[j] = v if v > high[j] else high[j]


@_inner_sum
def _fold_eight(r0, r1, r2, r3, r4, r5, r6, r7, low, high):
    """Eight rows at once: the bounds are loaded and stored an eighth as often, which halves the time."""
    for j in range(r0.shape[0]):
        a, b, c, d = r0[j], r1[j], r2[j], r3[j]
        e, f, g, h = r4[j], r5[j], r6[j], r7[j]
        p, q = a if a < b else b, c if c < d else d
        r, s = e if e < f else f, g if g < h else h
        p, r = p if p < q else q, r if r < s else s
        p = p if p < r else r
        low[j] = p if p < low[j] else low[j]
        p, q = a if a > b else b, c if c > d else d
        r, s = e if e > f else f, g if g > h else h
        p, r = p if p > q else q, r if r > s else s
        p = p if p > r else r
        high[j] = p if p > high[j] else high[j]


@_entry_sum
def column_bounds(x, by_column, rows, low, high):
    """Minimum and maximum of every column over ``rows``, into ``low`` and ``high``."""
    m, d = rows.shape[0], x.shape[1]
    if by_column is not None:
        for j in range(d):
            least = x[rows[0], j]
            most = least
            for i in range(1, m):
                v = x[rows[i], j]
                least = v if v < least else least
                most = v if v > most else most
            low[j] = least
            high[j] = most
        return
    for b in range(0, d, BLOCK):
        e = min(b + BLOCK, d)
        lo, hi = low[b:e], high[b:e]
        for j in range(e - b):
            lo[j] = x[rows[0], b + j]
            hi[j] = lo[j]
        odd = m % 8
        for i in range(odd):
            _fold_row(x[rows[i], b:e], lo, hi)
        for i in range(odd, m, 8):
            _fold_eight(
                x[rows[i], b:e],
                x[rows[i + 1], b:e],
                x[rows[i + 2], b:e],
                x[rows[i + 3], b:e],
                x[rows[i + 4], b:e],
                x[rows[i + 5], b:e],
                x[rows[i + 6], b:e],
                x[rows[i + 7], b:e],
                lo,
                hi,
            )


@_inner_sum
def _add_four(r0, r1, r2, r3, shift, first, second):
    """Four rows are added in the data's own precision, the fours in double."""
    for j in range(r0.shape[0]):
        c = shift[j]
        p, q, r, s = r0[j] - c, r1[j] - c, r2[j] - c, r3[j] - c
        first[j] += (p + q) + (r + s)
        second[j] += (p * p + q * q) + (r * r + s * s)


@_entry_sum
def column_sums(x, by_column, rows, shift, first, second):
    """Sum and sum of squares of every column over ``rows``, less ``shift`` so that little cancels."""
    m, d = rows.shape[0], x.shape[1]
    if by_column is not None:
        for j in range(d):
            s1 = 0.0
            s2 = 0.0
            for i in range(m):
                v = np.float64(x[rows[i], j] - shift[j])
                s1 += v
                s2 += v * v
            first[j] = s1
            second[j] = s2
        return
    for b in range(0, d, BLOCK):
        e = min(b + BLOCK, d)
        for j in range(b, e):
            first[j] = 0.0
            second[j] = 0.0
        odd = m % 4
        for i in range(odd):
            for j in range(b, e):
                v = x[rows[i], j] - shift[j]
                first[j] += v
                second[j] += v * v
        for i in range(odd, m, 4):
            _add_four(
                x[rows[i], b:e],
                x[rows[i + 1], b:e],
                x[rows[i + 2], b:e],
                x[rows[i + 3], b:e],
                shift[b:e],
                first[b:e],
                second[b:e],
            )


@_entry_sum
def sampled_bounds(x, rows, dims, low, high):
    """As ``column_bounds``, for the columns named in ``dims``; False where one of their values is not finite."""
    check = x.dtype.type(0)
    zero = x.dtype.type(0)
    for t in range(dims.shape[0]):
        low[t] = x[rows[0], dims[t]]
        high[t] = low[t]
    for i in range(rows.shape[0]):
        r = rows[i]
        for t in range(dims.shape[0]):
            v = x[r, dims[t]]
            check += v * zero
            low[t] = v if v < low[t] else low[t]
            high[t] = v if v > high[t] else high[t]
    return check == zero


@_entry_sum
def sampled_sums(x, rows, dims, shift, first, second):
    """As ``column_sums``, for the columns named in ``dims``; False where one of their values is not finite."""
    for t in range(dims.shape[0]):
        first[t] = 0.0
        second[t] = 0.0
    for i in range(rows.shape[0]):
        r = rows[i]
        for t in range(dims.shape[0]):
            v = np.float64(x[r, dims[t]]) - np.float64(shift[dims[t]])
            first[t] += v
            second[t] += v * v
    total = 0.0
    for t in range(dims.shape[0]):
        total += second[t] * 0.0
    return total == 0.0


@_inner
def _widest(spread, weight, power, dims):
    """The dimension of largest weighted spread, the first among equals."""
    best = -1.0
    best_dim = np.int64(-1)
    for t in range(spread.shape[0]):
        j = np.int64(t)
        if dims is not None:
            j = dims[t]
        s = spread[t] * (weight[j] if power == 1 else weight[j] * weight[j])
        if best_dim < 0 or s > best:
            best = s
            best_dim = j
    return best_dim


@_inner
def _smallest(v, rank):
    """The value at ``rank`` of the sorted array; reorders ``v`` (quickselect)."""
    a, b = 0, v.shape[0] - 1
    while a < b:
        mid = (a + b) >> 1
        x, y, z = v[a], v[mid], v[b]
        pivot = max(min(x, y), min(max(x, y), z))
        i, j = a, b
        while i <= j:
            while v[i] < pivot:
                i += 1
            while v[j] > pivot:
                j -= 1
            if i <= j:
                v[i], v[j] = v[j], v[i]
                i += 1
                j -= 1
        if rank <= j:
            b = j
        elif rank >= i:
            a = i
        else:
            break
    return v[rank]


@_entry
def split(x, j, rows, cut, values, spare):
    """Move the ``cut`` rows smallest in column ``j`` to the front; both parts keep ascending row numbers.

    ``rows`` ascends at the start, so equal values are cut by row number, as a stable sort would.
    """
    m = rows.shape[0]
    for i in range(m):
        values[i] = x[rows[i], j]
    limit = _smallest(values[:m], cut - 1)
    below = 0
    for i in range(m):
        values[i] = x[rows[i], j]
        below += values[i] < limit
    ties = cut - below
    left, right = 0, 0
    for i in range(m):
        v = values[i]
        tie = v == limit
        goes_left = v < limit or (tie and ties > 0)
        ties -= tie and goes_left
        if goes_left:
            rows[left] = rows[i]
            left += 1
        else:
            spare[right] = rows[i]
            right += 1
    for i in range(right):
        rows[cut + i] = spare[i]


cut_at = _inner(small.cut_at)


@_inner
def _measure(x, by_column, ends, sums, dims, rows, spread):
    """Spread of the compared columns over ``rows``, into ``spread``; False: a value is not finite."""
    finite = True
    if ends is not None:
        if dims is None:
            column_bounds(x, by_column, rows, ends.low, ends.high)
        else:
            finite = sampled_bounds(x, rows, dims, ends.low, ends.high)
        for t in range(spread.shape[0]):
            spread[t] = np.float64(ends.high[t]) - np.float64(ends.low[t])
    if sums is not None:
        for j in range(x.shape[1]):
            sums.shift[j] = x[rows[0], j]
        if dims is None:
            column_sums(x, by_column, rows, sums.shift, sums.first, sums.second)
        else:
            finite = sampled_sums(x, rows, dims, sums.shift, sums.first, sums.second)
        for t in range(spread.shape[0]):
            spread[t] = sums.second[t] - sums.first[t] * sums.first[t] / rows.shape[0]
    return finite


@_entry
def grow(x, by_column, ends, sums, dims, rows, begin, node, settings, weight, starts):
    """Divide one set down to its groups; False: a value is not finite.

    ``rows`` is put in the groups' order, and ``starts`` marks where a group begins. ``ends``, ``sums`` and ``dims`` are room to
    work in: one of the first two is None, and ``dims`` is None if all columns are compared. ``by_column`` is True or None. What
    None rules out is not compiled.
    """
    k = settings.k
    m0, d = rows.shape[0], x.shape[1]
    spread = np.empty(settings.search, np.float64)
    weight_power = 1
    if sums is not None:
        weight_power = 2
    values, spare = np.empty(m0, x.dtype), np.empty(m0, rows.dtype)
    stack_set, stack_node = np.empty((128, 2), np.int64), np.empty(128, np.uint64)
    stack_set[0, 0], stack_set[0, 1], stack_node[0] = 0, m0, node
    top = 1
    while top > 0:
        top -= 1
        lo, hi, here = stack_set[top, 0], stack_set[top, 1], stack_node[top]
        m = hi - lo
        if m < 2 * k:
            starts[begin + lo] = True
            continue
        part = rows[lo:hi]
        if dims is not None:
            draw_dims(settings.seed, here, d, dims)
        if not _measure(x, by_column, ends, sums, dims, part, spread):
            return False
        j = _widest(spread, weight, weight_power, dims)
        cut = cut_at(m, k, settings.multiples)
        split(x, j, part, cut, values, spare)
        stack_set[top, 0], stack_set[top, 1] = lo + cut, hi
        stack_node[top] = here * np.uint64(2) + np.uint64(1)
        stack_set[top + 1, 0], stack_set[top + 1, 1] = lo, lo + cut
        stack_node[top + 1] = here * np.uint64(2)
        top += 2
    return True
