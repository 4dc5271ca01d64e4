"""Persons: k counts them, not rows, where a column says whose row it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import InputError
from .matrix import Labels


def person_codes(persons: Any) -> Labels | None:
    """Persons as numbers 0, 1, …; a row of nobody is refused."""
    if persons is None:
        return None
    try:
        people = np.asarray(persons)
        nobody = sum(map(_nobody, persons))
    except (TypeError, ValueError):
        people, nobody = np.zeros(()), 0
    if people.ndim != 1:
        raise InputError("person must be a list or an array that names one person for each row")
    if nobody:
        raise InputError(f"person says whose row it is, but {nobody} rows name nobody: name a person for each row")
    try:
        codes: Labels = np.unique(people, return_inverse=True)[1].ravel().astype(np.int64)
    except TypeError:
        raise InputError("person must name persons by numbers or by text, not by both") from None
    return codes


def _nobody(person: Any) -> bool:
    return person is None or (not isinstance(person, str) and str(person) in ("nan", "NaT", "<NA>"))


def whose(column: pl.Series) -> NDArray[Any]:
    """The persons a column names, as numbers; a row of nobody is refused."""
    if column.null_count():
        raise InputError(f"column {column.name!r} says whose row it is, but {column.null_count()} rows name nobody")
    return column.cast(pl.String).rank("dense").to_numpy()


def person_weights(persons: Labels | None) -> NDArray[np.float64] | None:
    """A person's rows count as one together."""
    return None if persons is None else 1.0 / np.bincount(persons)[persons]
