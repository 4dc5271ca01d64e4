"""A measured share with its confidence interval, beside what an attacker reaches without the release."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True)
class Risk:
    """A rate with its interval, beside the baseline: what the attacker reaches without the release, or by chance."""

    rate: float
    interval: tuple[float, float]
    baseline: float

    @staticmethod
    def counted(hits: float, n: int, baseline: float, confidence: float = 0.95) -> Risk:
        """The share of ``hits`` in ``n``, with Wilson's interval."""
        return Risk(float(hits / n), wilson(hits, n, confidence), baseline)

    @property
    def gained(self) -> float:
        """What the release adds to the attacker's guess."""
        return self.rate - self.baseline


def wilson(hits: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share.

    Examples
    --------
    >>> [round(v, 3) for v in wilson(10, 100)]
    [0.055, 0.174]
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))
