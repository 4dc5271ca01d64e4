"""Compiled kernels of microaggregation: MDAV, and swaps that lower its loss.

MDAV asks again and again for the records nearest to, and farthest from, a point. Most records are ruled out by a bound:
with the data turned so that ``q`` coordinates (the *head*) hold most of the variance, and the length of what is left
(the *rest*), |x − p|² lies between head² + (rest_x − rest_p)² and head² + (rest_x + rest_p)². Only records that the
bound lets through are measured in full, in double precision, so the groups are exactly those of the plain algorithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.compiling import SUMS, kernel

CHUNK = 256  # records bounded at once
SLACK = 1e-5  # of a squared length: more than single precision can lose in a bound

_entry, _inner, _inner_sum = kernel(), kernel(cached=False), kernel(cached=False, reorder=SUMS)


class Bound(NamedTuple):
    """What bounds a distance. The first three are by position and used up; None in place of all of it bounds nothing."""

    head: NDArray[np.float32]  # (q, n)
    rest: NDArray[np.float32]  # (n,)
    slack: NDArray[np.float32]  # (n,) how far rounding may carry the bound
    axes: NDArray[np.float64]  # (q, d)
    origin: NDArray[np.float64]  # (d,)


class Left(NamedTuple):
    """Records that are in no group yet; all of it is written. ``rows`` is their row in x, ``ids`` their position as given."""

    rows: NDArray[np.int64]
    ids: NDArray[np.int64]
    total: NDArray[np.float64]  # (d,) their sum


class Groups(NamedTuple):
    """Groups while records are exchanged; all of it is written. ``member[g, :count[g]]`` are the records of group g."""

    label: NDArray[np.int64]  # (m,)
    count: NDArray[np.int64]  # (G,)
    member: NDArray[np.int64]  # (G, 2k)
    mean: NDArray[np.floating]  # (G, d)
    own: NDArray[np.floating]  # (m,) squared distance from the own group's mean


@_inner_sum
def squared_distance(x, row, point):
    """|x[row] − point|² in double precision."""
    total = 0.0
    for j in range(point.shape[0]):
        t = x[row, j] - point[j]
        total += t * t
    return total


@_inner_sum
def _limits(bound, begin, end, at, point_rest, point_slack, part):
    """Bound the squared distance of the records ``begin:end``: from above, or below if both point values are negative."""
    m = end - begin
    sign = part.dtype.type(1 if point_slack > 0 else -1)
    # views: indices from 0 are what lets the loops use vector registers
    r, e = bound.rest[begin:end], bound.slack[begin:end]
    for i in range(m):
        v = r[i] + point_rest
        part[i] = v * v + sign * e[i] + point_slack
    for t in range(at.shape[0]):
        c = at[t]
        h = bound.head[t, begin:end]
        for i in range(m):
            v = h[i] - c
            part[i] += v * v


@_inner
def _farthest(x, rows, n, point, bound, at, part):
    """Position of the record farthest from ``point``, the lowest row number among equals. Writes ``at`` and ``part``."""
    best, best_row, where = -1.0, rows[0], np.int64(0)
    limit = part.dtype.type(-1)
    for i in range(CHUNK):
        part[i] = np.inf  # where nothing is bounded, every record is measured
    if bound is not None:
        point_rest, point_slack = _aim(point, bound, at)
    for begin in range(0, n, CHUNK):
        end = min(begin + CHUNK, n)
        if bound is not None:
            _limits(bound, begin, end, at, point_rest, point_slack, part)
        for i in range(begin, end):
            if part[i - begin] < limit:
                continue
            d = squared_distance(x, rows[i], point)
            if d > best or (d == best and rows[i] < best_row):
                best, best_row, where = d, rows[i], i
                limit = part.dtype.type(best)
    return where


@_inner
def _sift(dist, place, rows, k):
    """Restore the max-heap on (distance, row number) after its top was replaced."""
    t = 0
    while True:
        c = 2 * t + 1
        if c >= k:
            return
        if c + 1 < k and (dist[c + 1] > dist[c] or (dist[c + 1] == dist[c] and rows[place[c + 1]] > rows[place[c]])):
            c += 1
        if dist[c] < dist[t] or (dist[c] == dist[t] and rows[place[c]] < rows[place[t]]):
            return
        dist[c], dist[t] = dist[t], dist[c]
        place[c], place[t] = place[t], place[c]
        t = c


@_inner
def _nearest(x, rows, n, point, bound, at, part, dist, place):
    """Positions of the k records nearest to ``point`` (by distance, then row number), into ``place``; ``dist`` is written too."""
    k = place.shape[0]
    for t in range(k):
        dist[t] = np.inf
        place[t] = 0  # the heap starts full of records at infinity
    limit = part.dtype.type(np.inf)
    for i in range(CHUNK):
        part[i] = 0
    if bound is not None:
        point_rest, point_slack = _aim(point, bound, at)
    for begin in range(0, n, CHUNK):
        end = min(begin + CHUNK, n)
        if bound is not None:
            _limits(bound, begin, end, at, -point_rest, -point_slack, part)
        for i in range(begin, end):
            if part[i - begin] > limit:
                continue
            d = squared_distance(x, rows[i], point)
            if d < dist[0] or (d == dist[0] and rows[i] < rows[place[0]]):
                dist[0] = d
                place[0] = i
                _sift(dist, place, rows, k)
                limit = part.dtype.type(dist[0])


@_inner
def _take(x, left, n, bound, place, label, group):
    """Give the records at ``place`` their group and close the gaps with the last records; the number left."""
    rows, ids, total = left
    for t in range(1, place.shape[0]):  # ascending, so that gaps are closed from the end
        p, u = place[t], t
        while u > 0 and place[u - 1] > p:
            place[u] = place[u - 1]
            u -= 1
        place[u] = p
    for t in range(place.shape[0] - 1, -1, -1):
        i = place[t]
        label[ids[i]] = group
        for j in range(total.shape[0]):
            total[j] -= x[rows[i], j]
        n -= 1
        rows[i], ids[i] = rows[n], ids[n]
        if bound is not None:
            for j in range(bound.head.shape[0]):
                bound.head[j, i] = bound.head[j, n]
            bound.rest[i], bound.slack[i] = bound.rest[n], bound.slack[n]
    return n


@_inner
def _aim(point, bound, at):
    """The head of ``point`` into ``at``; the length of its rest, and how far rounding may carry the bound."""
    axes, origin = bound.axes, bound.origin
    whole = 0.0
    for j in range(point.shape[0]):
        t = point[j] - origin[j]
        whole += t * t
    inside = 0.0
    for t in range(axes.shape[0]):
        s = 0.0
        for j in range(point.shape[0]):
            s += (point[j] - origin[j]) * axes[t, j]
        at[t] = s
        inside += s * s
    # 1e-30 keeps the sign that tells a bound from above and one from below
    return at.dtype.type(np.sqrt(max(whole - inside, 0.0))), at.dtype.type(SLACK * whole + 1e-30)


@_entry
def mdav(x, rows, bound, k, label):
    """MDAV over ``x[rows]``: ``label`` (by position in ``rows`` as given) becomes 0, 1, …; returns the count.

    ``rows`` and what ``bound`` holds by position are used up.
    """
    n, d = rows.shape[0], x.shape[1]
    left = Left(rows, np.arange(n), np.zeros(d))
    for i in range(n):
        for j in range(d):
            left.total[j] += x[rows[i], j]
    q = 0
    if bound is not None:
        q = bound.head.shape[0]
    point, at, part = np.empty(d), np.empty(q, np.float32), np.empty(CHUNK, np.float32)
    dist, place = np.empty(k), np.empty(k, np.int64)
    group = np.int64(0)
    while n >= 2 * k:
        for j in range(d):
            point[j] = left.total[j] / n
        r = rows[_farthest(x, rows, n, point, bound, at, part)]
        opposite = np.int64(-1)
        for side in range(2):
            if side == 1:
                if opposite < 0:
                    break
                r = opposite
            for j in range(d):
                point[j] = x[r, j]
            _nearest(x, rows, n, point, bound, at, part, dist, place)
            if side == 0 and n >= 3 * k:
                opposite = rows[_farthest(x, rows, n, point, bound, at, part)]
            n = _take(x, left, n, bound, place, label, group)
            group += 1
    for i in range(n):
        label[left.ids[i]] = group
    return group + 1


@_inner_sum
def _distance(a, i, b, k):
    """|a[i] − b[k]|² in the data's own precision."""
    total = a.dtype.type(0)
    for j in range(a.shape[1]):
        t = a[i, j] - b[k, j]
        total += t * t
    return total


@_inner
def _refresh(a, groups, g):
    """Mean of a group and its members' distances from it, summed anew so that no error grows."""
    count, member, mean, own = groups.count, groups.member, groups.mean, groups.own
    for j in range(a.shape[1]):
        mean[g, j] = 0
    for t in range(count[g]):
        for j in range(a.shape[1]):
            mean[g, j] += a[member[g, t], j]
    for j in range(a.shape[1]):
        mean[g, j] /= a.dtype.type(count[g])
    for t in range(count[g]):
        own[member[g, t]] = _distance(a, member[g, t], mean, g)


@_inner
def swap(a, label, count, k, sweeps, width):
    """Lower the loss of ``count`` groups of ``a``: move records out of groups above k, exchange pairs between groups.

    Every step is taken only if it lowers the sum of squared distances to the group means, so the loss never rises;
    sizes stay between k and 2k − 1. For each record the two nearest other groups are looked at, and in each about
    ``width`` members, those that lie farthest from their mean. ``label`` is written.
    """
    m, d = a.shape
    member, mean = np.empty((count, 2 * k), np.int64), np.empty((count, d), a.dtype)
    groups = Groups(label, np.zeros(count, np.int64), member, mean, np.empty(m, a.dtype))
    for i in range(m):
        member[label[i], groups.count[label[i]]] = i
        groups.count[label[i]] += 1
    for g in range(count):
        _refresh(a, groups, g)
    for _ in range(sweeps):
        changed = 0
        for x in range(m):
            changed += _improve(a, groups, k, width, x)
        if changed == 0:
            break


@_inner
def _improve(a, groups, k, width, x):
    """Take the best step that moves record ``x``; whether there was one."""
    own, member, mean = groups.own, groups.member, groups.mean
    g = groups.label[x]
    nothing = np.int64(-1)  # typed: a literal −1 would have what it is given to compiled twice
    first, second, d1, d2 = nothing, nothing, np.inf, np.inf
    for h in range(groups.count.shape[0]):
        if h != g:
            dist = np.float64(_distance(a, x, mean, h))
            if dist < d1:
                second, d2 = first, d1
                first, d1 = h, dist
            elif dist < d2:
                second, d2 = h, dist
    best = 1e-6 * own[x]
    target, partner = nothing, nothing
    n = groups.count[g]
    for which in range(2):
        h = first if which == 0 else second
        dist = d1 if which == 0 else d2
        if h < 0:
            continue
        c = groups.count[h]
        if n > k and c < 2 * k - 1:
            gain = own[x] * n / (n - 1) - dist * c / (c + 1)
            if gain > best:
                best, target, partner = gain, h, nothing
        floor = _far_limit(own, member[h, :c], width)
        for t in range(c):
            y = member[h, t]
            if own[y] >= floor:
                near = own[x] - dist + own[y] - _distance(a, y, mean, g)
                gain = near + _distance(a, y, a, x) * (1.0 / n + 1.0 / c)
                if gain > best:
                    best, target, partner = gain, h, y
    if target < 0:
        return 0
    _apply(groups, x, g, target, partner)
    _refresh(a, groups, g)
    _refresh(a, groups, target)
    return 1


@_inner
def _far_limit(own, members, width):
    """An own distance that about ``width`` of the members reach, by halving; 0 where there are no more than that."""
    if members.shape[0] <= width:
        return 0.0
    low, high = 0.0, 0.0
    for y in members:
        high = max(high, np.float64(own[y]))
    for _ in range(6):
        middle = (low + high) / 2
        reach = 0
        for y in members:
            reach += own[y] >= middle
        if reach >= width:
            low = middle
        else:
            high = middle
    return low


@_inner
def _replace(groups, g, old, new):
    for t in range(groups.count[g]):
        if groups.member[g, t] == old:
            groups.member[g, t] = new
            return


@_inner
def _apply(groups, x, g, h, y):
    """Move ``x`` from group g to h, and ``y``, if there is one, back; means and distances are left to the caller."""
    count, member = groups.count, groups.member
    if y >= 0:
        _replace(groups, g, x, y)
        _replace(groups, h, y, x)
        groups.label[y] = g
    else:
        _replace(groups, g, x, member[g, count[g] - 1])
        count[g] -= 1
        member[h, count[h]] = x
        count[h] += 1
    groups.label[x] = h
