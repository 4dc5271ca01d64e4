"""What a group becomes: one vector in a space of numbers, or one value per column of a table.

A matrix unifier has ``unify(Z, labels) -> (groups, d)``. Columns of a table are unified by name, each in its own terms;
``UNIFIERS`` says which names fit which kinds of column.
"""

from __future__ import annotations

from .columns import DEFAULT_UNIFIER, UNIFIERS, Classes, check_unifier, common_prefix, unify_column
from .matrix import MATRIX_UNIFIERS, Mean, Median, Spread, Weights

__all__ = [
    "DEFAULT_UNIFIER",
    "MATRIX_UNIFIERS",
    "UNIFIERS",
    "Classes",
    "Mean",
    "Median",
    "Spread",
    "Weights",
    "check_unifier",
    "common_prefix",
    "unify_column",
]
