"""Mondrian as in Algorithm 1 of MIKU (Nakamura & Nishi 2019; Nakamura, Sakuma & Nishi 2020).

Decided where the papers are silent: of an odd number of rows the first half takes one more (so that the papers' own
example comes out), equal values are cut by row number, and of equal ranges the lowest dimension wins. A set whose rows
are all alike is divided as any other.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from ...base.matrix import Labels, Matrix, refuse_not_finite, require_finite
from ...base.parameters import SEED, THREADS, K, Rules, choice, flag, optional, whole
from ...base.seeds import seed_from
from ...base.threads import Pool, pieces
from . import small
from .rows import Grouper


class Mondrian(Grouper, ClusterMixin, BaseEstimator):
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

    parameters: ClassVar[Rules] = {
        "k": K,
        "search_dims": optional(whole(1), "all"),
        "spread": choice("range", "variance"),
        "standardize": flag(),
        "cut": choice("half", "multiple"),
        "random_state": SEED,
        "n_jobs": THREADS,
    }
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
        x = self._rows(X)
        search = x.shape[1] if self.search_dims is None else min(self.search_dims, x.shape[1])
        plain = search == x.shape[1] and self.spread == "range" and not self.standardize
        with Pool(self.n_jobs) as pool:
            if search == x.shape[1]:
                require_finite(x, pool)  # of sampled columns, those that are touched are looked at then
            if plain and small.is_small(x):
                self.labels_ = small.mondrian(x, self.k, self.cut == "multiple")
            else:
                self.labels_ = self._grow(x, search, pool)
        self.n_groups_ = int(self.labels_.max()) + 1
        return self

    def _grow(self, x: Matrix, search: int, pool: Pool) -> Labels:
        """Large sets are divided with all threads on one set, the others with one thread on each."""
        from . import mondrian_kernels as kernel

        n = len(x)
        weight = _inverse_deviation(x, pool) if self.standardize else np.ones(x.shape[1])
        rows = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
        starts = np.zeros(n, dtype=np.bool_)
        seed = np.uint64(seed_from(self.random_state))
        multiples, variance = self.cut == "multiple", self.spread == "variance"
        large, small_sets = [(0, n, 1)], []
        while large:
            lo, hi, node = large.pop()
            m = hi - lo
            if m < 2 * self.k or len(pieces(m, search)) == 1:
                small_sets.append((lo, hi, node))
                continue
            part = rows[lo:hi]
            dims = _dims(seed, node, x.shape[1], search)
            spread = _spread(x, part, dims, variance, pool)
            j = dims[(spread * weight[dims] ** (2 if variance else 1)).argmax()]
            cut = small.cut_at(m, self.k, multiples)
            kernel.split(x, j, part, cut, np.empty(m, x.dtype), np.empty(m, rows.dtype))
            large += [(lo, lo + cut, 2 * node), (lo + cut, hi, 2 * node + 1)]

        def grow(task: tuple[int, int, int]) -> bool:
            lo, hi, node = task
            a, b = (np.empty(search, np.float64 if variance else x.dtype) for _ in range(2))
            ends = None if variance else kernel.Ends(a, b)
            sums = kernel.Sums(a, b, np.empty(x.shape[1], x.dtype)) if variance else None
            dims = np.empty(search, np.int64) if search < x.shape[1] else None
            settings = kernel.Settings(self.k, search, seed, multiples)
            part = rows[lo:hi]
            return bool(kernel.grow(x, _by_column(x), ends, sums, dims, part, lo, np.uint64(node), settings, weight, starts))

        if not all(pool.map(grow, small_sets)):
            refuse_not_finite(x)
        labels = np.empty(n, dtype=np.int64)
        labels[rows] = np.cumsum(starts) - 1
        return labels


def _dims(seed: np.uint64, node: int, d: int, search: int) -> NDArray[np.int64]:
    """The dimensions that are compared for a set."""
    if search == d:
        return np.arange(d)
    from . import mondrian_kernels as kernel

    dims = np.empty(search, dtype=np.int64)
    kernel.draw_dims(seed, np.uint64(node), d, dims)
    return dims


def _by_column(x: Matrix) -> Literal[True] | None:
    """True where a column lies in one piece; else None, because numba compiles nothing of what None rules out."""
    return None if x.flags.c_contiguous else True


def _spread(x: Matrix, rows: NDArray[Any], dims: NDArray[np.int64], variance: bool, pool: Pool) -> NDArray[np.float64]:
    """Spread of the columns ``dims`` over a large set, piece by piece."""
    from . import mondrian_kernels as kernel

    search = len(dims)
    parts = pieces(len(rows), search)
    kind = np.float64 if variance else x.dtype
    low, high = np.empty((len(parts), search), kind), np.empty((len(parts), search), kind)
    shift = x[rows[0]].copy()
    sampled = search < x.shape[1]

    def measure(p: int) -> bool:
        part = rows[parts[p][0] : parts[p][1]]
        if sampled and variance:
            return bool(kernel.sampled_sums(x, part, dims, shift, low[p], high[p]))
        if sampled:
            return bool(kernel.sampled_bounds(x, part, dims, low[p], high[p]))
        if variance:
            kernel.column_sums(x, _by_column(x), part, shift, low[p], high[p])
        else:
            kernel.column_bounds(x, _by_column(x), part, low[p], high[p])
        return True

    if not all(pool.map(measure, range(len(parts)))):
        refuse_not_finite(x)
    if variance:
        first, second = low.sum(axis=0), high.sum(axis=0)
        return second - first * first / len(rows)
    with np.errstate(over="ignore"):
        return high.max(axis=0).astype(np.float64) - low.min(axis=0)


def _inverse_deviation(x: Matrix, pool: Pool) -> NDArray[np.float64]:
    """1 / standard deviation of every column; 0 where a column is constant."""
    rows = np.arange(len(x), dtype=np.int64)
    deviation = np.sqrt(_spread(x, rows, np.arange(x.shape[1]), True, pool) / len(x))
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
