"""Compiled kernels of the cells grouper: k-means divides a set into cells, a cell is grouped on its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.compiling import SUMS, kernel
from .mdav_kernels import mdav, swap
from .mondrian_kernels import mix

BRANCHES = 256  # cells a set is divided into at once
SAMPLE = 16  # records a cell's centre is learned from
ROUNDS = 3  # of Lloyd's algorithm
TILE = 64  # records that meet the centres together

_entry, _entry_sum, _inner = kernel(), kernel(reorder=SUMS), kernel(cached=False)


class Settings(NamedTuple):
    """Least number of records in a group, records a cell aims at, and how the exchanges look for partners."""

    k: int
    limit: int
    sweeps: int
    width: int


def branches(m: int, limit: int) -> int:
    """Cells that a set of ``m`` records is divided into at once."""
    return min(BRANCHES, max(2, (m + limit // 2) // limit))


_branches = _inner(branches)


@_entry_sum
def nearest_centre(head, rows, centres, norms, out):
    """The centre nearest to each of ``head[rows]``: |h − c|² / 2 is |c|² / 2 − h · c, but for what all share."""
    b, q = centres.shape  # q is a multiple of four
    tile = np.zeros((q, TILE), head.dtype)
    score, best = np.empty(TILE, head.dtype), np.empty(TILE, head.dtype)
    which = np.empty(TILE, np.int64)
    for begin in range(0, rows.shape[0], TILE):
        m = min(TILE, rows.shape[0] - begin)
        for i in range(m):
            for j in range(q):
                tile[j, i] = head[rows[begin + i], j]
        for i in range(TILE):
            best[i] = np.inf
        for c in range(b):
            for i in range(TILE):
                score[i] = norms[c]
            for j in range(0, q, 4):
                c0, c1, c2, c3 = centres[c, j], centres[c, j + 1], centres[c, j + 2], centres[c, j + 3]
                for i in range(TILE):
                    score[i] -= (tile[j, i] * c0 + tile[j + 1, i] * c1) + (tile[j + 2, i] * c2 + tile[j + 3, i] * c3)
            for i in range(TILE):
                less = score[i] < best[i]
                best[i] = score[i] if less else best[i]
                which[i] = c if less else which[i]
        for i in range(m):
            out[begin + i] = which[i]


@_inner
def _norms(centres, norms):
    for c in range(centres.shape[0]):
        norms[c] = 0
        for j in range(centres.shape[1]):
            norms[c] += centres[c, j] * centres[c, j] * centres.dtype.type(0.5)


@_entry
def learn_centres(head, rows, seed, node, centres, norms):
    """Centres for dividing ``head[rows]``: a few rounds of Lloyd on a sample that the node fixes."""
    m, (b, q) = rows.shape[0], centres.shape
    s = min(m, b * SAMPLE)
    state = mix(np.uint64(seed) ^ mix(np.uint64(node)))
    sample = np.empty(s, rows.dtype)
    for i in range(s):  # one from each of s equal stretches
        state = mix(state)
        begin, end = i * m // s, (i + 1) * m // s
        sample[i] = rows[begin + np.int64(state % np.uint64(end - begin))]
    for c in range(b):
        state = mix(state)
        pick = c + np.int64(state % np.uint64(s - c))
        sample[c], sample[pick] = sample[pick], sample[c]
        for j in range(q):
            centres[c, j] = head[sample[c], j]
    which, count = np.empty(s, np.int64), np.empty(b, np.int64)
    for _ in range(ROUNDS):
        _norms(centres, norms)
        nearest_centre(head, sample, centres, norms, which)
        for c in range(b):
            count[c] = 0
        for i in range(s):
            count[which[i]] += 1
        for c in range(b):
            if count[c] > 0:
                for j in range(q):
                    centres[c, j] = 0
        for i in range(s):
            c = which[i]
            for j in range(q):
                centres[c, j] += head[sample[i], j] / head.dtype.type(count[c])
    _norms(centres, norms)


@_inner
def settle(head, rows, centres, norms, k, which):
    """Give up centres with fewer than k records, the smallest first, until every cell holds none or at least k."""
    b = norms.shape[0]
    count = np.zeros(b, np.int64)
    for i in range(rows.shape[0]):
        count[which[i]] += 1
    one = np.empty(1, np.int64)
    while True:
        least = -1
        for c in range(b):
            if 0 < count[c] < k and (least < 0 or count[c] < count[least]):
                least = c
        if least < 0:
            return count
        norms[least] = np.inf
        for i in range(rows.shape[0]):
            if which[i] == least:
                nearest_centre(head, rows[i : i + 1], centres, norms, one)
                which[i] = one[0]
                count[one[0]] += 1
        count[least] = 0


@_inner
def arrange(rows, which, count, spare, edges):
    """Sort ``rows`` by cell, keeping their order within; ``edges`` gets where cells begin. The number of cells."""
    place = np.empty(count.shape[0], np.int64)
    at, cells = 0, 0
    for c in range(count.shape[0]):
        place[c] = at
        if count[c] > 0:
            edges[cells] = at
            cells += 1
        at += count[c]
    edges[cells] = at
    for i in range(rows.shape[0]):
        spare[place[which[i]]] = rows[i]
        place[which[i]] += 1
    for i in range(rows.shape[0]):
        rows[i] = spare[i]
    return cells


@_entry
def finish(head, rows, centres, norms, k, limit, which, spare, edges):
    """From nearest centres to cells, in place; equal stretches where k-means cannot tell the records apart."""
    m = rows.shape[0]
    count = settle(head, rows, centres, norms, k, which)
    cells = arrange(rows, which, count, spare, edges)
    if cells == 1:
        cells = _branches(m, limit)
        for c in range(cells + 1):
            edges[c] = c * m // cells
    return cells


@_entry
def group_cells(x, head, rows, node, settings, seed, label):
    """Divide ``rows`` into cells and group each; the number of groups.

    ``rows`` is put in the cells' order, and ``label``, by row number, counts from 0.
    """
    m, d, limit = rows.shape[0], x.shape[1], settings.limit
    spare, which = np.empty(m, rows.dtype), np.empty(m, np.int64)
    edges = np.empty(BRANCHES + 1, np.int64)
    begins, ends = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)  # more cells than rows there cannot be
    nodes = np.empty(m + 1, np.uint64)
    begins[0], ends[0], nodes[0] = 0, m, np.uint64(node)
    top, groups = np.int64(1), np.int64(0)
    while top > 0:
        top -= 1
        lo, hi, here = begins[top], ends[top], nodes[top]
        size = hi - lo
        if size <= limit + limit // 2:
            a = np.empty((size, d), x.dtype)
            for i in range(size):
                for j in range(d):
                    a[i, j] = x[rows[lo + i], j]
            local = np.empty(size, np.int64)
            found = _group_cell(a, settings, local)
            for i in range(size):
                label[rows[lo + i]] = groups + local[i]
            groups += found
            continue
        b = _branches(size, limit)
        centres, norms = np.empty((b, head.shape[1]), head.dtype), np.empty(b, head.dtype)
        part = rows[lo:hi]
        learn_centres(head, part, seed, here, centres, norms)
        nearest_centre(head, part, centres, norms, which[:size])
        cells = finish(head, part, centres, norms, settings.k, limit, which[:size], spare, edges)
        for c in range(cells):
            begins[top], ends[top] = lo + edges[c], lo + edges[c + 1]
            nodes[top] = mix(here) + np.uint64(c)
            top += 1
    return groups


@_inner
def _group_cell(a, settings, label):
    """MDAV over the records of one cell, then swaps."""
    groups = mdav(a, np.arange(a.shape[0]), None, settings.k, label)
    if settings.sweeps > 0 and groups > 1:
        swap(a, label, groups, settings.k, settings.sweeps, settings.width)
    return groups
