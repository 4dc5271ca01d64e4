"""How far released pictures are from the originals as two clouds of features (MIKU-2020, evaluation; Heusel et al. 2017).

FID = |μ_A − μ_B|² + tr(Σ_A + Σ_B − 2 (Σ_A Σ_B)^½) on 2048 features of Inception. No matrix is rooted: with Σ = FᵀF the trace of
(Σ_A Σ_B)^½ is the sum of the singular values of F_A F_Bᵀ. F is the centred data where there are fewer pictures than features, and
their triangular factor where there are more; both are exact, also for covariances without full rank.

A released face that stands for m people is counted m times, by its weight: this is the paper's FID, of the release as a whole. So
few distinct faces cannot come near the originals, however good they are; :func:`fid_floor` says how near they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svdvals

from ...errors import InputError

Features = NDArray[np.floating[Any]]  # (n, d)
_BLOCK = 4096


@dataclass(frozen=True)
class Fid:
    """Fréchet distance of two sets of pictures.

    mean_part, covariance_part : its two summands. n_a, n_b : pictures, counted as often as they were released. distinct_a,
    distinct_b : rows given. dimensions : features of a picture.
    """

    mean_part: float
    covariance_part: float
    n_a: float
    n_b: float
    distinct_a: int
    distinct_b: int
    dimensions: int

    @property
    def value(self) -> float:
        return self.mean_part + self.covariance_part

    @property
    def note(self) -> str | None:
        """What to know before comparing this number; None if there are pictures enough."""
        fewest = min(self.distinct_a, self.distinct_b)
        if fewest <= self.dimensions:
            return (
                f"small sample: {fewest:,} distinct pictures for {self.dimensions:,} features leave the covariance without full "
                "rank, and the FID comes out too high; compare it with the floor for that number, or use KID"
            )
        if fewest < 10_000:
            return f"small sample: with {fewest:,} distinct pictures the FID is comparable only with FIDs of as many"
        return None


def fid(a: Features, b: Features, weights_a: Any = None, weights_b: Any = None) -> Fid:
    """FID of features ``a`` before and ``b`` after; a weight says how many times a row counts (None: once)."""
    return _between(_moments(a, weights_a), _moments(b, weights_b))


@dataclass(frozen=True)
class FidFloor:
    """Mean FID that so many distinct originals, drawn at random, have to all; how far single draws lie from it."""

    value: float
    standard_deviation: float
    distinct: int
    repeats: int


def fid_floor(features: Features, distinct: int, seed: int = 0, repeats: int = 3) -> FidFloor:
    """The floor for a release of ``distinct`` faces: real ones, drawn from the originals, each released equally often."""
    everyone = _moments(features, None)
    n = len(features)
    if not 1 <= distinct <= n or repeats < 1:
        raise InputError(f"a floor needs 1 to {n} distinct pictures and a repeat, not {distinct} and {repeats}")
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(repeats):
        drawn = np.sort(rng.choice(n, distinct, replace=False))
        values.append(_between(everyone, _moments(features[drawn], np.full(distinct, n / distinct))).value)
    spread = float(np.std(values, ddof=1)) if repeats > 1 else float("nan")
    return FidFloor(float(np.mean(values)), spread, distinct, repeats)


@dataclass(frozen=True)
class _Moments:
    mean: NDArray[np.float64]  # (d,)
    factor: NDArray[np.float64]  # F (min(n, d), d); the covariance is FᵀF
    variance: float  # its trace
    n: float
    distinct: int


def _moments(features: Features, weights: Any) -> _Moments:
    x = _features(features)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    if w.shape != (len(x),) or not (np.isfinite(w).all() and (w > 0).all() and w.sum() > 1):
        raise InputError(f"weights are {len(x)} positive numbers, one for each picture, and more than one in all")
    blocks = [slice(at, at + _BLOCK) for at in range(0, len(x), _BLOCK)]
    mean = sum((w[rows] @ x[rows].astype(np.float64) for rows in blocks), np.zeros(x.shape[1])) / w.sum()
    scale = np.sqrt(w / (w.sum() - 1))  # a weight counts repetitions, so this is the covariance of the repeated rows
    factor = np.empty((0, x.shape[1]))
    for rows in blocks:
        factor = np.concatenate([factor, (x[rows] - mean) * scale[rows, None]])
        if len(factor) > factor.shape[1]:
            factor = np.asarray(np.linalg.qr(factor, mode="r"))
    return _Moments(mean, factor, float(np.square(factor).sum()), float(w.sum()), len(x))


def _between(a: _Moments, b: _Moments) -> Fid:
    if len(a.mean) != len(b.mean):
        raise InputError(f"both sets need the same features: {len(a.mean)} and {len(b.mean)} columns were given")
    common = float(svdvals(a.factor @ b.factor.T).sum())
    covariance = max(a.variance + b.variance - 2 * common, 0.0)  # rounding may leave −1e-12 of equal sets
    mean = float(np.square(a.mean - b.mean).sum())
    return Fid(mean, covariance, a.n, b.n, a.distinct, b.distinct, len(a.mean))


def _features(features: Features) -> Features:
    x = np.asarray(features)
    if x.ndim != 2 or not x.size or not np.issubdtype(x.dtype, np.number) or not np.isfinite(x).all():
        raise InputError(f"features are finite numbers in a matrix, a row for each picture; the shape given is {x.shape}")
    return x


@dataclass(frozen=True)
class Kid:
    """Kernel distance (Bińkowski et al. 2018): unbiased, so it may be below 0, and comparable between sample sizes.

    standard_error : of the value as an estimate for the populations. size : pictures in each of the subsets it was averaged over.
    """

    value: float
    standard_error: float
    subsets: int
    size: int


def kid(a: Features, b: Features, subsets: int = 50, size: int = 500, seed: int = 0) -> Kid:
    """Squared MMD under (x·y/d + 1)³, averaged over random subsets of ``size`` pictures, or of half the smaller set.

    Give distinct pictures: a picture beside its own copy makes the estimate too high.
    """
    x, y = _features(a).astype(np.float64), _features(b).astype(np.float64)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"both sets need the same features: {x.shape[1]} and {y.shape[1]} columns were given")
    n = min(len(x), len(y))
    if n < 4 or subsets < 2 or size < 2:
        raise InputError(f"KID needs 4 pictures a set, 2 subsets and 2 pictures a subset, not {n}, {subsets} and {size}")
    size = min(size, n // 2)
    rng = np.random.default_rng(seed)

    def draw(z: Features) -> Features:
        return z[rng.choice(len(z), size, replace=False)]

    values = np.array([squared_mmd(draw(x), draw(y)) for _ in range(subsets)])
    # Subsets of one sample vary less than samples do, by the share not drawn; the whole sample varies size/n as much as a subset.
    spread, drawn = float(values.var(ddof=1)), size / n
    return Kid(float(values.mean()), float(np.sqrt(spread / subsets + spread / (1 - drawn) * drawn)), subsets, size)


def squared_mmd(x: Features, y: Features) -> float:
    """The unbiased squared distance of two samples under the cubic kernel.

    Examples
    --------
    >>> round(squared_mmd(np.array([[0.0], [1.0]]), np.array([[0.0], [2.0]])), 3)  # 1 + 1 − 2 · (1 + 1 + 1 + 27)/4
    -13.0
    """

    def kernel(p: Features, q: Features) -> NDArray[Any]:
        return (p @ q.T / p.shape[1] + 1) ** 3

    def within(p: Features) -> float:
        k = kernel(p, p)
        return float((k.sum() - np.trace(k)) / (len(p) * (len(p) - 1)))

    return within(x) + within(y) - 2 * float(kernel(x, y).mean())
