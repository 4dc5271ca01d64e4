"""The noisy steps of a training, as the accounting sees them, and what they add up to one by one.

``accounting`` says what the steps mean and why the sums hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LaplaceSteps:
    """``count`` releases of integers that move by at most ``sensitivity`` in L1, with Laplace noise of ``scale``.

    ``distance`` is that of one release's noise, as it is drawn, from its law.
    """

    sensitivity: int
    scale: float
    count: int = 1
    distance: float = 0.0

    @property
    def epsilon(self) -> float:
        """One step's ε."""
        return self.sensitivity / self.scale


@dataclass(frozen=True)
class PureSteps:
    """``count`` releases of which no more is known than that each is ``epsilon``-DP."""

    epsilon: float
    count: int = 1
    distance: float = 0.0


@dataclass(frozen=True)
class GaussianSteps:
    """``count`` noisy sums with deviation ``multiplier`` × one record's clip, of Poisson samples at rate ``sampling``."""

    multiplier: float
    count: int = 1
    sampling: float = 1.0
    distance: float = 0.0


Step = LaplaceSteps | PureSteps | GaussianSteps


def naive_epsilon(steps: Sequence[Step]) -> float:
    """The sum of all ε, at the δ of :func:`naive_delta`.

    >>> naive_epsilon([LaplaceSteps(sensitivity=2, scale=20.0, count=5), PureSteps(0.5)])
    1.0
    >>> naive_epsilon([GaussianSteps(1.0)])
    inf
    """
    return sum(math.inf if isinstance(s, GaussianSteps) else s.epsilon * s.count for s in steps)


def naive_delta(steps: Sequence[Step]) -> float:
    """What the samplers add to the sum of all ε: zero for exact ones, next to nothing for ours.

    >>> naive_delta([LaplaceSteps(sensitivity=2, scale=20.0, count=5)])
    0.0
    >>> naive_delta([LaplaceSteps(2**17, 2**17, count=60, distance=218 * 2.0**-100)]) < 1e-25
    True
    """
    if any(isinstance(s, GaussianSteps) for s in steps):
        return 0.0  # beside an infinite ε
    pure = (s for s in steps if not isinstance(s, GaussianSteps))
    return math.fsum(s.count * one_plus_exp(s.epsilon) * s.distance if s.distance else 0.0 for s in pure)


def sampler_distance(steps: Sequence[Step]) -> float:
    """The statistical distance of all noise, as it is drawn, from its laws."""
    return math.fsum(s.count * s.distance for s in steps)


def one_plus_exp(epsilon: float) -> float:
    """``1 + e^ε``, infinite where a double ends."""
    return 1.0 + math.exp(epsilon) if epsilon < 700.0 else math.inf
