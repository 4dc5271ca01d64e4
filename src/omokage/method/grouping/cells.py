"""Cells: microaggregation at close to Mondrian's price.

MDAV's groups lose little but its time grows with n²/k; Mondrian is quick but its axis-parallel halves lose much. Here
k-means, learned from a sample in a few principal coordinates, divides the rows into cells of some 32 k; each cell is
grouped by MDAV on the full data, and then rows are moved and exchanged between its groups while that lowers the loss.
Every step is linear in n. What it gives and costs is in docs/grouping.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin

from ...base.matrix import Labels, Matrix, require_finite
from ...base.parameters import SEED, THREADS, K, Rules, optional, whole
from ...base.seeds import seed_from
from ...base.threads import Pool, pieces
from ...errors import InputError
from . import small
from .leading import rough_head
from .rows import Grouper

WIDTH = 16  # members of a near group that a row may change places with


class Cells(Grouper, ClusterMixin, BaseEstimator):
    """Groups of k to 2k − 1 near rows: k-means cells, MDAV within a cell, then exchanges that lower the loss.

    Parameters
    ----------
    k : int
        Least number of rows in a group.
    cell_size : int or None
        Rows a cell aims at; None means 32 k. Larger cells lose less and take longer.
    sweeps : int
        How often every row looks for a better group; 0 leaves MDAV's groups as they are.
    random_state : int or None
        Fixes the sample the cells are learned from. The labels do not depend on the number of threads.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> import numpy as np
    >>> Cells(k=2, random_state=0).fit_predict(np.array([[22.0], [24.0], [26.0], [31.0], [39.0]]))
    array([1, 1, 1, 0, 0])
    """

    parameters: ClassVar[Rules] = {
        "k": K,
        "cell_size": optional(whole(4), "32 k"),
        "sweeps": whole(0),
        "random_state": SEED,
        "n_jobs": THREADS,
    }

    def __init__(
        self,
        k: int,
        *,
        cell_size: int | None = None,
        sweeps: int = 2,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.cell_size = cell_size
        self.sweeps = sweeps
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Cells:
        """Group the rows of ``X``; the groups are in ``labels_``."""
        x = self._rows(X)
        limit = 32 * self.k if self.cell_size is None else self.cell_size
        if limit < 2 * self.k:
            raise InputError(f"cell_size must be at least 2 k = {2 * self.k}, but it is {limit}")
        one_cell = len(x) <= limit + limit // 2  # a larger table is divided by chance, so that nobody can repeat its groups
        with Pool(self.n_jobs) as pool:
            require_finite(x, pool)
            if one_cell and small.is_small(x):
                self.labels_ = small.cell(x, self.k, self.sweeps, WIDTH)
            else:
                self.labels_ = self._group(x, limit, np.uint64(seed_from(self.random_state)), pool)
        self.n_groups_ = int(self.labels_.max()) + 1
        return self

    def _group(self, x: Matrix, limit: int, seed: np.uint64, pool: Pool) -> Labels:
        """Divide the whole set with all threads, then give each cell to one thread."""
        from . import cells_kernels as kernel

        rows = np.arange(len(x))
        labels = np.empty(len(x), dtype=np.int64)
        edges = np.array([0, len(x)])
        head = np.empty((0, 0), dtype=np.float32)
        if len(x) > limit + limit // 2:
            head = _padded(rough_head(x, 64, pool))
            edges = _divide(head, rows, self.k, limit, seed, pool)

        settings = kernel.Settings(self.k, limit, self.sweeps, WIDTH)

        def group(c: int) -> int:
            part = rows[edges[c] : edges[c + 1]]
            return int(kernel.group_cells(x, head, part, np.uint64(c + 2), settings, seed, labels))

        # the largest cells first, so that no thread is left with one at the end
        order = np.argsort(-np.diff(edges), kind="stable")
        found = np.empty(len(order), dtype=np.int64)
        found[order] = pool.map(group, order)
        first = np.concatenate([[0], np.cumsum(found)[:-1]])
        labels[rows] += np.repeat(first, np.diff(edges))
        return labels


def _padded(head: NDArray[np.float32]) -> NDArray[np.float32]:
    """With columns of zeros up to a multiple of four, as the kernel takes four at once."""
    return np.ascontiguousarray(np.pad(head, ((0, 0), (0, -head.shape[1] % 4))))


def _divide(
    head: NDArray[np.float32], rows: NDArray[np.int64], k: int, limit: int, seed: np.uint64, pool: Pool
) -> NDArray[np.int64]:
    """The first division into cells: ``rows`` is put in their order; where each begins."""
    from . import cells_kernels as kernel

    n, q = head.shape
    b = kernel.branches(n, limit)
    centres, norms = np.empty((b, q), np.float32), np.empty(b, np.float32)
    kernel.learn_centres(head, rows, seed, np.uint64(1), centres, norms)
    which = np.empty(n, dtype=np.int64)
    pool.map(
        lambda part: kernel.nearest_centre(head, rows[slice(*part)], centres, norms, which[slice(*part)]),
        pieces(n, q * 4),
    )
    edges = np.empty(kernel.BRANCHES + 1, dtype=np.int64)
    cells = kernel.finish(head, rows, centres, norms, k, limit, which, np.empty_like(rows), edges)
    return edges[: cells + 1].copy()
