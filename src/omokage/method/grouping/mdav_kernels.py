"""Compiled kernels of microaggregation: MDAV, and swaps that lower its loss.

MDAV asks again and again for the records nearest to, and farthest from, a point. Most records are ruled out by a bound:
with the data turned so that ``q`` coordinates (the *head*) hold most of the variance, and the length of what is left
(the *rest*), |x − p|² lies between head² + (rest_x − rest_p)² and head² + (rest_x + rest_p)². Only records that the
bound lets through are measured in full, in double precision, so the groups are exactly those of the plain algorithm.
"""

from __future__ import annotations

import numba as nb
import numpy as np

CHUNK = 256  # records bounded at once
SLACK = 1e-5  # of a squared length: more than single precision can lose in a bound

_jit = nb.njit(nogil=True, cache=True)
_sum = nb.njit(nogil=True, cache=True, fastmath={"nsz", "contract", "reassoc"})


@_sum
def squared_distance(x, row, point):
    """|x[row] − point|² in double precision."""
    total = 0.0
    for j in range(point.shape[0]):
        t = x[row, j] - point[j]
        total += t * t
    return total


@_sum
def _bound(head, rest, slack, begin, end, at, point_rest, point_slack, part):
    """Bound the squared distance of the records ``begin:end``: from above, or below if both point values are negative."""
    m = end - begin
    sign = part.dtype.type(1 if point_slack > 0 else -1)
    r, e = rest[begin:end], slack[begin:end]  # views: indices from 0 are what lets the loops use vector registers
    for i in range(m):
        v = r[i] + point_rest
        part[i] = v * v + sign * e[i] + point_slack
    for t in range(at.shape[0]):
        c = at[t]
        h = head[t, begin:end]
        for i in range(m):
            v = h[i] - c
            part[i] += v * v


@_jit
def _farthest(x, rows, point, head, rest, slack, at, point_rest, point_slack, part, n):
    """Position of the record farthest from ``point``, the lowest row number among equals."""
    best, best_row, where = -1.0, rows[0], 0
    limit = part.dtype.type(-1)
    for i in range(CHUNK):
        part[i] = np.inf  # where nothing is bounded, every record is measured
    for begin in range(0, n, CHUNK):
        end = min(begin + CHUNK, n)
        if at.shape[0] > 0:
            _bound(head, rest, slack, begin, end, at, point_rest, point_slack, part)
        for i in range(begin, end):
            if part[i - begin] < limit:
                continue
            d = squared_distance(x, rows[i], point)
            if d > best or (d == best and rows[i] < best_row):
                best, best_row, where = d, rows[i], i
                limit = part.dtype.type(best)
    return where


@_jit
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


@_jit
def _nearest(x, rows, point, head, rest, slack, at, point_rest, point_slack, part, n, dist, place):
    """Positions of the k records nearest to ``point`` (by distance, then row number), into ``place``."""
    k = place.shape[0]
    for t in range(k):
        dist[t] = np.inf
        place[t] = 0  # the heap starts full of records at infinity
    limit = part.dtype.type(np.inf)
    for i in range(CHUNK):
        part[i] = 0
    for begin in range(0, n, CHUNK):
        end = min(begin + CHUNK, n)
        if at.shape[0] > 0:
            _bound(head, rest, slack, begin, end, at, -point_rest, -point_slack, part)
        for i in range(begin, end):
            if part[i - begin] > limit:
                continue
            d = squared_distance(x, rows[i], point)
            if d < dist[0] or (d == dist[0] and rows[i] < rows[place[0]]):
                dist[0] = d
                place[0] = i
                _sift(dist, place, rows, k)
                limit = part.dtype.type(dist[0])


@_jit
def _take(x, rows, ids, head, rest, slack, place, n, total, label, group):
    """Give the records at ``place`` their group and close the gaps with the last records; the number left."""
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
        if head.shape[0] > 0:
            for j in range(head.shape[0]):
                head[j, i] = head[j, n]
            rest[i], slack[i] = rest[n], slack[n]
    return n


@_jit
def _turn(point, origin, axes, at):
    """The head of ``point`` into ``at``; the length of its rest, and how far rounding may carry the bound."""
    q = axes.shape[0]
    whole = 0.0
    for j in range(point.shape[0]):
        t = point[j] - origin[j]
        whole += t * t
    inside = 0.0
    for t in range(q):
        s = 0.0
        for j in range(point.shape[0]):
            s += (point[j] - origin[j]) * axes[t, j]
        at[t] = s
        inside += s * s
    # 1e-30 keeps the sign that tells a bound from above and one from below
    return at.dtype.type(np.sqrt(max(whole - inside, 0.0))), at.dtype.type(SLACK * whole + 1e-30)


@_jit
def mdav(x, rows, head, rest, slack, axes, origin, k, label):
    """MDAV over ``x[rows]``: ``label`` (by position in ``rows`` as given) becomes 0, 1, …; returns the count.

    ``rows``, ``head``, ``rest`` and ``slack`` are used up. An empty ``head`` means that nothing is bounded.
    """
    n, d, q = rows.shape[0], x.shape[1], head.shape[0]
    ids = np.arange(n)
    total = np.zeros(d)
    for i in range(n):
        for j in range(d):
            total[j] += x[rows[i], j]
    point, at = np.empty(d), np.empty(q, rest.dtype)
    part = np.empty(CHUNK, rest.dtype)
    dist, place = np.empty(k), np.empty(k, np.int64)
    group = 0
    while n >= 2 * k:
        for j in range(d):
            point[j] = total[j] / n
        pr, ps = _turn(point, origin, axes, at)
        r = _farthest(x, rows, point, head, rest, slack, at, pr, ps, part, n)
        for j in range(d):
            point[j] = x[rows[r], j]
        pr, ps = _turn(point, origin, axes, at)
        _nearest(x, rows, point, head, rest, slack, at, pr, ps, part, n, dist, place)
        opposite = np.int64(-1)
        if n >= 3 * k:
            opposite = rows[_farthest(x, rows, point, head, rest, slack, at, pr, ps, part, n)]
        n = _take(x, rows, ids, head, rest, slack, place, n, total, label, group)
        group += 1
        if opposite >= 0:
            for j in range(d):
                point[j] = x[opposite, j]
            pr, ps = _turn(point, origin, axes, at)
            _nearest(x, rows, point, head, rest, slack, at, pr, ps, part, n, dist, place)
            n = _take(x, rows, ids, head, rest, slack, place, n, total, label, group)
            group += 1
    for i in range(n):
        label[ids[i]] = group
    return group + 1


@_sum
def _distance(a, i, b, k):
    """|a[i] − b[k]|² in the data's own precision."""
    total = a.dtype.type(0)
    for j in range(a.shape[1]):
        t = a[i, j] - b[k, j]
        total += t * t
    return total


@_jit
def _refresh(a, count, member, mean, own, g):
    """Mean of a group and its members' distances from it, summed anew so that no error grows."""
    for j in range(a.shape[1]):
        mean[g, j] = 0
    for t in range(count[g]):
        for j in range(a.shape[1]):
            mean[g, j] += a[member[g, t], j]
    for j in range(a.shape[1]):
        mean[g, j] /= a.dtype.type(count[g])
    for t in range(count[g]):
        own[member[g, t]] = _distance(a, member[g, t], mean, g)


@_jit
def swap(a, label, groups, k, sweeps, width):
    """Lower the loss of the groups of ``a``: move records out of groups above k, exchange pairs between groups.

    Every step is taken only if it lowers the sum of squared distances to the group means, so the loss never rises;
    sizes stay between k and 2k − 1. For each record the two nearest other groups are looked at, and in each about
    ``width`` members, those that lie farthest from their mean.
    """
    m, d = a.shape
    count = np.zeros(groups, np.int64)
    member = np.empty((groups, 2 * k), np.int64)
    mean = np.empty((groups, d), a.dtype)
    own = np.empty(m, a.dtype)
    for i in range(m):
        member[label[i], count[label[i]]] = i
        count[label[i]] += 1
    for g in range(groups):
        _refresh(a, count, member, mean, own, g)
    for _ in range(sweeps):
        changed = 0
        for x in range(m):
            changed += _improve(a, label, k, count, member, mean, own, width, x)
        if changed == 0:
            break


@_jit
def _improve(a, label, k, count, member, mean, own, width, x):
    """Take the best step that moves record ``x``; whether there was one."""
    g = label[x]
    first, second, d1, d2 = -1, -1, np.inf, np.inf
    for h in range(count.shape[0]):
        if h != g:
            dist = np.float64(_distance(a, x, mean, h))
            if dist < d1:
                second, d2 = first, d1
                first, d1 = h, dist
            elif dist < d2:
                second, d2 = h, dist
    best = 1e-6 * own[x]
    target, partner = -1, -1
    n = count[g]
    for which in range(2):
        h = first if which == 0 else second
        dist = d1 if which == 0 else d2
        if h < 0:
            continue
        c = count[h]
        if n > k and c < 2 * k - 1:
            gain = own[x] * n / (n - 1) - dist * c / (c + 1)
            if gain > best:
                best, target, partner = gain, h, -1
        floor = _far_limit(own, member, h, c, width)
        for t in range(c):
            y = member[h, t]
            if own[y] >= floor:
                near = own[x] - dist + own[y] - _distance(a, y, mean, g)
                gain = near + _distance(a, y, a, x) * (1.0 / n + 1.0 / c)
                if gain > best:
                    best, target, partner = gain, h, y
    if target < 0:
        return 0
    _apply(a, label, count, member, mean, own, x, g, target, partner)
    return 1


@_jit
def _far_limit(own, member, h, c, width):
    """An own distance that about ``width`` of the members reach, by halving; 0 where there are no more than that."""
    if c <= width:
        return 0.0
    low, high = 0.0, 0.0
    for t in range(c):
        high = max(high, np.float64(own[member[h, t]]))
    for _ in range(6):
        middle = (low + high) / 2
        reach = 0
        for t in range(c):
            reach += own[member[h, t]] >= middle
        if reach >= width:
            low = middle
        else:
            high = middle
    return low


@_jit
def _replace(member, count, g, old, new):
    for t in range(count[g]):
        if member[g, t] == old:
            member[g, t] = new
            return


@_jit
def _apply(a, label, count, member, mean, own, x, g, h, y):
    """Move ``x`` from group g to h, and ``y``, if there is one, back."""
    if y >= 0:
        _replace(member, count, g, x, y)
        _replace(member, count, h, y, x)
        label[y] = g
    else:
        _replace(member, count, g, x, member[g, count[g] - 1])
        count[g] -= 1
        member[h, count[h]] = x
        count[h] += 1
    label[x] = h
    _refresh(a, count, member, mean, own, g)
    _refresh(a, count, member, mean, own, h)
