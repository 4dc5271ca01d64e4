"""The noisy steps of a training: sums of bounded records on a grid of whole numbers, and the noise they get.

Each mechanism is split where an audit looks: ``exact`` is what a batch adds up to, in grid steps; ``noisy`` adds
the noise; ``release`` is one after the other, and all that training ever sees. One record moves ``exact`` by at
most ``bound``, whatever the network, the record and the overflow in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omokage.learn import network_kernels as kernels
from omokage.learn.descent import GRID, Grid, to_grid
from omokage.learn.network import Network, gradient_intervals
from omokage.learn.noise import NoiseSource
from omokage.learn.steps import GaussianSteps, LaplaceSteps

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SMALLEST_STEP = 2.0**-900  # a narrower interval cannot be divided exactly; such a coordinate is released as zero


@dataclass(frozen=True)
class ClippedSum:
    """A sum of gradients, each clipped as a whole, with Laplace noise (clipped in L1) or Gaussian noise (in L2).

    ``scale`` is the Laplace scale or the Gaussian deviation, in grid steps.
    """

    norm: int
    clip: float
    grid: Grid
    scale: float

    @property
    def bound(self) -> int:
        """The distance of two neighbours' sums, in grid steps."""
        if self.norm == 1:
            return 2 * self.grid.units + self.grid.slack
        return 2 * (self.grid.units + self.grid.slack)

    def exact(self, network: Network, inputs: Floats, labels: Integers, rows: Integers) -> Integers:
        return to_grid(network.gradient(inputs, labels, rows, self.norm, self.clip), self.grid.step)

    def noisy(self, exact: Integers, source: NoiseSource) -> Integers:
        draw = source.laplace if self.norm == 1 else source.gaussian
        return exact + draw(exact.size, self.scale)

    def release(self, network: Network, inputs: Floats, labels: Integers, rows: Integers, source: NoiseSource) -> Floats:
        return np.asarray(self.noisy(self.exact(network, inputs, labels, rows), source) * self.grid.step, np.float64)


@dataclass(frozen=True)
class CoordinateSum:
    """A sum of gradients clipped coordinate by coordinate to ±``clip`` and, with ``intervals``, to what the network allows.

    The promise is for each coordinate: one record moves it by at most ``bound`` grid steps, of which each
    coordinate has its own.
    """

    clip: float
    intervals: bool
    scale: float
    bound = GRID + 1  # the extra step covers rounding in the division by the grid step

    def exact(self, network: Network, inputs: Floats, labels: Integers, rows: Integers) -> Integers:
        low, high, step = self.range(network)
        return np.asarray(kernels.quantized_sum(network.theta, network.shape, inputs, labels, rows, low, high, step))

    def noisy(self, exact: Integers, source: NoiseSource) -> Integers:
        return exact + source.laplace(exact.size, self.scale)

    def release(self, network: Network, inputs: Floats, labels: Integers, rows: Integers, source: NoiseSource) -> Floats:
        low, high, step = self.range(network)
        noisy = self.noisy(self.exact(network, inputs, labels, rows), source) * step
        return np.asarray(np.clip(noisy, low * len(rows), high * len(rows)))  # what a whole batch can reach

    def range(self, network: Network) -> tuple[Floats, Floats, Floats]:
        """Lowest and highest value of a record in each coordinate, and the grid step between them."""
        low, high = np.full(network.theta.size, -self.clip), np.full(network.theta.size, self.clip)
        if self.intervals:
            reached = gradient_intervals(network)
            low = np.minimum(np.fmax(low, reached[0]), 0.0)  # an overflow to NaN leaves the clip
            high = np.maximum(np.fmin(high, reached[1]), 0.0)
        step = (high - low) / GRID
        return low, high, np.where(step > _SMALLEST_STEP, step, 0.0)


Sum = ClippedSum | CoordinateSum


@dataclass(frozen=True)
class Plan:
    """A training as it follows from public values alone: the mechanism, what it claims, and the course of the descent."""

    mechanism: Sum
    claim: GaussianSteps | LaplaceSteps
    batch: int
    epochs: int
    steps: int
    rate: float
