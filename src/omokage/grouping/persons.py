"""Persons: k counts them, not rows, where a column says whose row it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import InputError
from .matrix import Labels


def person_codes(persons: Any) -> Labels | None:
    """Persons as numbers 0, 1, …"""
    if persons is None:
        return None
    codes: Labels = np.unique(np.asarray(persons), return_inverse=True)[1].ravel().astype(np.int64)
    return codes


def whose(column: pl.Series) -> NDArray[Any]:
    """The persons a column names; a row of nobody is refused."""
    if column.null_count():
        raise InputError(f"column {column.name!r} says whose row it is, but {column.null_count()} rows name nobody")
    return column.cast(pl.String).to_numpy().astype(str)


def person_weights(persons: Labels | None) -> NDArray[np.float64] | None:
    """A person's rows count as one together."""
    return None if persons is None else 1.0 / np.bincount(persons)[persons]
