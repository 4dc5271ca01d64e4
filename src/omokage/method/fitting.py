"""Running the parts of a release: a fresh copy of each with its seed set, finite output, usable labels, and the way back.

A map needs ``fit`` and ``transform``, a grouper ``k`` and ``fit_predict``; none of them needs to know scikit-learn.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..base.matrix import Labels
from ..errors import InputError, MapError, NotEnoughPeople


def describe(part: Any) -> str:
    """A grouper or map in words: its class and the parameters that differ from the defaults."""
    if part is None:
        return "Identity()"
    if isinstance(part, Pipeline):
        return " + ".join(describe(step) for _, step in part.steps)
    own: Any = type(part).__repr__
    if own is object.__repr__:  # which would tell an address in memory
        return f"{type(part).__name__}()"
    return " ".join(repr(part).split())


def seeded(part: Any, seed: int) -> Any:
    """A fresh copy whose unset seeds are set, so that the part that was given is left as it is.

    scikit-learn's parts are cloned, all others copied deeply. What cannot be copied (it holds an open file, say) is used itself.
    A seed is set where there is a ``random_state`` that is None.
    """
    fresh = _copied(part)
    parameters = fresh.get_params() if hasattr(fresh, "get_params") and hasattr(fresh, "set_params") else {}
    unset = [name for name, value in parameters.items() if name.split("__")[-1] == "random_state" and value is None]
    if unset:
        fresh.set_params(**dict.fromkeys(unset, seed % 2**32))
    elif not parameters and getattr(fresh, "random_state", seed) is None:
        fresh.random_state = seed % 2**32
    return fresh


def _copied(part: Any) -> Any:
    if hasattr(part, "get_params"):
        try:
            return clone(part)
        except (TypeError, RuntimeError):  # its get_params is not scikit-learn's, or its constructor changes what it is given
            pass
    try:
        return copy.deepcopy(part)
    except (TypeError, ValueError, AttributeError, NotImplementedError, RecursionError, copy.Error):
        return part


def fitted_vectors(part: Any, x: NDArray[Any]) -> NDArray[Any]:
    """Fit a map to the data, and give what it makes of them: finite numbers."""
    if hasattr(part, "fit_transform"):
        return finite(part.fit_transform(x), part)
    part.fit(x)  # whatever it returns
    return finite(part.transform(x), part)


def labels_of(grouper: Any, z: NDArray[Any]) -> Labels:
    """Group rows: labels 0, 1, …, with at least k rows under each, whatever numbers the grouper itself uses.

    Raises
    ------
    NotEnoughPeople
        If a group has fewer than k rows; rows that a clusterer calls noise (−1) are such a group if they are few.
    """
    labels = np.asarray(grouper.fit_predict(z))
    who = describe(grouper)
    if labels.shape != (len(z),) or labels.dtype.kind not in "iu":
        gave = f"{labels.dtype} of shape {labels.shape}"
        raise InputError(f"the grouper {who} must give a whole number for each of {len(z)} rows: it gave {gave}")
    names, numbered, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) and sizes.min() < grouper.k:
        raise NotEnoughPeople(f"the grouper {who} made a group of {sizes.min()} rows, fewer than k = {grouper.k}: take another")
    return numbered.astype(np.int64)


def finite(z: Any, part: Any) -> NDArray[Any]:
    """What a map gave, as a matrix of finite numbers."""
    out = np.asarray(z)
    if out.ndim != 2 or out.dtype.kind not in "fiub":
        raise MapError(f"the map {describe(part)} must give rows of numbers: it gave {out.dtype} of shape {out.shape}")
    if not np.isfinite(out).all():
        raise MapError(f"the map {describe(part)} gave NaN or infinity: take another, or scale the data first")
    return out


def way_back(synthesis: Any, z: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    back = finite(synthesis.inverse_transform(z), synthesis)
    if back.shape[1] != x.shape[1]:
        raise MapError(f"the map {describe(synthesis)} came back with {back.shape[1]} of {x.shape[1]} columns")
    return back
