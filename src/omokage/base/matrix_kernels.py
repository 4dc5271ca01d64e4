"""Compiled kernels that every user of matrices shares."""

from __future__ import annotations

import numba as nb

# Sums may be reassociated (that is what lets them use vector registers); NaN and infinity keep their meaning.
_sum = nb.njit(nogil=True, cache=True, fastmath={"nsz", "contract", "reassoc"})


@_sum
def all_finite(x, begin, end):
    """Whether rows ``begin:end`` of ``x`` hold neither NaN nor infinity."""
    total = x.dtype.type(0)
    zero = x.dtype.type(0)
    for i in range(begin, end):
        for j in range(x.shape[1]):
            total += x[i, j] * zero  # NaN as soon as one value is not finite
    return total == zero
