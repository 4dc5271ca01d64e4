"""A map as structure: the names and options that a certificate records, and the map built from them again.

What a reader of a certificate knows of a map is exactly this, so whoever attacks a release with it rebuilds the map here. Seeds
are left out, because a release does not publish them, and so is the number of threads, which changes nothing.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sklearn.pipeline import Pipeline

from ...errors import MapError
from . import MAPS
from .elementwise import Identity

Scalar = bool | int | float | str | None
UNRECORDED = ("random_state", "n_jobs")


@dataclass(frozen=True)
class Part:
    """One step of a map, or a grouper: its name and the options that differ from the defaults."""

    name: str
    options: dict[str, Scalar] = field(default_factory=dict)

    __pydantic_config__ = {"extra": "forbid", "strict": True, "allow_inf_nan": False}  # noqa: RUF012 - read by the certificate

    def __str__(self) -> str:
        told = ", ".join(f"{option}={value}" for option, value in self.options.items())
        return f"{self.name} ({told})" if told else self.name


class AnyPart(Protocol):
    """What a part looks like, whoever read it."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, Scalar]: ...


def parts_of(mapping: Any) -> tuple[Part, ...]:
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
        return tuple(part for _, step in mapping.steps for part in parts_of(step))
    return (part_of(mapping, MAPS),)


def part_of(thing: Any, known: Mapping[str, type]) -> Part:
    """One step: under its name in ``known`` if it is listed there, else under ``module:Class``."""
    kind = type(thing)
    name = next((name for name, listed in known.items() if listed is kind), f"{kind.__module__}:{kind.__qualname__}")
    chosen = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}
    default = _defaults(kind)
    options = {option: _scalar(value) for option, value in chosen.items() if option not in UNRECORDED}
    return Part(name, {option: value for option, value in options.items() if value != _scalar(default.get(option, ...))})


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
    steps = [(part.name, rebuild(part, MAPS, "map")) for part in parts]
    if len(steps) < 2:
        return steps[0][1] if steps else Identity()
    return Pipeline([(f"{number}-{name}", step) for number, (name, step) in enumerate(steps)])


def rebuild(part: AnyPart, known: Mapping[str, type], what: str) -> Any:
    """One part, by the class that ``known`` lists under its name."""
    if part.name not in known:
        raise MapError(
            f"the {what} {part.name!r} is not built in, so a certificate is not enough to rebuild it: evaluate the release in "
            f"Python, where the {what} is at hand"
        )
    made, default = known[part.name], _defaults(known[part.name])
    required = [name for name, value in default.items() if value is ...]
    if not set(required) <= set(part.options) <= set(default):
        takes = ", ".join(default) or "no options"
        raise MapError(f"the {what} {part.name} takes {takes}, which does not fit the options given: {', '.join(part.options)}")
    return made(**{name: _restored(value, default[name], f"{part.name}: {name}") for name, value in part.options.items()})


def _defaults(kind: type) -> dict[str, Any]:
    """Every option of a class and its default; ``...`` where there is none."""
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    found = inspect.signature(kind).parameters.values()
    named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: ... if p.default is p.empty else p.default for p in named}


def _scalar(value: Any) -> Any:
    """A value that JSON can hold; several joined by commas, and of anything else only its type."""
    if value is ... or value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # NumPy's own scalars
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    if isinstance(value, tuple | list) and all(isinstance(each, int | float | str) for each in value):
        return ",".join(map(str, value))
    return type(value).__name__


def _restored(value: Scalar, default: Any, what: str) -> Any:
    """The option's value, of the type its default has; one without a default is a whole number."""
    if isinstance(default, tuple) and isinstance(value, str):
        numbers = value.split(",") if value else []
        fits = all(each.isdecimal() for each in numbers)
        restored: Any = tuple(int(each) for each in numbers) if fits else ()
    else:
        wanted = int if default is ... else (int, float) if isinstance(default, float) or default is None else type(default)
        fits = isinstance(value, wanted) and isinstance(value, bool) == isinstance(default, bool)
        restored = value
    if not fits:
        raise MapError(f"the option {what} has a value of the wrong type, {type(value).__name__}: the certificate is damaged")
    return restored
