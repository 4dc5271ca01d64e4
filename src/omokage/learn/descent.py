"""Gradient descent on sums that were made noisy before anyone saw them.

What is released at each step is a sum of clipped gradients on an integer grid plus integer noise; everything
after that (momentum, decay, averaging of the last half of the iterates) is post-processing and free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omokage.base.words import counted
from omokage.errors import InputError
from omokage.learn import network_kernels as kernels
from omokage.learn.network import Network, check_finite, weight_mask

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GRID = 2**16  # grid steps in a clip: fine enough that rounding is far below the noise
_LARGEST_SUM = 2**60  # grid steps; noise is added in 64 bits


@dataclass(frozen=True)
class Grid:
    """A clip of ``units`` grid steps, and by how much rounding may lift a clipped sum's distance, in the same steps."""

    step: float
    units: int
    slack: int


def norm_grid(clip: float, parameters: int, norm: int, rows: int) -> Grid:
    """The grid for sums of ``rows`` records that are clipped one by one in L1 or L2.

    Rounding to the grid moves the distance of two neighbours' sums by at most one step in each of ``P``
    coordinates, that is ``P`` in L1 and ``√P`` in L2. Floating-point sums, in pieces of 256 rows and in
    whatever order, err by at most ``(256 + rows/256) · rows · units · 2⁻⁵³`` steps in all; as much again is
    set aside for the two sums that are compared: with and without the record under Poisson sampling, where
    the others stand in other places, and with one record or the other elsewhere. The grid is so fine that
    both are below a thousandth of the clip.

    >>> grid = norm_grid(1.0, 200, norm=1, rows=40_000)
    >>> grid.slack / grid.units < 2e-3
    True
    """
    rounding = parameters if norm == 1 else math.isqrt(parameters) + 1
    units = max(GRID, 1 << (1024 * rounding).bit_length())
    error = 2.0 * (kernels.CHUNK + rows / kernels.CHUNK) * rows * units * 2.0**-53
    if error > rounding or rows * units > _LARGEST_SUM:
        raise InputError(f"{counted(rows, 'row')} are too many to add up exactly at once: choose a smaller batch_size")
    return Grid(clip / units, units, 2 * rounding)


def to_grid(values: Floats, step: float) -> Integers:
    """Nearest grid point, halves upwards: unlike rounding to even this commutes with whole shifts.

    What is not finite or not a grid point's size is refused. Clipped sums are neither, so no table gets there.
    """
    steps = np.floor(values / step + 0.5)
    if not (np.abs(steps) <= 2.0 * _LARGEST_SUM).all():
        raise InputError("a sum is not finite or does not fit on its grid: choose a smaller learning_rate")
    return steps.astype(np.int64)


def fixed_batches(rows: int, batch_size: int | None, epochs: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Every record in exactly one batch an epoch; the partition does not look at the data and need not be secret."""
    if batch_size is None or batch_size >= rows:
        for _ in range(epochs):
            yield np.arange(rows)
        return
    for _ in range(epochs):
        order = rng.permutation(rows)
        for start in range(0, rows, batch_size):
            yield order[start : start + batch_size]


def steady_epochs(deviation: float, momentum: float, rate: float) -> int:
    """How many epochs of full batches fit before noise alone has moved a parameter by about 1.5, from 5 to 60.

    ``deviation`` is that of one coordinate of the mean gradient if there were one epoch; ``E`` epochs share
    the budget, so each has ``E`` times as much and all of them ``rate · deviation · E√E / (1 − m)``.

    >>> steady_epochs(0.0035, momentum=0.9, rate=2.0), steady_epochs(1.0, 0.9, 2.0), steady_epochs(1e-9, 0.9, 2.0)
    (7, 5, 60)
    """
    fitting = (1.5 * (1.0 - momentum) / (rate * deviation)) ** (2.0 / 3.0)
    return int(min(max(fitting, 5.0), 60.0))


def steady_rate(deviation: float, steps: int, momentum: float, largest: float) -> float:
    """The largest learning rate at which noise alone moves a parameter by about 1.5 in all, from public values only.

    ``deviation`` is that of the noise in one coordinate of the mean gradient; with momentum ``m`` the noise
    of ``T`` steps adds up to about ``rate · deviation · √T / (1 − m)``. The weights of a softmax regression
    on inputs in [0, 1] are about as large.

    >>> round(steady_rate(0.01, steps=100, momentum=0.9, largest=4.0), 6)
    1.5
    """
    return min(largest, 1.5 * (1.0 - momentum) / (deviation * math.sqrt(steps)))


def descend(
    network: Network,
    batches: Iterable[Integers],
    release: Callable[[Network, Integers], Floats],
    *,
    batch_size: int,
    steps: int,
    learning_rate: float,
    momentum: float,
    decay: float,
    average: bool,
) -> Network:
    """``w ← w − α (v + λw)/B`` where ``v`` gathers the released sums; if ``average``, the mean of the last half.

    That a training diverged is told by the parameters, which are made of released sums alone, so the error
    says no more about a record than the model would.
    """
    theta = network.theta.copy()
    velocity = np.zeros_like(theta)
    total = np.zeros_like(theta)
    mask = weight_mask(network.sizes)
    counted = 0
    with np.errstate(over="ignore", invalid="ignore"):  # the checks say it in words
        for number, rows in enumerate(batches):
            velocity = momentum * velocity + release(Network(network.sizes, theta), rows)
            theta = theta - learning_rate / batch_size * (velocity + decay * theta * mask)
            check_finite(theta, f"step {number + 1}")
            if average and number >= steps // 2:
                total += theta
                counted += 1
        result = total / counted if counted else theta
    check_finite(result, "averaging")
    return Network(network.sizes, result)
