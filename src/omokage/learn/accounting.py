"""What a model promises: pure functions from the noise that was added to ε and δ, and the value that says it.

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
and replace-one is inside it. With ``q = 1`` it is the Gaussian mechanism at distance ``2C``.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from omokage.errors import InputError, MissingExtra

ADJACENCY = "replace-one"
_CELLS = 1e5  # grid points of a privacy loss distribution: coarser is faster and still an upper bound
_EXACT_SENSITIVITY = 64  # up to here the discrete law has its own distribution; beyond, the continuous one and a margin
_ORDERS = np.concatenate([np.linspace(1.05, 10.0, 120), np.arange(10.5, 64, 0.5), 2.0 ** np.arange(6, 14)])


_LARGEST_INTEGRATED = 64.0  # orders beyond are left out where a divergence is integrated numerically


@dataclass(frozen=True)
class LaplaceSteps:
    """``count`` releases of integers that move by at most ``sensitivity`` in L1, with Laplace noise of ``scale``."""

    sensitivity: int
    scale: float
    count: int = 1

    @property
    def epsilon(self) -> float:
        """One step's ε."""
        return self.sensitivity / self.scale


@dataclass(frozen=True)
class PureSteps:
    """``count`` releases of which no more is known than that each is ``epsilon``-DP."""

    epsilon: float
    count: int = 1


@dataclass(frozen=True)
class GaussianSteps:
    """``count`` noisy sums with deviation ``multiplier`` × one record's clip, of Poisson samples at rate ``sampling``."""

    multiplier: float
    count: int = 1
    sampling: float = 1.0


Step = LaplaceSteps | PureSteps | GaussianSteps


@dataclass(frozen=True)
class Privacy:
    """What is promised about a model, to whom it is shown, and on what conditions.

    ``epsilon_naive`` adds the steps up and holds with δ = 0 (infinite for Gaussian noise); ``epsilon`` is the
    smaller of that and the PLD bound at ``delta``. Both are for the whole model. ``epsilon_per_parameter`` is
    the paper's figure: ``per_parameter_holds`` says whether even that weaker promise is true.
    """

    approach: str
    private: bool
    epsilon: float
    delta: float
    epsilon_naive: float
    epsilon_rdp: float | None
    epsilon_per_parameter: float | None
    per_parameter_holds: bool | None
    parameters: int
    records: int
    steps: int
    public: tuple[str, ...]
    tuned: str
    noise: str
    sampler_distance: float
    caveats: tuple[str, ...] = ()
    adjacency: str = ADJACENCY

    def lines(self) -> tuple[str, str]:
        """The two sentences the command line prints: the paper's figure, and the model's guarantee."""
        if self.epsilon_per_parameter is None:
            paper = "each parameter on its own: no separate figure, the whole-model guarantee covers it"
        else:
            doubt = "" if self.per_parameter_holds else "; the proof fails, see docs/learn.md"
            paper = (
                f"each parameter on its own (the paper's ε, not a guarantee for the model{doubt}): "
                f"ε = {self.epsilon_per_parameter:g}"
            )
        if not self.private:
            return "each parameter on its own: no promise either", "whole model: NOT PRIVATE: " + "; ".join(self.caveats)
        naive = "∞" if math.isinf(self.epsilon_naive) else f"{self.epsilon_naive:.6g}"
        whole = f"whole model, {self.adjacency}: ε = {self.epsilon:.6g} at δ = {self.delta:g}; ε = {naive} at δ = 0"
        return paper, whole

    def to_json(self) -> dict[str, Any]:
        """Plain values; an infinite ε is written as the string ``"inf"``."""
        plain = asdict(self)
        for name, value in plain.items():
            if isinstance(value, float) and math.isinf(value):
                plain[name] = "inf"
            elif isinstance(value, tuple):
                plain[name] = list(value)
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Privacy:
        known = {field.name for field in fields(cls)}
        if set(plain) != known:
            raise InputError(f"privacy statement must have exactly the fields {sorted(known)}, got {sorted(plain)}")
        values: dict[str, Any] = {k: math.inf if v == "inf" else tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
        return cls(**values)


def naive_epsilon(steps: Sequence[Step]) -> float:
    """The sum of all ε, at δ = 0.

    >>> naive_epsilon([LaplaceSteps(sensitivity=2, scale=20.0, count=5), PureSteps(0.5)])
    1.0
    >>> naive_epsilon([GaussianSteps(1.0)])
    inf
    """
    return sum(math.inf if isinstance(s, GaussianSteps) else s.epsilon * s.count for s in steps)


@lru_cache(maxsize=512)
def pld_epsilon(steps: tuple[Step, ...], delta: float) -> float:
    """The smaller of the sum and the PLD bound at ``delta``; both are upper bounds, rounding is pessimistic.

    >>> hundred = (LaplaceSteps(sensitivity=1, scale=100.0, count=100),)
    >>> round(naive_epsilon(hundred), 6), round(pld_epsilon(hundred, 1e-5), 2)
    (1.0, 0.34)
    """
    check_delta(delta)
    pure = naive_epsilon(steps)
    if all(isinstance(s, GaussianSteps) and s.sampling >= 1.0 for s in steps):
        return gaussian_epsilon(steps, delta)
    interval = _interval(steps)
    total = None
    for step in steps:
        part = _distribution(step, interval)
        part = part.self_compose(step.count) if step.count > 1 else part
        total = part if total is None else total.compose(part)
    bound = float(total.get_epsilon_for_delta(delta)) if total is not None else 0.0
    return min(pure, bound)


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
        return pld.from_laplace_mechanism(1.0 / _continuous_epsilon(step), value_discretization_interval=interval)
    relation = dp_accounting("privacy_accountant").NeighboringRelation.REPLACE_ONE
    return pld.from_gaussian_mechanism(
        step.multiplier,
        value_discretization_interval=interval,
        sampling_prob=step.sampling,
        neighboring_relation=relation,
    )


def _continuous_epsilon(step: LaplaceSteps) -> float:
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
def gaussian_multiplier(epsilon: float, delta: float, count: int, sampling: float = 1.0) -> float:
    """The least noise, in units of one record's clip, that gives ``epsilon`` at ``delta`` after ``count`` steps.

    >>> multiplier = gaussian_multiplier(1.0, 1e-5, count=25)
    >>> bool(abs(pld_epsilon((GaussianSteps(multiplier, 25),), 1e-5) - 1.0) < 1e-6)
    True
    """
    check_epsilon(epsilon)
    check_delta(delta)

    def spent(log_multiplier: float) -> float:
        return pld_epsilon((GaussianSteps(math.exp(log_multiplier), count, sampling),), delta) - epsilon

    low, high = -1.0, 1.0
    while spent(high) > 0.0:
        low, high = high, high + 1.0
    while spent(low) < 0.0 and low > -8.0:
        low, high = low - 1.0, low
    if spent(low) < 0.0:
        raise InputError(f"epsilon={epsilon} is so large that hardly any noise is left; take a smaller one")
    precision = 1e-12 if sampling >= 1.0 else 1e-4
    return math.exp(float(brentq(spent, low, high, xtol=precision)) + precision)


def rdp_epsilon(steps: Sequence[Step], delta: float) -> float:
    """ε by Rényi divergences, the usual looser bound beside the PLD.

    Domination carries over to Rényi divergences, so the same pairs as above are used; sampled Gaussians are
    integrated numerically.

    >>> round(rdp_epsilon([GaussianSteps(multiplier=20.0, count=25)], 1e-5), 2)
    2.17
    """
    check_delta(delta)
    total = np.zeros_like(_ORDERS)
    for step in steps:
        total += step.count * _renyi(step)
    epsilon, _ = dp_accounting("rdp.rdp_privacy_accountant").compute_epsilon(_ORDERS, total, delta)
    return float(min(epsilon, naive_epsilon(steps)))


def _renyi(step: Step) -> NDArray[np.float64]:
    a = _ORDERS
    if isinstance(step, PureSteps):
        return np.asarray(np.minimum(step.epsilon, a * step.epsilon**2 / 2))
    if isinstance(step, LaplaceSteps):  # Mironov (2017), table II
        e = _continuous_epsilon(step)
        first = np.log(a / (2 * a - 1)) + (a - 1) * e
        return np.asarray(np.logaddexp(first, np.log((a - 1) / (2 * a - 1)) - a * e) / (a - 1))
    if step.sampling >= 1.0:
        return np.asarray(2.0 * a / step.multiplier**2)
    reach = step.multiplier * 12 + 2 * _LARGEST_INTEGRATED  # the integrand of order a peaks near 2a
    z = np.linspace(-reach, reach, 40_001)
    centre = math.log1p(-step.sampling) - z**2 / (2 * step.multiplier**2)
    left = np.logaddexp(centre, math.log(step.sampling) - (z + 1) ** 2 / (2 * step.multiplier**2))
    right = left[::-1]
    log_cell = math.log((z[1] - z[0]) / (step.multiplier * math.sqrt(2 * math.pi)))
    return np.array(
        [
            np.logaddexp.reduce(o * left + (1 - o) * right + log_cell) / (o - 1) if o <= _LARGEST_INTEGRATED else math.inf
            for o in a
        ]
    )


def check_epsilon(epsilon: float) -> None:
    if not (isinstance(epsilon, int | float | np.floating) and math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon must be a finite number above 0, got {epsilon!r}")


def check_delta(delta: float) -> None:
    if not (isinstance(delta, int | float | np.floating) and 0.0 < delta < 1.0):
        raise InputError(f"delta must lie strictly between 0 and 1, got {delta!r}")


def dp_accounting(module: str) -> Any:
    try:
        return importlib.import_module(f"dp_accounting.{module}")
    except ImportError as error:
        raise MissingExtra("privacy accounting (dp-accounting)", "dp") from error
