"""Weights that an attacker learns from a few pairs of original and released row that are known from elsewhere.

A released row is its original and a residual. Where residuals are large, a difference says little: columns, or directions, are
weighted by the inverse of the residuals' variance, as in the likelihood of a normal residual. Few pairs say little about many
columns, so variances are drawn to their mean, and covariances are shrunk by Ledoit and Wolf's rule. Which way of weighting is
used is decided on the known pairs themselves, each half tried with weights learned from the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf

from ..base.matrix import Labels

Floats = NDArray[np.float64]
MOST_COVARIED = 1000  # columns up to which covariances are learned


def learned_weights(x: Floats, own: Labels, classes: Floats) -> Floats:
    """A matrix (d, d) that makes squared distance tell the known pairs ``x[i]``, ``classes[own[i]]`` best from others."""
    ways = (by_column, by_direction, by_both) if x.shape[1] <= MOST_COVARIED else (by_column,)
    residual = classes[own] - x
    halves = np.arange(len(x)) % 2
    loss = []
    for way in ways:
        tried = [_log_rank(x[halves == h], own[halves == h], classes, way(residual[halves != h])) for h in (0, 1)]
        loss.append(float(np.concatenate(tried).mean()))
    return ways[int(np.argmin(loss))](residual)


def by_column(residual: Floats) -> Floats:
    """One weight per column: the inverse of its residuals' deviation, as if five pairs of average variance were known besides.

    Examples
    --------
    >>> import numpy as np
    >>> by_column(np.array([[2.0, 0.1]] * 1000)).round(1)
    array([[0.5, 0. ],
           [0. , 7.1]])
    """
    variance = (residual**2).mean(axis=0)
    prior = 5 / (len(residual) + 5)
    variance = (1 - prior) * variance + prior * variance.mean()
    return np.diag(1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))


def by_direction(residual: Floats) -> Floats:
    """Directions in which the residuals have variance one."""
    covariance, _ = ledoit_wolf(residual, assume_centered=True)
    values, vectors = np.linalg.eigh(covariance)
    most = float(values.max())
    return vectors / np.sqrt(np.maximum(values, 1e-9 * most if most > 0 else 1.0))


def by_both(residual: Floats) -> Floats:
    """Columns first, then directions."""
    columns = by_column(residual)
    return columns @ by_direction(residual @ columns)


Way = Callable[[Floats], Floats]


def _log_rank(x: Floats, own: Labels, classes: Floats, weights: Floats) -> Floats:
    """The logarithm of the place of each row's own class among all, nearest first."""
    a, b = x @ weights, classes @ weights
    distance = (b * b).sum(axis=1) - 2 * a @ b.T  # (rows, classes), less what is common to a row
    mine = distance[np.arange(len(a)), own]
    return np.log1p((distance < mine[:, None]).sum(axis=1))
