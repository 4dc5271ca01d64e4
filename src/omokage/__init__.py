"""Omokage: the likeness stays, the person does not.

Anonymizes wide tables and face photos by one idea: map the data into a space where distance and average make sense, make
groups of at least k people there, unify each group, map back. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "Anonymizer": "method.anonymizer",
    "Cells": "method.grouping",
    "Certificate": "release.certificate",
    "LDiversity": "release.rules",
    "Laplace": "method.noise",
    "MDAV": "method.grouping",
    "Mondrian": "method.grouping",
    "Release": "release.release",
    "Roles": "tables",
    "TCloseness": "release.rules",
    "read_table": "tables",
    "verify": "release.verify",
}

__all__ = [
    "MDAV",
    "Anonymizer",
    "Cells",
    "Certificate",
    "LDiversity",
    "Laplace",
    "Mondrian",
    "Release",
    "Roles",
    "TCloseness",
    "__version__",
    "read_table",
    "verify",
]

if TYPE_CHECKING:
    from .method.anonymizer import Anonymizer
    from .method.grouping import MDAV, Cells, Mondrian
    from .method.noise import Laplace
    from .release.certificate import Certificate
    from .release.release import Release
    from .release.rules import LDiversity, TCloseness
    from .release.verify import verify
    from .tables import Roles, read_table


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module 'omokage' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
