"""A map of numbers as the parts that a certificate records: a chain of steps, and the map built from them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from ...base.parts import AnyPart, Part, part_of, rebuild
from ...base.registry import Registry
from . import MAPS
from .elementwise import Identity


def parts_of(mapping: Any, known: Registry = MAPS) -> tuple[Part, ...]:
    """The steps of a map; the identity has none.

    Examples
    --------
    >>> from omokage.method.maps import parse_map
    >>> parts_of(parse_map("log+pca:50"))
    (Part(name='log', options={}), Part(name='pca', options={'n_components': 50}))
    >>> parts_of(None)
    ()
    """
    if mapping is None or mapping == "passthrough" or type(mapping) is Identity:
        return ()
    if isinstance(mapping, Pipeline):
        return tuple(part for _, step in mapping.steps for part in parts_of(step, known))
    return (part_of(mapping, known),)


def spelled(parts: Sequence[AnyPart]) -> str:
    """The parts as :func:`~omokage.method.maps.parse_map` reads them, less the options it does not know.

    Examples
    --------
    >>> spelled([Part("log"), Part("pca", {"n_components": 50})])
    'log+pca:50'
    """
    counts = [part.options.get("n_components") for part in parts]
    words = [part.name + ("" if count is None else f":{count}") for part, count in zip(parts, counts, strict=True)]
    return "+".join(words) or "none"


def rebuild_map(parts: Sequence[AnyPart]) -> Any:
    """The map that the parts describe, not fitted yet.

    Raises
    ------
    MapError
        If a part is a class of the user's own, or has options that its map does not take.

    Examples
    --------
    >>> rebuild_map([Part("pca", {"n_components": 50})])
    PCA(n_components=50)
    >>> rebuild_map([Part("theirs:Encoder")])
    Traceback (most recent call last):
        ...
    omokage.errors.MapError: the map 'theirs:Encoder' is not built in, so a certificate is not enough to rebuild it: ...
    """
    steps = [(part.name, rebuild(part, MAPS)) for part in parts]
    if len(steps) < 2:
        return steps[0][1] if steps else Identity()
    return Pipeline([(f"{number}-{name}", step) for number, (name, step) in enumerate(steps)])
