"""Running a map inside a release: a fresh copy with its seed set, finite output, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..errors import MapError


def describe(part: Any) -> str:
    """A grouper or map in words: its class and the parameters that differ from the defaults."""
    if part is None:
        return "Identity()"
    if isinstance(part, Pipeline):
        return " + ".join(describe(step) for _, step in part.steps)
    return " ".join(repr(part).split())


def seeded(part: Any, seed: int) -> Any:
    """A fresh copy whose unset seeds are set."""
    copy = clone(part)
    unset = [name for name, value in copy.get_params().items() if name.split("__")[-1] == "random_state" and value is None]
    return copy.set_params(**dict.fromkeys(unset, seed % 2**32))


def finite(z: Any, part: Any) -> NDArray[Any]:
    out = np.asarray(z)
    if not np.isfinite(out).all():
        raise MapError(f"the map {describe(part)} gave NaN or infinity")
    return out


def way_back(synthesis: Any, z: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    back = finite(synthesis.inverse_transform(z), synthesis)
    if back.shape[1] != x.shape[1]:
        raise MapError(f"the map {describe(synthesis)} came back with {back.shape[1]} of {x.shape[1]} columns")
    return back
