"""Mondrian as in Algorithm 1 of MIKU (Nakamura & Nishi 2019; Nakamura, Sakuma & Nishi 2020).

Decided where the papers are silent: of an odd number of rows the first half takes one more (so that the papers' own
example comes out), equal values are cut by row number, and of equal ranges the lowest dimension wins. A set whose rows
are all alike is divided as any other.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from ...base.matrix import Labels, Matrix, as_matrix, refuse_not_finite, require_finite
from ...base.seeds import seed_from
from ...base.threads import Pool, pieces
from ...errors import InputError
from . import mondrian_kernels as kernel


class Mondrian(ClusterMixin, BaseEstimator):
    """Groups of at least k rows by halving the set at the dimension that is spread the most.

    Parameters
    ----------
    k : int
        Least number of rows in a group.
    search_dims : int or None
        How many dimensions, drawn at random for every set, are compared (N_s in the paper); None, and more than there
        are, compare all.
    spread : {"range", "variance"}
        What "spread the most" means. The paper's is the range; variance gives a lower loss.
    standardize : bool
        Compare spreads in units of each column's standard deviation.
    cut : {"half", "multiple"}
        Where a set is cut: in the middle as in the paper, or at the multiple of k nearest to the middle, which leaves
        groups closer to k (halving 500 rows for k = 32 ends in groups of 62).
    random_state : int or None
        Fixes the random dimensions. The labels do not depend on the number of threads.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> import numpy as np
    >>> Mondrian(k=2).fit_predict(np.array([[22.0], [24.0], [26.0], [31.0], [39.0]]))
    array([0, 0, 0, 1, 1])
    """

    axis_parallel = True  # a category is best given to it as one ordered column, not as many of 0 and 1

    def __init__(
        self,
        k: int,
        search_dims: int | None = None,
        *,
        spread: Literal["range", "variance"] = "range",
        standardize: bool = False,
        cut: Literal["half", "multiple"] = "half",
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.search_dims = search_dims
        self.spread = spread
        self.standardize = standardize
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Mondrian:
        """Group the rows of ``X``; the groups are in ``labels_``."""
        x = as_matrix(X, self.k)
        search = x.shape[1] if self.search_dims is None else min(self.search_dims, x.shape[1])
        if search < 1:
            raise InputError(f"search_dims must be at least 1, but it is {search}")
        for name, value, known in (
            ("spread", self.spread, ("range", "variance")),
            ("cut", self.cut, ("half", "multiple")),
        ):
            if value not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, but it is {value!r}")
        with Pool(self.n_jobs) as pool:
            self.labels_ = self._grow(x, search, pool)
        self.n_groups_ = int(self.labels_.max()) + 1
        return self

    def _grow(self, x: Matrix, search: int, pool: Pool) -> Labels:
        """Large sets are divided with all threads on one set, the others with one thread on each."""
        n = len(x)
        if search == x.shape[1]:
            require_finite(x, pool)
        weight = _inverse_deviation(x, pool) if self.standardize else np.ones(x.shape[1])
        rows = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
        starts = np.zeros(n, dtype=np.bool_)
        seed = np.uint64(seed_from(self.random_state))
        variance, multiples = self.spread == "variance", self.cut == "multiple"
        by_column = not x.flags.c_contiguous
        large, small = [(0, n, 1)], []
        while large:
            lo, hi, node = large.pop()
            m = hi - lo
            if m < 2 * self.k or len(pieces(m, search)) == 1:
                small.append((lo, hi, node))
                continue
            part = rows[lo:hi]
            dims = _dims(seed, node, x.shape[1], search)
            spread = _spread(x, part, dims, search, variance, by_column, pool)
            j = kernel.widest(spread, weight, 2 if variance else 1, dims, search < x.shape[1])
            cut = kernel.cut_at(m, self.k, multiples)
            kernel.split(x, j, part, cut, np.empty(m, x.dtype), np.empty(m, rows.dtype))
            large += [(lo, lo + cut, 2 * node), (lo + cut, hi, 2 * node + 1)]

        def grow(task: tuple[int, int, int]) -> bool:
            lo, hi, node = task
            return bool(
                kernel.grow(
                    x, by_column, rows[lo:hi], lo, np.uint64(node), self.k, search, seed, variance, multiples,
                    weight, starts,
                )
            )  # fmt: skip

        if not all(pool.map(grow, small)):
            refuse_not_finite(x)
        labels = np.empty(n, dtype=np.int64)
        labels[rows] = np.cumsum(starts) - 1
        return labels


def _dims(seed: np.uint64, node: int, d: int, search: int) -> NDArray[np.int64]:
    dims = np.empty(search if search < d else 0, dtype=np.int64)
    if search < d:
        kernel.draw_dims(seed, np.uint64(node), d, dims)
    return dims


def _spread(
    x: Matrix,
    rows: NDArray[Any],
    dims: NDArray[np.int64],
    search: int,
    variance: bool,
    by_column: bool,
    pool: Pool,
) -> NDArray[np.float64]:
    """Spread of the searched columns over a large set, piece by piece."""
    parts = pieces(len(rows), search)
    sampled = search < x.shape[1]
    kind = np.float64 if variance else x.dtype
    low, high = np.empty((len(parts), search), kind), np.empty((len(parts), search), kind)
    shift = x[rows[0]].copy()

    def measure(p: int) -> bool:
        part = rows[parts[p][0] : parts[p][1]]
        if sampled and variance:
            return bool(kernel.sampled_sums(x, part, dims, shift, low[p], high[p]))
        if sampled:
            return bool(kernel.sampled_bounds(x, part, dims, low[p], high[p]))
        if variance:
            kernel.column_sums(x, by_column, part, shift, low[p], high[p])
        else:
            kernel.column_bounds(x, by_column, part, low[p], high[p])
        return True

    if not all(pool.map(measure, range(len(parts)))):
        refuse_not_finite(x)
    spread = np.empty(search, dtype=np.float64)
    if variance:
        kernel.variance_spread(low.sum(axis=0), high.sum(axis=0), len(rows), spread)
    else:
        kernel.range_spread(low.min(axis=0), high.max(axis=0), spread)
    return spread


def _inverse_deviation(x: Matrix, pool: Pool) -> NDArray[np.float64]:
    """1 / standard deviation of every column; 0 where a column is constant."""
    rows = np.arange(len(x), dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    deviation = np.sqrt(_spread(x, rows, none, x.shape[1], True, not x.flags.c_contiguous, pool) / len(x))
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
