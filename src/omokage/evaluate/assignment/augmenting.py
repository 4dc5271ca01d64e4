"""From good prices to the optimum: shortest augmenting paths on candidate lists, checked against all pairs.

Rows at their best column stay; every other row is brought in by a shortest path (Jonker and Volgenant 1987, here with
capacities and on sparse lists). A search never goes past a threshold: it raises the prices that far, and the lists in
question are made anew. So the prices stay feasible for all pairs, up to the float32 that chose the lists; what that missed
the float64 certificate finds.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from omokage.evaluate.assignment.candidates import BYTES_PER_CANDIDATE, Candidates, Ints
from omokage.evaluate.assignment.duality import row_excess

if TYPE_CHECKING:
    from omokage.evaluate.assignment.transport_kernels import Members

SCANS = 2_000_000  # columns scanned before the time is checked again


def complete(problem: Candidates, column: Ints, until: float, memory: int) -> tuple[Ints, float, float]:
    """The optimal assignment from nearly optimal prices; returns it with its gap and the gap's rounding error.

    ``column`` is a first guess with -1 for free rows. After ``until`` (of the monotonic clock), or when lists would outgrow
    ``memory``, rows still free are put where there is room, and the gap tells what that costs.
    """
    while True:
        done = _augment_all(problem, column, until, memory)
        _fill_room(problem, column)
        excess, rounding = row_excess(problem.x, problem.y, problem.price, column, problem.threads)
        wrong = np.flatnonzero(excess > rounding)
        if not done or len(wrong) == 0 or time.monotonic() > until:
            return column, float(excess.sum()), float(rounding.sum())
        problem.caution *= 4  # float32 missed a column: trust its thresholds less
        problem.refresh(wrong)


def _augment_all(problem: Candidates, column: Ints, until: float, memory: int) -> bool:
    """Bring in all rows by shortest paths; False if time or memory ended it before."""
    from omokage.evaluate.assignment import transport_kernels

    n = problem.n
    free, need = np.empty(n, np.int64), np.empty(n, np.int64)
    problem.refresh_outlived()
    members = _members(problem, column)
    left = transport_kernels.keep_tight(problem.lists, problem.price, members, free)
    while left:
        left, count, _ = transport_kernels.augment(free, left, problem.lists, problem.price, members, need, SCANS)
        if time.monotonic() > until:
            return False
        if count == 0:
            continue
        rows = need[:count].copy()
        problem.refresh(rows)
        while problem.exhausted(rows):
            if min(2 * problem.width, problem.columns) * n * BYTES_PER_CANDIDATE > memory:
                return False
            problem.widen()
    return True


def _members(problem: Candidates, column: Ints) -> Members:
    from omokage.evaluate.assignment.transport_kernels import Members

    start = np.concatenate([[0], np.cumsum(problem.capacity)])
    own = -2 * np.einsum("ij,ij->i", problem.x, problem.y[column])
    return Members(start, np.zeros(problem.columns, np.int64), np.empty(problem.n, np.int64), column, own)


def _fill_room(problem: Candidates, column: Ints) -> None:
    """Put rows that are still free where there is room, in order."""
    free = np.flatnonzero(column < 0)
    room = problem.capacity - np.bincount(column[column >= 0], minlength=problem.columns)
    column[free] = np.repeat(np.arange(problem.columns), room)
