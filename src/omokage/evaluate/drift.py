"""What averaging takes away: information loss, and how far columns and their correlations drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..release.release import Release
from .linked import Linked, link


@dataclass(frozen=True)
class Drift:
    """loss : SSE/SST of released against original rows. Per column: the shift of its mean in standard deviations, and the
    ratio of its standard deviations after and before. correlation : mean absolute change of correlations between columns."""

    loss: float
    mean_shift: tuple[float, ...]
    deviation_ratio: tuple[float, ...]
    correlation: float


def drift(original: Any, release: Release | Linked) -> Drift:
    """Measure a release against its originals.

    Correlations are taken over columns that vary both before and after.
    """
    both = link(original, release)
    x, y = both.x.astype(np.float64), both.aligned.astype(np.float64)
    total = float(((x - x.mean(axis=0)) ** 2).sum())
    loss = float(((x - y) ** 2).sum()) / total if total > 0 else 0.0
    before, after = x.std(axis=0), y.std(axis=0)
    unit = np.where(before > 0, before, 1.0)
    shift = (y.mean(axis=0) - x.mean(axis=0)) / unit
    ratio = np.where(before > 0, after / unit, 1.0)
    return Drift(loss, tuple(shift.tolist()), tuple(ratio.tolist()), _correlation_change(x, y))


def _correlation_change(x: NDArray[Any], y: NDArray[Any]) -> float:
    varies = (x.std(axis=0) > 1e-12) & (y.std(axis=0) > 1e-12)
    if varies.sum() < 2:
        return 0.0
    change = np.abs(np.corrcoef(x[:, varies].T) - np.corrcoef(y[:, varies].T))
    return float(change[np.triu_indices(len(change), 1)].mean())
