"""ε by Rényi divergences: the usual, looser bound, reported beside the one by privacy loss distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from omokage.learn.accounting import continuous_epsilon, dp_accounting, least_epsilon
from omokage.learn.settings import check_delta
from omokage.learn.steps import GaussianSteps, LaplaceSteps, PureSteps, Step, naive_epsilon, sampler_distance

_ORDERS = np.concatenate([np.linspace(1.05, 10.0, 120), np.arange(10.5, 64, 0.5), 2.0 ** np.arange(6, 14)])
_LARGEST_INTEGRATED = 64.0  # orders beyond are left out where a divergence is integrated numerically


def rdp_epsilon(steps: Sequence[Step], delta: float) -> float:
    """ε at ``delta`` from Rényi divergences.

    Domination carries over to Rényi divergences, so the same pairs as in ``accounting`` are used; sampled
    Gaussians are integrated numerically.

    >>> round(rdp_epsilon([GaussianSteps(multiplier=20.0, count=25)], 1e-5), 2)
    2.17
    """
    check_delta(delta)
    total = np.zeros_like(_ORDERS)
    for step in steps:
        total += step.count * _renyi(step)
    compute = dp_accounting("rdp.rdp_privacy_accountant").compute_epsilon
    bound = least_epsilon(lambda left: float(compute(_ORDERS, total, left)[0]), delta, sampler_distance(steps))
    return min(bound, naive_epsilon(steps))


def _renyi(step: Step) -> NDArray[np.float64]:
    a = _ORDERS
    if isinstance(step, PureSteps):
        return np.asarray(np.minimum(step.epsilon, a * step.epsilon**2 / 2))
    if isinstance(step, LaplaceSteps):  # Mironov (2017), table II
        e = continuous_epsilon(step)
        first = np.log(a / (2 * a - 1)) + (a - 1) * e
        return np.asarray(np.logaddexp(first, np.log((a - 1) / (2 * a - 1)) - a * e) / (a - 1))
    if step.sampling >= 1.0:
        return np.asarray(2.0 * a / step.multiplier**2)
    return _sampled(step)


def _sampled(step: GaussianSteps) -> NDArray[np.float64]:
    """The dominating pair of a Poisson sample, integrated on a grid."""
    reach = step.multiplier * 12 + 2 * _LARGEST_INTEGRATED  # the integrand of order a peaks near 2a
    z = np.linspace(-reach, reach, 40_001)
    centre = math.log1p(-step.sampling) - z**2 / (2 * step.multiplier**2)
    left = np.logaddexp(centre, math.log(step.sampling) - (z + 1) ** 2 / (2 * step.multiplier**2))
    right = left[::-1]
    log_cell = math.log((z[1] - z[0]) / (step.multiplier * math.sqrt(2 * math.pi)))
    return np.array(
        [
            np.logaddexp.reduce(o * left + (1 - o) * right + log_cell) / (o - 1) if o <= _LARGEST_INTEGRATED else math.inf
            for o in _ORDERS
        ]
    )
