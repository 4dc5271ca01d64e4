"""Candidate lists with dual prices: a transport problem held in n × width numbers, never in n × columns.

A row's list holds its best columns at the prices of the moment, their float64 costs, and a threshold: no column left out is
worth less. Prices only rise, so the threshold stays a lower bound for good, and a list stays exact until its best value
passes the threshold; only then the row is compared with all columns again.

The comparison is a float32 matrix product, block by block. Float32 decides which columns are listed, never what they cost;
what it may have missed is found by the float64 certificate (:mod:`.duality`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS, COLUMNS = 256, 4096  # a block of values: 4 MiB of float32, which stays in the last-level cache
BYTES_PER_CANDIDATE = 20  # column, cost, stale value


class Lists(NamedTuple):
    """The candidates of every row, sorted by ``stale``. Kernels read them; only a refresh writes them."""

    column: NDArray[np.int32]  # (n, width)
    cost: Floats  # (n, width), in float64
    stale: Floats  # (n, width): cost plus price when the list was made, a lower bound since then
    threshold: Floats  # (n,): no column left out is worth less


class Candidates:
    """Lists of the best columns of every row, for centred rows ``x`` and columns ``y`` at cost −2 x·y.

    Squared distances differ from −2 x·y by terms of the row alone and of the column alone, which move into the prices.
    """

    def __init__(self, x: Floats, y: Floats, capacity: Ints, width: int, threads: int) -> None:
        self.x, self.y, self.capacity = x, y, capacity
        self.n, self.columns = len(x), len(y)
        self.threads = threads
        self.price = np.zeros(self.columns)
        self.caution = 1.0
        basis = _row_space(y)  # (d, r): coordinates in which all columns lie; fewer when a linear map was inverted
        rank = basis.shape[1]
        self._x32 = np.ones((self.n, rank + 1), np.float32)
        self._x32[:, :rank] = -2 * (x @ basis)
        self._y32 = np.zeros((self.columns, rank + 1), np.float32)  # the last coordinate carries the price
        self._y32[:, :rank] = y @ basis
        self._reach = 2 * np.sqrt((x * x).sum(1)) * np.sqrt((y * y).sum(1).max())  # (n,)
        self.lists = _empty_lists(self.n, min(width, self.columns))

    @property
    def width(self) -> int:
        """Columns per list."""
        return int(self.lists.column.shape[1])

    @property
    def reach(self) -> float:
        """Bound of all costs."""
        return float(self._reach.max())

    def refresh(self, rows: Ints | None = None) -> None:
        """Make the lists of ``rows`` (all by default) anew at the present prices."""
        rows = np.arange(self.n) if rows is None else rows
        self._y32[:, -1] = self.price
        slack = self.caution * 2.0**-22 * (self._reach + np.abs(self.price).max())
        # The blocks must not depend on the number of threads: the shape of a product may change its rounding.
        size = min(ROWS, max(16, -(-len(rows) // 2)))
        blocks = (rows[a : a + size] for a in range(0, len(rows), size))
        self._each(lambda block: self._refresh_block(block, slack), blocks)

    def refresh_outlived(self) -> None:
        """Make anew every list whose best value has passed its threshold."""
        from omokage.evaluate.assignment import transport_kernels

        need = np.empty(self.n, np.int64)
        while count := transport_kernels.outlived(self.lists, self.price, need):
            self.refresh(need[:count].copy())

    def exhausted(self, rows: Ints) -> bool:
        """Whether a fresh list in ``rows`` is all ties, so that only a longer one can help."""
        first = self.lists.stale[rows, 0]
        return bool((self.lists.threshold[rows] - first <= 1e-12 * (self._reach[rows] + np.abs(first))).any())

    def widen(self) -> None:
        """Double the lists."""
        self.lists = _empty_lists(self.n, min(2 * self.width, self.columns))
        self.refresh()

    def row_minima(self) -> NDArray[np.float32]:
        """Least value of every row over all columns at the present prices, in float32."""
        self._y32[:, -1] = self.price
        x = self._x32
        least = np.full(len(x), np.inf, np.float32)

        def one(a: int) -> None:
            for b in range(0, self.columns, COLUMNS):
                values = x[a : a + ROWS] @ self._y32[b : b + COLUMNS].T
                np.minimum(least[a : a + ROWS], values.min(axis=1), out=least[a : a + ROWS])

        self._each(one, range(0, len(x), ROWS))
        return least

    def lower_prices(self) -> None:
        """Lower every price until some row is indifferent: the best prices for the present row values (c-transform)."""
        from omokage.evaluate.assignment import candidate_kernels

        least = self.row_minima()
        self._y32[:, -1] = 0
        most = np.full(self.columns, -np.inf, np.float32)

        def one(b: int) -> None:
            for a in range(0, self.n, ROWS):
                values = self._x32[a : a + ROWS] @ self._y32[b : b + COLUMNS].T
                candidate_kernels.raise_to_columns(values, least[a : a + ROWS], most[b : b + COLUMNS])

        self._each(one, range(0, self.columns, COLUMNS // 4))
        self.price = most.astype(np.float64)

    def costs32(self) -> NDArray[np.float32]:
        """The whole cost matrix in float32, for those who have the memory."""
        costs = np.empty((self.n, self.columns), np.float32)
        self._y32[:, -1] = 0

        def one(a: int) -> None:
            np.matmul(self._x32[a : a + ROWS], self._y32.T, out=costs[a : a + ROWS])

        self._each(one, range(0, self.n, ROWS))
        return costs

    def _each(self, work: Callable[[Any], None], items: Iterable[Any]) -> None:
        todo = list(items)
        if len(todo) <= 1 or self.threads == 1:
            for item in todo:
                work(item)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in pool.map(work, todo):
                pass

    def _refresh_block(self, rows: Ints, slack: Floats) -> None:
        bound = np.full(len(rows), np.inf, np.float32)
        lists = self.lists
        if self.width < self.columns and np.isfinite(lists.threshold[rows]).all():
            # The old list already holds as many columns as are wanted: nothing above its worst can enter.
            bound[:] = (lists.cost[rows] + self.price[lists.column[rows]]).max(axis=1) + 2 * slack[rows]
        if not self._collect(rows, slack, bound):
            self._collect(rows, slack, np.full(len(rows), np.inf, np.float32))

    def _collect(self, rows: Ints, slack: Floats, bound: NDArray[np.float32]) -> bool:
        from omokage.evaluate.assignment import candidate_kernels

        count, keep = len(rows), self.width
        room = 2 * keep + candidate_kernels.CHUNK
        best = candidate_kernels.Best(
            np.empty((count, room), np.float32), np.empty((count, room), np.int32), np.zeros(count, np.int64), bound
        )
        part = self._x32[rows]
        for first in range(0, self.columns, COLUMNS):
            values = part @ self._y32[first : first + COLUMNS].T
            candidate_kernels.collect(values, first, keep, best)
        if (best.size < keep).any():
            return False
        threshold, cost = np.full(count, np.inf), np.empty((count, keep))
        if keep < self.columns:
            candidate_kernels.cut_back(best, keep)
            threshold = best.bound - slack[rows]
        column = best.column[:, :keep]
        candidate_kernels.exact_costs(rows, self.x, self.y, column, cost)
        self._write(rows, column, cost, threshold)
        return True

    def _write(self, rows: Ints, column: NDArray[np.int32], cost: Floats, threshold: Floats) -> None:
        """Make these the lists of ``rows``."""
        now = cost + self.price[column]
        order = np.argsort(now, axis=1)
        lists = self.lists
        for target, values in ((lists.column, column), (lists.cost, cost), (lists.stale, now)):
            target[rows] = np.take_along_axis(values, order, axis=1)
        # What was left out was left out by float32; the best of the list is taken to be the best of all, and the
        # float64 certificate has the last word.
        lists.threshold[rows] = np.maximum(threshold, lists.stale[rows, 0])


def _row_space(y: Floats) -> Floats:
    """Orthonormal coordinates of the span of ``y``, without directions that float32 could not see."""
    weight, direction = np.linalg.eigh(y.T @ y)
    return np.ascontiguousarray(direction[:, weight > 1e-13 * max(float(weight[-1]), 1e-300)])


def _empty_lists(n: int, width: int) -> Lists:
    return Lists(np.zeros((n, width), np.int32), np.zeros((n, width)), np.zeros((n, width)), np.full(n, -np.inf))
