"""Groups of small tables in plain NumPy: done before a compiled kernel could even be loaded.

These are the algorithms of the kernels, step by step, ties included. Mondrian's groups are the same in every bit. MDAV and the
exchanges add up distances, here and there in another order, so two distances that only rounding tells apart may be ranked
differently; on whole numbers, and on numbers without such near ties, the groups are the same. Whether a table is small depends on
its size alone, so the same table always has the same groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.matrix import Labels, Matrix

Floats = NDArray[np.float64]

ROWS = 2048  # of a small table
NUMBERS = 1 << 20


def is_small(x: Matrix) -> bool:
    """Whether a table is grouped sooner in NumPy than kernels can be loaded, by far sooner than they can be compiled."""
    return len(x) <= ROWS and x.size <= NUMBERS


def cut_at(m: Any, k: Any, multiples: Any) -> Any:
    """Where a set of ``m`` rows is cut: the middle (the first half takes the odd row), or the multiple of k nearest it."""
    if multiples:
        return k * ((m + k) // (2 * k))
    return (m + 1) // 2


def mondrian(x: Matrix, k: int, multiples: bool) -> Labels:
    """Halve every set at the column of widest range, until a set has fewer than 2 k rows."""
    labels = np.empty(len(x), np.int64)
    sets = [np.arange(len(x))]
    groups = 0
    while sets:
        rows = sets.pop()  # ascending, so that a stable sort settles equal values by row number
        if len(rows) < 2 * k:
            labels[rows] = groups
            groups += 1
            continue
        part = x[rows]
        with np.errstate(over="ignore"):
            spread = part.max(axis=0).astype(np.float64) - part.min(axis=0)
        order = np.argsort(part[:, spread.argmax()], kind="stable")
        cut = cut_at(len(rows), k, multiples)
        sets += [rows[np.sort(order[cut:])], rows[np.sort(order[:cut])]]
    return labels


def mdav(x: Matrix, k: int) -> tuple[Labels, int]:
    """MDAV-generic: labels, and the number of groups."""
    a = x.astype(np.float64)
    labels = np.empty(len(a), np.int64)
    left = np.arange(len(a))  # ascending, so that the first of equal distances has the lowest row number
    groups = 0

    def take(point: Floats) -> None:
        nonlocal left, groups
        order = np.argsort(_distances(a[left], point), kind="stable")
        labels[left[order[:k]]] = groups
        left = left[np.sort(order[k:])]
        groups += 1

    while len(left) >= 2 * k:
        here = a[left]
        first = here[_distances(here, here.sum(axis=0) / len(left)).argmax()]
        opposite = here[_distances(here, first).argmax()] if len(left) >= 3 * k else None
        take(first)
        if opposite is not None:
            take(opposite)
    labels[left] = groups
    return labels, groups + 1


def _distances(a: Floats, point: Floats) -> Floats:
    """Squared distances of rows from a point."""
    apart = a - point
    squared: Floats = np.einsum("ij,ij->i", apart, apart)
    return squared


@dataclass
class Exchanges:
    """Groups whose loss is lowered by moving rows out of groups above k and by exchanging pairs between groups.

    a : (m, d) rows. labels : (m,), changed in place. members : (G, 2k) rows of each group, the first ``count`` of them in use.
    means : (G, d). own : (m,) each row's squared distance from its group's mean.
    """

    a: Floats
    labels: Labels
    k: int
    width: int
    count: NDArray[np.int64]
    members: NDArray[np.int64]
    means: Floats
    own: Floats

    @classmethod
    def of(cls, x: Matrix, labels: Labels, groups: int, k: int, width: int) -> Exchanges:
        a = x.astype(np.float64)
        count = np.bincount(labels, minlength=groups)
        members = np.zeros((groups, 2 * k), np.int64)
        order = np.argsort(labels, kind="stable")
        for g, rows in enumerate(np.split(order, np.cumsum(count)[:-1])):
            members[g, : len(rows)] = rows
        made = cls(a, labels, k, width, count, members, np.zeros((groups, a.shape[1])), np.zeros(len(a)))
        for g in range(groups):
            made._measure(g)
        return made

    def sweep(self) -> bool:
        """Offer every row its best step once; whether any was taken."""
        steps = [self._improve(i) for i in range(len(self.a))]
        return any(steps)

    def _improve(self, i: int) -> bool:
        g = int(self.labels[i])
        far = _distances(self.means, self.a[i])
        far[g] = np.inf
        best, target, partner = 1e-6 * self.own[i], -1, -1
        n = self.count[g]
        for _ in range(min(2, len(far) - 1)):
            h = int(far.argmin())
            apart, far[h] = far[h], np.inf
            c = self.count[h]
            if n > self.k and c < 2 * self.k - 1:
                gain = self.own[i] * n / (n - 1) - apart * c / (c + 1)
                if gain > best:
                    best, target, partner = gain, h, -1
            others = self._farthest(h)
            near = self.own[i] - apart + self.own[others] - _distances(self.a[others], self.means[g])
            gains = near + _distances(self.a[others], self.a[i]) * (1.0 / n + 1.0 / c)
            if gains.max() > best:
                best, target, partner = gains.max(), h, int(others[gains.argmax()])
        if target < 0:
            return False
        self._apply(i, g, target, partner)
        return True

    def _farthest(self, g: int) -> NDArray[np.int64]:
        """About ``width`` members of a group, those farthest from its mean; the limit is found by halving."""
        rows = self.members[g, : self.count[g]]
        if len(rows) <= self.width:
            return rows
        own = self.own[rows]
        low, high = 0.0, float(own.max())
        for _ in range(6):
            middle = (low + high) / 2
            if int((own >= middle).sum()) >= self.width:
                low = middle
            else:
                high = middle
        return rows[own >= low]

    def _apply(self, i: int, g: int, h: int, other: int) -> None:
        """Move row ``i`` from group g to h, and the other row, if there is one, back."""
        if other >= 0:
            self._replace(h, other, i)
            self._replace(g, i, other)
            self.labels[other] = g
        else:
            self._replace(g, i, int(self.members[g, self.count[g] - 1]))
            self.count[g] -= 1
            self.members[h, self.count[h]] = i
            self.count[h] += 1
        self.labels[i] = h
        self._measure(g)
        self._measure(h)

    def _replace(self, g: int, old: int, new: int) -> None:
        rows = self.members[g, : self.count[g]]
        rows[np.flatnonzero(rows == old)[0]] = new

    def _measure(self, g: int) -> None:
        rows = self.members[g, : self.count[g]]
        self.means[g] = self.a[rows].sum(axis=0) / len(rows)
        self.own[rows] = _distances(self.a[rows], self.means[g])


def cell(x: Matrix, k: int, sweeps: int, width: int) -> Labels:
    """One cell: MDAV, then exchanges."""
    labels, groups = mdav(x, k)
    if sweeps > 0 and groups > 1:
        exchanges = Exchanges.of(x, labels, groups, k, width)
        for _ in range(sweeps):
            if not exchanges.sweep():
                break
    return labels
