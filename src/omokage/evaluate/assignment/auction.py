"""Prices to start from, and the ε-scaled auction that improves them.

The auction is Bertsekas' for similar objects: a row bids for its best column as much as makes it indifferent to the second
best, plus ε; a column with capacity c keeps its c highest bids. With ε divided by five from phase to phase the
prices come close to the optimal ones, and shortest augmenting paths (:mod:`.augmenting`) do the rest.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from omokage.evaluate.assignment.candidates import Candidates, Floats, Ints

if TYPE_CHECKING:
    from omokage.evaluate.assignment.transport_kernels import Auction, Queue

SHRINK = 5.0
LIST_PHASES = 4  # without the matrix
PHASES, MATRIX_PHASES = 6, 3  # with the matrix: in all, and on it
MOST_BIDS = 40  # per row in a phase on the matrix; what is left then is a price war, which paths settle
UNFINISHED = 0.001  # a phase on lists ends when this share of the rows is left: its tail is long and better done by paths


def start_prices(problem: Candidates, plain: Floats) -> None:
    """Start from ``plain``, at which every row's best column is its nearest, or from the Gaussian prices.

    Noise spreads the columns wider than the rows, and the Gaussian map, which shrinks them back, comes near the optimal
    prices. Means of groups lie closer together than the rows; there the map would stretch and overprice the outermost
    columns, and an auction mends a price that is too high only by raising all the others.
    """
    weight, direction = np.linalg.eigh((problem.y.T * problem.capacity) @ problem.y)
    span = direction[:, weight > 1e-10 * max(float(weight[-1]), 1e-300)]
    wider = float(weight.sum()) > float(((problem.x @ span) ** 2).sum())
    problem.price = gaussian_prices(problem.x, problem.y, problem.capacity) if wider else plain.copy()


def gaussian_prices(x: Floats, y: Floats, capacity: Ints) -> Floats:
    """Dual prices y'Sy of the optimal map between centred Gaussians, where S maps the covariance of y to that of x.

    S = H⁻¹ (H Σx H)^½ H⁻¹ with H = Σy^½ (Dowson and Landau 1982; the Bures metric), on the span of ``y``.
    """
    weight, direction = np.linalg.eigh((y.T * capacity) @ y / len(x))
    seen = weight > 1e-10 * max(float(weight[-1]), 1e-300)
    root, direction = np.sqrt(weight[seen]), direction[:, seen]  # (r,), (d, r)
    z = x @ direction
    inner = root[:, None] * (z.T @ z / len(x)) * root
    values, vectors = np.linalg.eigh(inner)
    middle = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T / root[:, None] / root
    z = y @ direction
    prices: Floats = ((z @ middle) * z).sum(1)
    return prices


def auction_on_lists(problem: Candidates, until: float) -> Ints:
    """The auction on lists alone; returns every row's column, or -1, after the last phase."""
    problem.lower_prices()
    problem.refresh()
    stale = problem.lists.stale
    first = float(np.median(stale[:, -1] - stale[:, 0])) / 8
    return _list_phases(problem, _scales(problem, first, LIST_PHASES), UNFINISHED, until)


def auction_on_matrix(problem: Candidates, until: float) -> Ints:
    """The same with the first phases on the whole matrix in float32.

    While prices still move far, lists would have to be made anew again and again; the matrix never. Later a bid on a
    list costs a small part of a bid on a whole row.
    """
    from omokage.evaluate.assignment import transport_kernels

    costs = problem.costs32()
    sample = costs[:: max(1, problem.n // 512)]
    spread = (sample + problem.price.astype(np.float32)).std(axis=1)
    scales = _scales(problem, float(np.median(spread)) / 4, PHASES)
    for epsilon in scales[:MATRIX_PHASES]:
        auction, queue = _opening(problem)
        rounded = problem.price.astype(np.float32)
        for _ in range(MOST_BIDS):
            if queue.state[1] > 0 and time.monotonic() < until:
                transport_kernels.bid_dense(costs, problem.price, rounded, auction, epsilon, queue, problem.n)
    problem.refresh()
    if len(scales) <= MATRIX_PHASES:
        return _columns(problem, auction)
    return _list_phases(problem, scales[MATRIX_PHASES:], UNFINISHED, until)


def _list_phases(problem: Candidates, scales: list[float], unfinished: float, until: float) -> Ints:
    from omokage.evaluate.assignment import transport_kernels

    need = np.empty(problem.n, np.int64)
    for epsilon in scales:
        auction, queue = _opening(problem)
        ring, state = queue
        while state[1] > unfinished * problem.n and time.monotonic() < until:
            most = max(64, min(4096, int(state[1]) // 4 + 1))
            count = transport_kernels.bid(problem.lists, problem.price, auction, epsilon, queue, need, most)
            if count:
                problem.refresh(need[:count].copy())
                ring[(state[0] + state[1] + np.arange(count)) % len(ring)] = need[:count]
                state[1] += count
    return _columns(problem, auction)


def _scales(problem: Candidates, first: float, phases: int) -> list[float]:
    """Falling ε, none so small that a bid would be lost in float32."""
    least = 2.0**-20 * (problem.reach + float(np.abs(problem.price).max()))
    return sorted({max(first / SHRINK**phase, least) or 1.0 for phase in range(phases)}, reverse=True)


def _opening(problem: Candidates) -> tuple[Auction, Queue]:
    """An auction without bids, and a queue of all rows."""
    from omokage.evaluate.assignment.transport_kernels import Auction, Queue

    n = problem.n
    start = np.concatenate([[0], np.cumsum(problem.capacity)])
    auction = Auction(start, np.zeros(problem.columns, np.int64), np.empty(n), np.full(n, -1, np.int64))
    return auction, Queue(np.append(np.arange(n), 0), np.array([0, n]))


def _columns(problem: Candidates, auction: Auction) -> Ints:
    """Every row's column after an auction, -1 for rows that hold none."""
    who = auction.who
    of_slot = np.repeat(np.arange(problem.columns), problem.capacity)
    column = np.full(problem.n, -1, np.int64)
    column[who[who >= 0]] = of_slot[who >= 0]
    return column
