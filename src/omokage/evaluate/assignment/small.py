"""Small problems, solved by SciPy: done before a compiled kernel could even be loaded.

SciPy's solver (Crouse 2016) gives the assignment but no prices. They follow from it: an assignment is optimal exactly if there
are prices at which no row would rather change places, p[a] − p[b] ≤ the least that a row of column a pays more in column b.
Such prices are distances in a graph of columns, and the rounds of Bellman and Ford find them.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from omokage.evaluate.assignment.candidates import Floats, Ints

ROWS = 1024  # of a small problem


def solve_small(x: Floats, y: Floats, capacity: Ints) -> tuple[Ints, Floats]:
    """Every row's column at least total squared distance, and prices that show it.

    ``x`` is (n, d), ``y`` (G, d), and ``capacity`` (G,) has the sum n.
    """
    costs = cdist(x, y, "sqeuclidean") if x.shape[1] else np.zeros((len(x), len(y)))
    seat = np.repeat(np.arange(costs.shape[1]), capacity)  # a column as often as it has room
    _, taken = linear_sum_assignment(costs[:, seat])
    column: Ints = seat[taken]
    return column, _prices(costs, column)


def _prices(costs: Floats, column: Ints) -> Floats:
    """Prices at which every row is at its best column, up to rounding."""
    more = costs - np.take_along_axis(costs, column[:, None], axis=1)  # what a row pays more in another column
    order = np.argsort(column, kind="stable")
    first = np.searchsorted(column[order], np.arange(costs.shape[1]))
    least = np.minimum.reduceat(more[order], first, axis=0)  # (a, b): over the rows of column a
    price = np.zeros(len(first))
    rounding = 2.0**-52 * float(costs.max())
    for _ in first:  # as many rounds as a shortest path can have edges
        lower = np.minimum(price, (least + price).min(axis=1))
        settled = float((price - lower).max()) <= rounding
        price = lower
        if settled:
            break
    return price
