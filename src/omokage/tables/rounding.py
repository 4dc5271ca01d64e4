"""Released numbers to a few significant digits."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

_MOST = 17  # digits that a float64 has at most


def check_digits(digits: Any) -> None:
    """Refuse anything but None and a whole number from 1."""
    if digits is not None and (not isinstance(digits, Integral) or digits < 1):
        raise InputError(f"digits must be None or a whole number from 1, but it is {digits!r}")


def rounded(values: NDArray[Any], digits: int | None) -> NDArray[Any]:
    """The values to so many significant digits; None keeps all.

    Examples
    --------
    >>> rounded(np.array([123456.0, -0.00123456, 0.0, 9.999, -0.0]), 3)
    array([ 1.23e+05, -1.23e-03,  0.00e+00,  1.00e+01,  0.00e+00])
    """
    if digits is None:
        return values + 0.0  # no negative zero, which would look like another value
    size = np.abs(values)
    usual = (size > 1e-290) & (size < 1e290)
    place = np.floor(np.log10(np.where(usual, size, 1.0)))
    unit = 10.0 ** (min(digits, _MOST) - 1 - place)
    out: NDArray[Any] = np.round(values.astype(np.float64) * unit) / unit + 0.0
    for at in zip(*np.nonzero(~usual & (size > 0)), strict=True):  # powers of ten near the ends of floats overflow
        out[at] = float(f"{values[at]:.{min(digits, _MOST) - 1}e}")
    return out.astype(values.dtype)
