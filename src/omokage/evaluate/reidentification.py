"""Re-identification: the attacker holds all originals and the whole release, and links them (DR paper, section 3.2.1).

Within equal released rows the choice is arbitrary, so its expectation is counted: a right class of size c is worth 1/c.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..grouping.matrix import Labels
from ..release import Release
from .linked import Linked, link
from .transport import distinct_rows, solve_transport

Attack = Literal["assignment", "nearest"]


@dataclass(frozen=True)
class Reidentification:
    """Share of originals that an attack links to their own released row.

    rate : expected share. interval : Wilson interval of what one attacker would count. chance : without looking. bound : 1/k
    where k is promised. exact, gap : whether the assignment is proved optimal, and how far its cost may be from the least,
    as a share of it. rows : originals attacked; ``sampled`` if not all.
    """

    rate: float
    interval: tuple[float, float]
    chance: float
    bound: float | None
    exact: bool
    gap: float
    attack: Attack
    rows: int
    sampled: bool
    seconds: float


def reidentify(
    original: Any,
    release: Release | Linked,
    *,
    attack: Attack = "assignment",
    standardize: bool = False,
    sample: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
) -> Reidentification:
    """Attack a release.

    Parameters
    ----------
    original : the data the release was made from; ignored for a :class:`Linked`
    attack : {"assignment", "nearest"}
        All records at once at least total squared distance, or each record to its nearest.
    standardize : bool
        Measure distances in units of the originals' standard deviations. Where columns have different units, this is the
        stronger attack: else the largest unit decides alone.
    sample : int or None
        Attack only about so many rows, whole classes of equal released rows at a time. With fewer others to be mistaken for,
        the rate comes out higher than it is for all.
    memory, max_seconds : limits of the assignment; past the time limit it is reported as not exact, with its gap
    """
    begun = time.perf_counter()
    both = link(original, release)
    if attack not in ("assignment", "nearest"):
        raise InputError(f"the attack is assignment or nearest, not {attack!r}")
    unit = both.x.std(axis=0) if standardize else np.ones(both.x.shape[1])
    unit = np.where(unit > 0, unit, 1.0)
    centres, which, capacity = distinct_rows(both.y)
    centres = centres / unit
    own = which[both.row_of]  # the class each original is in
    rows = np.arange(len(own))
    if sample is not None and sample < len(own):
        rows, centres, own, capacity = _sampled(own, centres, capacity, sample, random_state)
    x = both.x[rows] / unit
    exact, gap = True, 0.0
    if attack == "assignment":
        solved = solve_transport(x, centres, capacity, memory=memory, max_seconds=max_seconds)
        found, exact, gap = solved.column, solved.exact, solved.gap / max(solved.cost, 1e-300)
    else:
        found = nearest_rows(x, centres)
    rate = float((found == own).astype(float) @ (1.0 / capacity[own])) / len(rows)
    result = Reidentification(
        rate,
        wilson(rate * len(rows), len(rows), confidence),
        1.0 / len(rows),
        None if both.k is None else 1.0 / both.k,
        exact,
        gap,
        attack,
        len(rows),
        len(rows) < len(both.row_of),
        0.0,
    )
    return replace(result, seconds=time.perf_counter() - begun)


def _sampled(
    own: Labels, centres: NDArray[Any], capacity: Labels, sample: int, seed: int
) -> tuple[Labels, NDArray[Any], Labels, Labels]:
    """Whole classes, drawn at random, with about ``sample`` rows."""
    order = np.random.default_rng(seed).permutation(len(centres))
    take = order[: int(np.searchsorted(np.cumsum(capacity[order]), sample)) + 1]
    number = np.full(len(centres), -1)
    number[take] = np.arange(len(take))
    rows = np.flatnonzero(number[own] >= 0)
    return rows, centres[take], number[own[rows]], capacity[take]


def nearest_rows(x: NDArray[Any], centres: NDArray[Any], block: int = 2048) -> Labels:
    """The nearest centre of each row; the first of equally near ones."""
    shift = centres.mean(axis=0)
    a, b = (x - shift).astype(np.float32), (centres - shift).astype(np.float32)
    length = (b * b).sum(axis=1) / 2
    nearest = [(length - a[i : i + block] @ b.T).argmin(axis=1) for i in range(0, len(a), block)]
    return np.concatenate(nearest).astype(np.int64)


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
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))
