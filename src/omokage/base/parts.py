"""A part as structure: the name and options of a map or grouper that a certificate records, and the part built from them again.

A reader of the certificate knows exactly this of a map, so an attacker who uses it rebuilds the map here. Seeds are left out,
because a release does not publish them, and so is the number of threads, which changes nothing. A file that was given (a network)
is recorded by its SHA-256.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..errors import MapError
from .registry import Registry

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


def part_of(thing: Any, known: Registry) -> Part:
    """One part: under its name in ``known`` if it is listed there, else under ``module:Class``."""
    kind, name = type(thing), known.name_of(thing)
    default = _defaults(kind)
    chosen = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}  # attributes may be anything, also secrets
    options = {option: _scalar(value) for option, value in chosen.items() if option not in UNRECORDED}
    return Part(name, {option: value for option, value in options.items() if value != _scalar(default.get(option, ...))})


def rebuild(part: AnyPart, known: Registry, **given: Any) -> Any:
    """One part, by the class that ``known`` lists under its name; ``given`` replaces options, such as files by their places."""
    what = known.kind
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
    chosen = {name: value for name, value in part.options.items() if name not in given}
    return made(**{name: _restored(value, default[name], f"{part.name}: {name}") for name, value in chosen.items()}, **given)


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
    if isinstance(value, Path) and value.is_file():
        return digest_of(value)
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


def digest_of(file: Path) -> str:
    """A file's content as a certificate names it: ``sha256:…``."""
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
