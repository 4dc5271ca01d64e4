"""Optimal assignment of rows to released rows, exact and with a proof.

Re-identification by optimal assignment (the safety measure of the dimension-reduction paper) matches all n original
records to all n released ones at least total squared distance. Equal released rows are merged, so this is a transport
problem: n rows to G distinct columns with capacities that sum to n. The paper does not say how it solved it.

Method: start prices and an ε-scaled auction (:mod:`.auction`), then shortest augmenting paths on sparse lists of candidate
columns (:mod:`.augmenting`, :mod:`.candidates`), then a certificate against all pairs in float64 (:mod:`.duality`); rows it
finds wrong are solved again until none is left. Small problems go to SciPy (:mod:`.small`), with the same certificate.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from omokage.errors import InputError
from omokage.evaluate.assignment import small
from omokage.evaluate.assignment.auction import auction_on_lists, auction_on_matrix, start_prices
from omokage.evaluate.assignment.augmenting import complete
from omokage.evaluate.assignment.candidates import BYTES_PER_CANDIDATE, Candidates, Floats, Ints
from omokage.evaluate.assignment.duality import row_excess

WIDTH = 128  # candidate columns per row to begin with
NARROW = 64  # the same when the first phases run on the whole matrix, after which prices move little


@dataclass(frozen=True)
class Assignment:
    """A solved transport problem and its certificate.

    Attributes
    ----------
    column : (n,) int array
        The column of every row.
    price : (G,) array
        Dual prices for squared distances: ``column[i]`` minimises squared distance plus price over all columns, for
        every row, if the gap is zero. Prices are determined up to a common constant.
    cost : float
        Total squared distance (the primal value), in float64.
    dual : float
        Lower bound of the cost of every assignment, ``cost - gap``.
    gap : float
        Sum over rows of how much less the best column is worth than the row's own, over *all* n × G pairs, in float64.
        No assignment costs less than ``cost - gap``, up to ``rounding``.
    rounding : float
        Bound of the error that float64 can have made in ``gap``.
    exact : bool
        Whether ``gap <= rounding``: the assignment is optimal as far as float64 can tell.
    seconds : float
        Wall time.
    """

    column: Ints
    price: Floats
    cost: float
    dual: float
    gap: float
    rounding: float
    exact: bool
    seconds: float


def distinct_rows(rows: ArrayLike) -> tuple[Floats, Ints, Ints]:
    """Merge equal rows: the distinct ones, which of them every row is, and how often each occurs.

    Examples
    --------
    >>> centers, which, capacity = distinct_rows([[1.0], [0.0], [1.0]])
    >>> centers[which].ravel().tolist(), sorted(capacity.tolist())
    ([1.0, 0.0, 1.0], [1, 2])
    """
    table = np.ascontiguousarray(_matrix(rows, "rows") + 0.0)  # + 0.0 turns -0.0 into 0.0
    if table.shape[1] == 0:
        return table[:1], np.zeros(len(table), np.int64), np.array([len(table)])
    keys = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    _, first, which, capacity = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return table[first], which.astype(np.int64).ravel(), capacity.astype(np.int64)


def solve_transport(
    rows: ArrayLike,
    centers: ArrayLike,
    capacity: ArrayLike,
    *,
    memory: int = 6 << 30,
    threads: int | None = None,
    max_seconds: float | None = None,
) -> Assignment:
    """Assign every row to a centre, no centre over its capacity, at least total squared distance.

    Parameters
    ----------
    rows : (n, d) array
    centers : (G, d) array
        Best distinct (see :func:`distinct_rows`); equal ones are allowed.
    capacity : (G,) int array
        Positive, with sum n.
    memory : int
        Bytes for the solver. If the n × G costs in float32 fit, the auction runs on them; otherwise on candidate lists,
        which need about 2.5 kB per row. The result is optimal either way.
    threads : int, optional
        All cores by default. The result does not depend on it.
    max_seconds : float, optional
        Stop improving after this time and return a complete assignment with its gap, then as a rule not exact.

    Returns
    -------
    Assignment
        What is certified: ``gap`` is computed in float64 from the prices and all n × G pairs, block by block, by
        :func:`certify`, independently of how the assignment was found.

    Examples
    --------
    >>> solution = solve_transport([[0.0], [1.0], [5.0], [6.0]], [[0.0], [5.0]], [1, 3])
    >>> solution.column.tolist(), solution.cost, solution.exact
    ([0, 1, 1, 1], 17.0, True)
    """
    begun = time.monotonic()
    x, y, room = _checked(rows, centers, capacity)
    if len(x) <= small.ROWS and max_seconds is None:
        column, price = small.solve_small(x, y, room)
        gap, rounding = certify(x, y, room, column, price, threads=threads)
        if gap <= rounding:  # as a rule; where rounding was in the way, the solver below has more patience
            return _assignment(x, y, column, price, gap, rounding, begun)
    until = np.inf if max_seconds is None else begun + max_seconds
    with threadpool_limits(1, "blas"):  # our threads work on blocks; BLAS threads would only be in their way
        shift, center = x.mean(0), room @ y / len(x)
        dense = 4 * len(x) * len(y) <= memory - len(x) * WIDTH * BYTES_PER_CANDIDATE
        width = min(WIDTH, NARROW) if dense else WIDTH
        problem = Candidates(x - shift, y - center, room, width, threads or os.cpu_count() or 1)
        offset = (problem.y**2).sum(1) - 2 * problem.y @ (shift - center)  # squared distance − (−2 x·y), by column
        start_prices(problem, offset)
        column = auction_on_matrix(problem, until) if dense else auction_on_lists(problem, until)
        column, gap, rounding = complete(problem, column, until, memory)
    return _assignment(x, y, column, problem.price - offset, gap, rounding, begun)


def _assignment(x: Floats, y: Floats, column: Ints, price: Floats, gap: float, rounding: float, begun: float) -> Assignment:
    cost = float(((x - y[column]) ** 2).sum())
    return Assignment(
        column=column,
        price=price,
        cost=cost,
        dual=cost - gap,
        gap=gap,
        rounding=rounding,
        exact=gap <= rounding,
        seconds=time.monotonic() - begun,
    )


def certify(
    rows: ArrayLike,
    centers: ArrayLike,
    capacity: ArrayLike,
    column: ArrayLike,
    price: ArrayLike,
    *,
    threads: int | None = None,
) -> tuple[float, float]:
    """Bound how far an assignment is from the optimum, from the prices alone.

    Returns
    -------
    gap, rounding : float
        The assignment costs at most ``gap`` more than the cheapest one, whatever the prices are; ``rounding`` bounds
        float64's error in ``gap``. Computed against all n × G pairs. Better prices give a smaller gap.

    Raises
    ------
    InputError
        If the assignment does not fill every capacity: then there is nothing to certify.

    Examples
    --------
    >>> gap, _ = certify([[0.0], [2.0]], [[0.0], [2.0]], [1, 1], [1, 0], [0.0, 0.0])
    >>> gap
    8.0
    """
    x, y, room = _checked(rows, centers, capacity)
    where, p = np.asarray(column, np.int64), np.asarray(price, np.float64)
    if where.shape != (len(x),) or not np.array_equal(np.bincount(where, minlength=len(y)), room):
        raise InputError("column must give every row one centre and fill every capacity, and does not: nothing to certify")
    if p.shape != (len(y),) or not np.isfinite(p).all():
        raise InputError(f"price must hold {len(y)} finite numbers, one per centre, and has shape {p.shape}")
    with threadpool_limits(1, "blas"):
        shift, center = x.mean(0), room @ y / len(x)
        centred = y - center
        offset = (centred**2).sum(1) - 2 * centred @ (shift - center)
        excess, rounding = row_excess(x - shift, centred, p + offset, where, threads or os.cpu_count() or 1)
    return float(excess.sum()), float(rounding.sum())


def _matrix(values: ArrayLike, name: str) -> Floats:
    table = np.ascontiguousarray(values, np.float64)
    if table.ndim != 2 or len(table) == 0:
        raise InputError(f"{name} must be a table with at least one row, and has shape {table.shape}")
    if not np.isfinite(table).all():
        raise InputError(f"{name} must hold finite numbers only: fill or drop missing values first")
    return table


def _checked(rows: ArrayLike, centers: ArrayLike, capacity: ArrayLike) -> tuple[Floats, Floats, Ints]:
    x, y, given = _matrix(rows, "rows"), _matrix(centers, "centers"), np.asarray(capacity)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"rows and centers must have equally many columns, not {x.shape[1]} and {y.shape[1]}")
    room = given.astype(np.int64)
    if given.shape != (len(y),) or (room != given).any() or (room < 1).any() or int(room.sum()) != len(x):
        raise InputError(
            f"capacity must hold {len(y)} positive whole numbers that sum to {len(x)}, one per centre; "
            f"it has shape {given.shape} and sum {given.sum()}"
        )
    return x, y, room
