"""MDAV: microaggregation by maximum distance to the average vector (Domingo-Ferrer & Torra 2005, MDAV-generic)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from ...base.matrix import Labels, Matrix, require_finite
from ...base.parameters import THREADS, K, Rules
from ...base.threads import Pool
from . import small
from .leading import head_of
from .rows import Grouper


class MDAV(Grouper, ClusterMixin, BaseEstimator):
    """Groups of exactly k rows (the last of k to 2k − 1), each around a row far from the average.

    As long as 3k rows are left: the row farthest from their average and its k − 1 nearest become a group, then the row
    farthest from that one and its k − 1 nearest. Equal distances are settled by row number. Time grows with n²/k, but
    most rows are ruled out by a bound on 32 principal coordinates; the groups are those of the plain algorithm.

    Parameters
    ----------
    k : int
        Number of rows in a group.
    n_jobs : int or None
        Threads for preparing the bound; None uses every core. The groups do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> MDAV(k=2).fit_predict(np.array([[22.0], [24.0], [26.0], [31.0], [39.0]]))
    array([1, 1, 1, 0, 0])
    """

    parameters: ClassVar[Rules] = {"k": K, "n_jobs": THREADS}

    def __init__(self, k: int, *, n_jobs: int | None = None) -> None:
        self.k = k
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> MDAV:
        """Group the rows of ``X``; the groups are in ``labels_``."""
        x = self._rows(X)
        with Pool(self.n_jobs) as pool:
            require_finite(x, pool)
            self.labels_, self.n_groups_ = small.mdav(x, self.k) if small.is_small(x) else self._group(x, pool)
        return self

    def _group(self, x: Matrix, pool: Pool) -> tuple[Labels, int]:
        """With a bound on the leading coordinates, compiled."""
        from . import mdav_kernels as kernel

        head = head_of(x, 32, pool)
        slack = np.float32(kernel.SLACK) * head.length
        labels = np.empty(len(x), dtype=np.int64)
        bound = kernel.Bound(np.ascontiguousarray(head.rows.T), head.rest, slack, head.axes, head.origin)
        return labels, int(kernel.mdav(x, np.arange(len(x)), bound, self.k, labels))
