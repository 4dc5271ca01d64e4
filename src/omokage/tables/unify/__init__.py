"""What a group becomes in each column of a table, in the column's own terms.

``UNIFIERS`` says which names fit which kinds of column.
"""

from __future__ import annotations

from .columns import DEFAULT_UNIFIER, UNIFIERS, Classes, check_unifier, common_prefix, unify_column

__all__ = [
    "DEFAULT_UNIFIER",
    "UNIFIERS",
    "Classes",
    "check_unifier",
    "common_prefix",
    "unify_column",
]
