"""What a model promises: pure functions from the noise that was added to ε and δ.

Neighbours are tables of the same number of rows that differ in one row (replace-one); the number of rows is
public. The paper's *parameter-based* ε is a promise for each weight on its own. It is reported under that
name only; what an adversary who holds the model faces is the whole-model ε below.

**Laplace steps.** A step adds Laplace noise of scale ``s`` to integers that move by at most ``d`` in L1
between neighbours. Coordinates that move by ``d₁, d₂, …`` with ``Σ dᵢ = d`` are dominated by one coordinate
that moves by ``d``: write ``f_a`` for the trade-off function between the noise and the noise moved by ``a``;
going there one coordinate at a time gives at least ``f_b ∘ (1 − f_a)`` (group privacy), and for threshold
tests, which are optimal for a log-concave law moved along a line, that equals ``f_{a+b}``. So one-dimensional
privacy loss distributions (PLD) account for vectors.

**Gaussian steps under Poisson sampling.** Each record is drawn with probability ``q`` and moves the sum by at
most ``C`` in L2. For an event ``A`` let ``a = N(0)(A)``. Neyman and Pearson give ``N(x)(A) ≤ Φ(Φ⁻¹(a) +
C/σ)`` and ``N(x')(A) ≥ Φ(Φ⁻¹(a) − C/σ)`` for any ``|x|, |x'| ≤ C``, and both hold with equality for
half-lines when ``x' = −x``. So ``(1−q)N(0) + qN(C)`` against ``(1−q)N(0) + qN(−C)`` dominates every replaced
record, in any dimension and after fixing the other records' draws. That is the ``REPLACE`` adjacency of
dp-accounting, whose sensitivity is *one* record's clip ``C``, not ``2C``: the factor two between add/remove
and replace-one is inside it. With ``q = 1`` it is the Gaussian mechanism at distance ``2C``. A record that is
drawn stands among the others and shifts them; the other records' parts keep their bits all the same
(``network_kernels``), and what the order of the additions changes is in ``C`` (``descent.norm_grid``).

**Samplers.** The laws above are ideal. What a computer draws is another law, within statistical distance
``d`` of the ideal one for each table: ``|Q(A) − P(A)| ≤ d`` for every event ``A`` (``noise`` says how far a
number is; a step's ``distance`` is the sum over its numbers, and steps add up, because replacing one drawn law
after the other changes the law of all by at most its own distance). If ``P(A) ≤ e^ε P'(A) + δ'``, then::

    Q(A) ≤ P(A) + d ≤ e^ε P'(A) + δ' + d ≤ e^ε (Q'(A) + d) + δ' + d = e^ε Q'(A) + δ' + (1 + e^ε) d

So a mechanism whose ideal is (ε, δ')-DP is (ε, δ)-DP as drawn with ``δ = δ' + (1 + e^ε) d``: noise for a
given (ε, δ) is solved at ``δ − (1 + e^ε) d``, and there is none if nothing is left. Pure steps can be added up
one by one instead, each as drawn: (Σ ε, Σ δ) with ``δ = (1 + e^ε) d`` by the *step's* ε and d, which is far
smaller. A step in which a record takes no part is the same law for both tables, however it is drawn, and costs
nothing.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from omokage.errors import InputError, MissingExtra
from omokage.learn.settings import check_delta, check_epsilon
from omokage.learn.steps import (
    GaussianSteps,
    LaplaceSteps,
    PureSteps,
    Step,
    naive_delta,
    naive_epsilon,
    one_plus_exp,
    sampler_distance,
)

_CELLS = 1e5  # grid points of a privacy loss distribution: coarser is faster and still an upper bound
_EXACT_SENSITIVITY = 64  # up to here the discrete law has its own distribution; beyond, the continuous one and a margin


def delta_left(delta: float, epsilon: float, distance: float) -> float:
    """What samplers at ``distance`` leave of ``delta`` for the noise, ``δ − (1 + e^ε) · distance``; nothing if it is negative.

    >>> delta_left(1e-5, 1.0, 1e-11) < 1e-5, delta_left(1e-12, 1.0, 1e-11)
    (True, 0.0)
    """
    if not distance:
        return delta
    return max(0.0, delta - one_plus_exp(epsilon) * distance)


def least_epsilon(curve: Callable[[float], float], delta: float, distance: float) -> float:
    """The least ε with ``curve(δ − (1 + e^ε) · distance) ≤ ε``, infinite if there is none.

    ``curve`` gives the ideal ε at a δ and falls, so what is needed only rises with ε, and going from need to
    need reaches the least solution from below.
    """
    if not distance:
        return curve(delta)
    epsilon = 0.0
    while left := delta_left(delta, epsilon, distance):
        needed = curve(left)
        if needed <= epsilon:
            return epsilon
        epsilon = needed * (1.0 + 1e-12)
    return math.inf


@lru_cache(maxsize=512)
def pld_epsilon(steps: tuple[Step, ...], delta: float) -> float:
    """The smaller of the sum and the PLD bound at ``delta``; both are upper bounds, rounding is pessimistic.

    At δ = 0 it is the sum.

    >>> hundred = (LaplaceSteps(sensitivity=1, scale=100.0, count=100),)
    >>> round(naive_epsilon(hundred), 6), round(pld_epsilon(hundred, 1e-5), 2)
    (1.0, 0.34)
    """
    check_delta(delta)
    if delta == 0.0:
        return naive_epsilon(steps)
    curve = _gaussian_curve(steps) if _unsampled(steps) else _pld_curve(steps)
    bound = least_epsilon(curve, delta, sampler_distance(steps))
    pure = naive_epsilon(steps) if naive_delta(steps) <= delta else math.inf
    if math.isinf(min(pure, bound)):
        raise nothing_left(delta)
    return min(pure, bound)


def nothing_left(delta: float) -> InputError:
    why = "the noise sampler's distance from its law, times e^ε, takes all of it"
    return InputError(f"delta={delta:g} is too small, {why}: choose a larger delta, a smaller epsilon or fewer epochs")


def _unsampled(steps: Sequence[Step]) -> bool:
    return all(isinstance(s, GaussianSteps) and s.sampling >= 1.0 for s in steps)


def _gaussian_curve(steps: Sequence[Step]) -> Callable[[float], float]:
    return lambda delta: gaussian_epsilon(steps, delta)


def _pld_curve(steps: Sequence[Step]) -> Callable[[float], float]:
    interval = _interval(steps)
    total = None
    for step in steps:
        part = _distribution(step, interval)
        part = part.self_compose(step.count) if step.count > 1 else part
        total = part if total is None else total.compose(part)
    return lambda delta: float(total.get_epsilon_for_delta(delta)) if total is not None else 0.0


def _interval(steps: Sequence[Step]) -> float:
    """Grid step of the loss: fine beside the spread of the sum, so that rounding up costs little."""
    span, smallest = 0.0, math.inf
    for step in steps:
        if isinstance(step, GaussianSteps):
            each = 2.0 * step.sampling / step.multiplier
        else:
            each = step.epsilon
        span += step.count * min(each, each**2 / 2) + 8.0 * each * math.sqrt(step.count)
        smallest = min(smallest, each)
    sampled = any(isinstance(s, GaussianSteps) and s.sampling < 1.0 for s in steps)
    # A rare record's loss has a long tail that its usual size does not show: keep to dp-accounting's own step there.
    return max(min(span / _CELLS, smallest / 8), 1e-4 if sampled else 1e-7)


def _distribution(step: Step, interval: float) -> Any:
    pld = dp_accounting("pld.privacy_loss_distribution")
    if isinstance(step, PureSteps):
        parameters = dp_accounting("pld.common").DifferentialPrivacyParameters(step.epsilon, 0.0)
        return pld.from_privacy_parameters(parameters, value_discretization_interval=interval)
    if isinstance(step, LaplaceSteps):
        if step.sensitivity <= _EXACT_SENSITIVITY:
            return pld.from_discrete_laplace_mechanism(
                1.0 / step.scale, sensitivity=step.sensitivity, value_discretization_interval=interval
            )
        return pld.from_laplace_mechanism(1.0 / continuous_epsilon(step), value_discretization_interval=interval)
    relation = dp_accounting("privacy_accountant").NeighboringRelation.REPLACE_ONE
    return pld.from_gaussian_mechanism(
        step.multiplier,
        value_discretization_interval=interval,
        sampling_prob=step.sampling,
        neighboring_relation=relation,
    )


def continuous_epsilon(step: LaplaceSteps) -> float:
    """ε of the continuous Laplace mechanism that dominates this discrete one.

    With ``q = exp(-1/scale)`` the discrete trade-off function has ``e^-ε · q/(1+q)²`` where the continuous
    one has ``e^-ε / 4``; the quotient is ``1 / cosh²(1 / 2 scale)``.
    """
    return step.epsilon + 2.0 * math.log(math.cosh(0.5 / step.scale)) + 1e-12


def gaussian_epsilon(steps: Sequence[Step], delta: float) -> float:
    """Exact ε of full-batch Gaussian steps: they compose to one Gaussian mechanism (Balle and Wang, 2018).

    >>> round(gaussian_epsilon([GaussianSteps(multiplier=20.0, count=25)], 1e-5), 3)
    1.993
    """
    shift = math.sqrt(sum(4.0 * s.count / s.multiplier**2 for s in steps if isinstance(s, GaussianSteps)))
    if shift == 0.0 or gaussian_delta(0.0, shift) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, shift) > delta:
        high *= 2.0
    return float(brentq(lambda e: gaussian_delta(e, shift) - delta, 0.0, high, xtol=1e-12)) * (1 + 1e-9)


def gaussian_delta(epsilon: float, shift: float) -> float:
    """δ(ε) between N(0, 1) and N(shift, 1).

    >>> round(gaussian_delta(0.0, 1.0), 4)  # the total variation distance, 2Φ(1/2) − 1
    0.3829
    """
    first = ndtr(shift / 2 - epsilon / shift)
    return float(first - np.exp(epsilon + log_ndtr(-shift / 2 - epsilon / shift)))


@lru_cache(maxsize=512)
def gaussian_multiplier(epsilon: float, delta: float, count: int, sampling: float = 1.0, distance: float = 0.0) -> float:
    """The least noise, in units of one record's clip, that gives ``epsilon`` at ``delta`` after ``count`` steps.

    >>> multiplier = gaussian_multiplier(1.0, 1e-5, count=25)
    >>> bool(abs(pld_epsilon((GaussianSteps(multiplier, 25),), 1e-5) - 1.0) < 1e-6)
    True
    """
    check_epsilon(epsilon)
    left = delta_left(check_delta(delta), epsilon, count * distance)
    if left <= 0.0:
        raise nothing_left(delta)

    def spent(log_multiplier: float) -> float:
        return pld_epsilon((GaussianSteps(math.exp(log_multiplier), count, sampling),), left) - epsilon

    low, high = -1.0, 1.0
    while spent(high) > 0.0:
        low, high = high, high + 1.0
    while spent(low) < 0.0 and low > -8.0:
        low, high = low - 1.0, low
    if spent(low) < 0.0:
        raise InputError(f"epsilon={epsilon} leaves hardly any noise: choose a smaller one")
    precision = 1e-12 if sampling >= 1.0 else 1e-4
    return math.exp(float(brentq(spent, low, high, xtol=precision)) + precision)


def dp_accounting(module: str) -> Any:
    try:
        return importlib.import_module(f"dp_accounting.{module}")
    except ImportError as error:
        raise MissingExtra("privacy accounting (dp-accounting)", "dp") from error
