"""The head of a matrix: a few coordinates, by principal axes of a sample, that hold most of its variance.

Distances within the head are quick to measure. MDAV bounds true distances with them (and stays exact); the cells grouper
only looks for neighbourhoods with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ...base.matrix import Matrix
from ...base.threads import Pool, pieces

SAMPLE = 2048


@dataclass(frozen=True)
class Head:
    """``rows`` (n, q): coordinates along the orthonormal ``axes`` (q, d) from ``origin``; ``rest`` (n,): what is left."""

    rows: NDArray[np.float32]
    rest: NDArray[np.float32]
    length: NDArray[np.float32]
    axes: NDArray[np.float64]
    origin: NDArray[np.float64]


def head_of(x: Matrix, width: int, pool: Pool) -> Head:
    """The head of ``x`` with ``width`` coordinates (fewer if there are fewer columns), in double precision."""
    with threadpool_limits(limits=1, user_api="blas"):  # the last bit must not depend on the number of threads
        axes, origin = _axes(x, width)
        turned = pool.map(lambda part: _turn(x[part[0] : part[1]], axes, origin), pieces(*x.shape))
    rows, rest, length = (np.concatenate([t[i] for t in turned]) for i in range(3))
    return Head(rows, rest, length, axes, origin)


def rough_head(x: Matrix, width: int, pool: Pool) -> NDArray[np.float32]:
    """Only the rows of the head, in single precision: enough to look for neighbourhoods."""
    with threadpool_limits(limits=1, user_api="blas"):
        axes, origin = (a.astype(np.float32) for a in _axes(x, width))
        parts = pool.map(lambda part: (x[part[0] : part[1]].astype(np.float32, copy=False) - origin) @ axes.T, pieces(*x.shape))
    return np.concatenate(parts)


def _axes(x: Matrix, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sample = x[:: max(1, len(x) // SAMPLE)].astype(np.float64)
    origin = sample.mean(axis=0)
    return _principal_axes(sample - origin, min(width, x.shape[1])), origin


def _principal_axes(sample: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    m, d = sample.shape
    if d <= m:
        _, vectors = np.linalg.eigh(sample.T @ sample)
        return np.ascontiguousarray(vectors[:, ::-1][:, :width].T)
    values, vectors = np.linalg.eigh(sample @ sample.T)
    keep = values[::-1][:width] > 1e-12 * max(values[-1], 1e-300)
    axes = sample.T @ vectors[:, ::-1][:, :width][:, keep]
    return np.ascontiguousarray(np.linalg.qr(axes)[0].T)


def _turn(
    x: Matrix, axes: NDArray[np.float64], origin: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    z = x - origin
    head = z @ axes.T
    length = np.einsum("ij,ij->i", z, z)
    rest = np.sqrt(np.maximum(length - np.einsum("ij,ij->i", head, head), 0.0))
    return head.astype(np.float32), rest.astype(np.float32), length.astype(np.float32)
