"""The noisy steps of a learner one kind at a time, as an audit sees them: what is claimed, and the code that is run.

The attacker of a step is as strong as can be: they choose the exact numbers of both worlds and see what is
released. A *canary* moves them by so much that the claimed noise leaves a privacy loss of about 1, many rows'
worth where ε is small and a fraction of a row where it is large. Noise that is additive on a grid makes that
as good as one row: what is measured is the loss for each grid step, and a row's share of it is ``bound`` steps.

* Laplace noise: the likelihood ratio beyond both worlds' values is e^loss exactly. The event is counted in
  both worlds, and exact (Clopper and Pearson) bounds on the two rates give a lower bound on the loss, without
  any assumption about the noise.
* Gaussian noise: the canary is spread over all numbers, with known signs. If a step is μ-GDP nobody tells the
  worlds apart with a balanced accuracy above Φ(μ/2), so the counted accuracy gives a lower bound on μ.

Beside the noise, every part says how far neighbours really move the exact numbers (``moved``), tried with hostile
records and networks; more than ``bound`` refutes the claim without any statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from omokage.errors import InputError
from omokage.learn.mechanisms import ClippedSum, Sum
from omokage.learn.network import Network
from omokage.learn.noise import NoiseSource
from omokage.learn.steps import GaussianSteps, LaplaceSteps, PureSteps, Step

Integers = NDArray[np.int64]
Released = NDArray[Any]

_LARGEST_RELEASE = 4096  # numbers in a release that is audited; a larger one would only take longer


@dataclass(frozen=True)
class Finding:
    """What was measured of one part, with the claim beside it.

    ``measure`` is "ε" or "μ" of one step for one row, or "rate" of a sample. ``moved`` is the largest
    distance of neighbours that was found, in parts of the distance that the claim covers. ``step`` is the
    claim at the noise that was measured, if anything was.
    """

    name: str
    measure: str
    count: int
    claimed: float
    measured: float
    moved: float
    step: Step | None

    @property
    def holds(self) -> bool:
        return self.measured <= self.claimed and self.moved <= 1.0


Claim = TypeVar("Claim")


@dataclass(frozen=True)
class _NoisyNumbers(Generic[Claim]):
    """``size`` whole numbers with noise; ``moved`` finds how far one row moves them, ``bound`` is how far it may."""

    name: str
    claim: Claim
    bound: int
    size: int
    noisy: Callable[[Integers, NoiseSource], Released]
    moved: Callable[[], float]


@dataclass(frozen=True)
class LaplacePart(_NoisyNumbers[LaplaceSteps]):
    """Whole numbers with Laplace noise: a gradient sum, a histogram, all parameters.

    ``bound`` is how far one row may move the numbers, in L1 (or each of them, if the promise is for each). In a
    ``histogram`` the total is public, so the canary moves from one cell to another.
    """

    histogram: bool = False

    def measure(self, runs: int, miss: float, source: NoiseSource) -> Finding:
        """Run the noise ``runs`` times in each world; ``miss`` is the probability of a bound that is too high."""
        scale = self.claim.scale
        far = max(1, round(scale / 2.0 if self.histogram else scale))
        cells = max(2, self.size)
        base = np.full(cells, 1000 * far if self.histogram else 0, np.int64)
        hits = alarms = 0
        for world in (0, 1):
            for run in range(runs):
                at = run % (cells - 1)
                exact = base.copy()
                exact[at] += world * far
                exact[at + 1] -= world * far if self.histogram else 0
                up, down = _beyond(self.noisy(exact, source) - base, at, far, self.histogram)
                hits += up if world else down
                alarms += down if world else up
        loss = far * (2.0 if self.histogram else 1.0) / scale
        share = max(0.0, least_loss(hits, alarms, 2 * runs, miss)) / loss
        step = replace(self.claim, scale=scale / share) if share else None
        epsilon = self.claim.epsilon
        return Finding(self.name, "ε", self.claim.count, epsilon, epsilon * share, self.moved() / self.bound, step)


@dataclass(frozen=True)
class GaussianPart(_NoisyNumbers[GaussianSteps]):
    """Whole numbers with Gaussian noise: a gradient sum. One row moves them by at most ``bound`` in L2."""

    def measure(self, runs: int, miss: float, source: NoiseSource) -> Finding:
        """Run the noise ``runs`` times in each world; ``miss`` is the probability of a bound that is too high."""
        deviation = self.claim.multiplier * self.bound / 2.0
        signs = np.where(np.random.default_rng(0).random(self.size) < 0.5, -1, 1)
        canary = (signs * max(1, round(deviation / math.sqrt(self.size)))).astype(np.int64)
        length = math.sqrt(float((canary**2).sum()))
        correct = 0
        for world in (0, 1):
            for _ in range(runs):
                seen = self.noisy(world * canary, source) @ canary / length**2
                correct += (seen > 0.5) == bool(world)
        share = max(0.0, least_shift(correct, 2 * runs, miss)) / (length / deviation)
        step = replace(self.claim, multiplier=self.claim.multiplier / share) if share else None
        mu = 2.0 / self.claim.multiplier
        return Finding(self.name, "μ", self.claim.count, mu, mu * share, self.moved() / self.bound, step)


def _beyond(seen: Released, at: int, far: int, both: bool) -> tuple[bool, bool]:
    """Whether the canary's number is where it is with the canary or beyond, and where it is without or beyond."""
    up, down = seen[at] >= far, seen[at] <= 0
    if both:
        up, down = up and seen[at + 1] <= -far, down and seen[at + 1] >= 0
    return bool(up), bool(down)


@dataclass(frozen=True)
class ChoicePart:
    """One of several scores, chosen by noise; the scores of neighbours differ by at most ``bound``."""

    name: str
    claim: PureSteps
    bound: float
    pick: Callable[[NDArray[np.float64], NoiseSource], int]
    moved: Callable[[], float]

    def measure(self, runs: int, miss: float, source: NoiseSource) -> Finding:
        """Two scores that change places: how often is the larger one chosen?"""
        far = self.bound / self.claim.epsilon  # a loss of 1, if both scores move so far
        hits = alarms = 0
        for scores in (np.array([far, 0.0]), np.array([0.0, far])):
            for _ in range(runs):
                right = self.pick(scores, source) == int(scores.argmax())
                hits += right
                alarms += not right
        share = max(0.0, least_loss(hits, alarms, 2 * runs, miss))
        epsilon = self.claim.epsilon
        step = replace(self.claim, epsilon=epsilon * share) if share else None
        return Finding(self.name, "ε", self.claim.count, epsilon, epsilon * share, self.moved() / self.bound, step)


@dataclass(frozen=True)
class SamplePart:
    """Poisson samples: a record is drawn with probability ``rate``."""

    name: str
    rate: float

    def measure(self, runs: int, miss: float, source: NoiseSource) -> Finding:
        """How often records are drawn."""
        records = 1000
        drawn = sum(len(source.poisson_subset(records, self.rate)) for _ in range(runs))
        low = lowest_rate(drawn, runs * records, miss)
        return Finding(self.name, "rate", runs, self.rate, low, 0.0, None)


Part = LaplacePart | GaussianPart | ChoicePart | SamplePart


def sum_part(mechanism: Sum, claim: GaussianSteps | LaplaceSteps, network: Network) -> LaplacePart | GaussianPart:
    """The gradient sums of a training; ``network`` tells the sizes."""
    size = min(network.theta.size, _LARGEST_RELEASE)
    moved = partial(furthest, mechanism, network)
    if isinstance(claim, GaussianSteps):
        return GaussianPart("gradient sums", claim, mechanism.bound, size, mechanism.noisy, moved)
    return LaplacePart("gradient sums", claim, mechanism.bound, size, mechanism.noisy, moved)


def furthest(mechanism: Sum, network: Network) -> float:
    """The largest distance of two neighbours' exact sums, over hostile rows and networks up to overflow."""
    rng = np.random.default_rng(0)
    width, classes = network.sizes[0], network.sizes[-1]
    rows = np.vstack([np.zeros(width), np.ones(width), rng.random(width), np.eye(width)[0], rng.random(width)])
    inputs = np.repeat(rows, 2, axis=0)
    labels = np.tile([0, classes - 1], len(rows))
    shape = np.clip(rng.standard_normal(network.theta.size), -1.0, 1.0)
    thetas = [network.theta, *(shape * size for size in (1.0, 1e3, 1e100, 1e154, 1e200, 1e308))]
    worst = 0.0
    for theta in thetas:
        hostile = Network(network.sizes, theta)
        pairs = [np.array([r, len(inputs) - 1]) for r in range(len(inputs) - 1)]  # a canary beside a row that stays
        try:
            sums = np.array([mechanism.exact(hostile, inputs, labels, pair) for pair in pairs], np.float64)
        except InputError:  # a sum that is not finite
            return math.inf
        for one in sums:
            apart = np.abs(sums - one)
            if not isinstance(mechanism, ClippedSum):
                worst = max(worst, float(apart.max()))
            else:
                worst = max(worst, float(np.linalg.norm(apart, mechanism.norm, axis=1).max()))
    return worst


def lowest_rate(hits: int, trials: int, miss: float) -> float:
    """Lower Clopper and Pearson bound of a probability."""
    return 0.0 if hits == 0 else float(beta.ppf(miss, hits, trials - hits + 1))


def highest_rate(hits: int, trials: int, miss: float) -> float:
    """Upper Clopper and Pearson bound of a probability."""
    return 1.0 if hits == trials else float(beta.ppf(1.0 - miss, hits + 1, trials - hits))


def least_loss(hits: int, alarms: int, trials: int, miss: float) -> float:
    """The least ε that explains an event counted ``hits`` times in one world and ``alarms`` times in the other.

    >>> round(least_loss(1000, 368, 2000, 0.01), 2)  # ln(1000 / 368) = 1.0, less what chance may have done
    0.82
    """
    low = lowest_rate(hits, trials, miss / 2.0)
    return math.log(low / highest_rate(alarms, trials, miss / 2.0)) if low > 0.0 else -math.inf


def least_shift(correct: int, trials: int, miss: float) -> float:
    """The least μ that explains so many correct guesses between two equally likely worlds: ``2 Φ⁻¹(accuracy)``.

    >>> round(least_shift(1383, 2000, 0.01), 2)  # Φ(1/2) = 0.691
    0.86
    """
    return float(2.0 * ndtri(lowest_rate(correct, trials, miss)))
