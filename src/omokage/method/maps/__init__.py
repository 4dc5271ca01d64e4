"""Maps: spaces where distance and average make sense.

A map has ``fit``, ``transform`` and, where there is a way back, ``inverse_transform``; any scikit-learn transformer is one.
``MAPS`` lists them by the names the command line knows; ``parse_map`` reads ``pca:50`` or a chain like ``log+pca:50``.
The classes are imported when they are first used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...base.registry import Entry, Registry
from ...errors import MapError

if TYPE_CHECKING:
    from .autoencoder import Autoencoder
    from .elementwise import Identity, Log, Standardize
    from .factorization import NMF, PCA
    from .lpp import LPP

_COMPONENTS: dict[str, Any] = {"argument": "n_components", "required": True}

MAPS = Registry(
    "map",
    Entry("none", "omokage.method.maps.elementwise:Identity", "The numbers as they are."),
    Entry("std", "omokage.method.maps.elementwise:Standardize", "Every column in units of its standard deviation."),
    Entry("log", "omokage.method.maps.elementwise:Log", "Logarithms, for counts and amounts."),
    Entry("pca", "omokage.method.maps.factorization:PCA", "N principal components.", **_COMPONENTS),
    Entry("nmf", "omokage.method.maps.factorization:NMF", "N non-negative factors.", **_COMPONENTS),
    Entry("lpp", "omokage.method.maps.lpp:LPP", "N projections that keep neighbours together.", **_COMPONENTS),
    Entry("ae", "omokage.method.maps.autoencoder:Autoencoder", "A network with N numbers in its middle.", **_COMPONENTS),
    methods=("fit", "transform"),
    error=MapError,
)

__all__ = ["LPP", "MAPS", "NMF", "PCA", "Autoencoder", "Identity", "Log", "Standardize", "parse_map", "steps_of"]

__getattr__ = MAPS.public(__name__)


def parse_map(text: str) -> Any:
    """A map from its name, several joined by ``+``; ``package.module:Class`` is a class of your own.

    Examples
    --------
    >>> parse_map("pca:50")
    PCA(n_components=50)
    >>> [name for name, _ in parse_map("log+pca:30").steps]
    ['log', 'pca']
    >>> parse_map("std+sklearn.preprocessing:MinMaxScaler:clip=True").steps[1]
    ('MinMaxScaler', MinMaxScaler(clip=True))
    """
    made = [(_step_name(each), MAPS.make(each)) for each in steps_of(text)]
    if len(made) == 1:
        return made[0][1]
    from sklearn.pipeline import Pipeline

    names = [name for name, _ in made]
    return Pipeline([(name if names.count(name) == 1 else f"{name}-{i}", step) for i, (name, step) in enumerate(made, 1)])


def steps_of(text: str) -> list[str]:
    """The maps that a chain joins.

    Examples
    --------
    >>> steps_of("log+mine:Scale:1e+3+pca:50")
    ['log', 'mine:Scale:1e+3', 'pca:50']
    """
    return [each.strip() for each in re.split(r"\+(?!\d)", text)]


def _step_name(text: str) -> str:
    """What a chain calls a step: the map's name, or the name of the user's own class."""
    words = text.split(":")
    return (words[1] if MAPS.is_own(text) else words[0]).replace("__", "_")
