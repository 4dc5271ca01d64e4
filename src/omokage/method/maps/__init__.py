"""Maps: spaces where distance and average make sense.

A map has ``fit``, ``transform`` and, where there is a way back, ``inverse_transform``; any scikit-learn transformer is one.
``MAPS`` lists them by the names the command line knows; ``parse_map`` reads ``pca:50`` or a chain like ``log+pca:50``.
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from ...base.registry import Entry, Registry
from ...errors import MapError
from .autoencoder import Autoencoder
from .elementwise import Identity, Log, Standardize
from .factorization import NMF, PCA
from .lpp import LPP

MAPS = Registry(
    "map",
    Entry("none", "omokage.method.maps.elementwise:Identity", "the data as they are"),
    Entry("std", "omokage.method.maps.elementwise:Standardize", "columns in standard units"),
    Entry("log", "omokage.method.maps.elementwise:Log", "logarithms, for counts and amounts"),
    Entry("pca", "omokage.method.maps.factorization:PCA", "principal components", "n_components", True),
    Entry("nmf", "omokage.method.maps.factorization:NMF", "non-negative factors", "n_components", True),
    Entry("lpp", "omokage.method.maps.lpp:LPP", "locality preserving projections", "n_components", True),
    Entry("ae", "omokage.method.maps.autoencoder:Autoencoder", "an autoencoder", "n_components", True),
    error=MapError,
)
WITH_COMPONENTS = {"pca", "nmf", "lpp", "ae"}

__all__ = ["LPP", "MAPS", "NMF", "PCA", "Autoencoder", "Identity", "Log", "Standardize", "parse_map"]


def parse_map(text: str) -> Any:
    """A map from its name, ``NAME[:COMPONENTS]``, several joined by ``+``.

    Examples
    --------
    >>> parse_map("pca:50")
    PCA(n_components=50)
    >>> [name for name, _ in parse_map("log+pca:30").steps]
    ['log', 'pca']
    """
    steps = [_one(part.strip()) for part in text.split("+")]
    return steps[0][1] if len(steps) == 1 else Pipeline(steps)


def _one(text: str) -> tuple[str, Any]:
    name, colon, count = text.partition(":")
    if name not in MAPS:
        raise MapError(f"there is no map {name!r}: the maps are {', '.join(MAPS)}, joined by + if need be")
    if name not in WITH_COMPONENTS:
        if colon:
            raise MapError(f"the map {name} takes no number of components, but {text!r} gives one")
        return name, MAPS[name]()
    if not count.isdigit():
        raise MapError(f"the map {name} needs a number of components, for example {name}:50, but it is {text!r}")
    return name, MAPS[name](int(count))
