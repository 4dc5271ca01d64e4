"""What all maps share: how they look at their input, and the error for a number of components that does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MapError


def as_floats(data: Any, who: str) -> NDArray[Any]:
    """An (n, d) array of finite float32 or float64."""
    x = np.asarray(data)
    if x.dtype.kind not in "fiub":
        raise MapError(f"{who} needs numbers, but the data are of type {x.dtype}: leave text columns out of the map")
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if x.ndim != 2:
        raise MapError(f"{who} needs a matrix of rows × columns, but the data have shape {x.shape}")
    if not np.isfinite(x).all():
        rows = int((~np.isfinite(x)).any(axis=1).sum())
        raise MapError(f"{who} cannot use NaN or infinity, found in {rows} rows: fill them in or leave those rows out")
    return x


def check_components(count: int, most: int, who: str) -> int:
    """The number of components, if it lies between 1 and ``most``."""
    if not isinstance(count, int | np.integer) or not 1 <= count <= most:
        raise MapError(f"{who} can have 1 to {most} components with these data, but {count} were asked for")
    return int(count)
