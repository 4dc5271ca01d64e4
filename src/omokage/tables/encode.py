"""Mixed columns as a matrix to group in: numbers on one scale, categories where unlike is one apart, gaps filled.

Only grouping sees this matrix. What is released is unified in each column's own terms.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import InputError, TableError
from .table import Table

Scale = Literal["range", "std", "none"]
SCALES: tuple[Scale, ...] = ("range", "std", "none")
MOST = 1e150  # squares of larger numbers overflow
MOST_CATEGORIES = 64  # one column each; rarer values of a richer column share what is left


def check_scale(scale: object) -> None:
    """Refuse a scale that there is not."""
    if scale not in SCALES:
        raise InputError(f"the scale can be {', '.join(SCALES)}, not {scale!r}")


def encode(table: Table, names: list[str], scale: Scale, ordinal: bool) -> NDArray[np.float64]:
    """The columns as an (n, m) matrix.

    Numbers, dates and codes (by rank, so that common prefixes stay together) are divided by their range or standard
    deviation. A category becomes one column of ranks for groupers that cut along axes (``ordinal``), else a column per
    value in which unlike rows are one apart. A missing number is filled with the mean and marked in a column of its own.
    """
    parts: list[NDArray[np.float64]] = []
    for name in names:
        column, kind = table.frame[name], table.kinds[name]
        if kind in ("number", "boolean", "date"):
            parts += _numbers(column, scale)
        elif kind == "code" or ordinal:
            parts.append(_scaled(_ranks(column), "range" if scale == "none" else scale))
        else:
            parts.append(_one_hot(column))
    return np.column_stack(parts)


def as_numbers(table: Table, names: list[str], who: str) -> NDArray[np.float64]:
    """The columns as they are, for a map; text, gaps, NaN and infinity are refused."""
    for name in names:
        column, kind = table.frame[name], table.kinds[name]
        if kind not in ("number", "boolean"):
            raise TableError(
                f"{who} needs numbers, but column {name!r} is a {kind}: leave it out of the quasi-identifiers "
                "given to the map, or use no map"
            )
        if column.null_count():
            raise TableError(
                f"{who} cannot use missing values, but column {name!r} has {column.null_count()}: fill them in, "
                "leave those rows out, or use no map"
            )
        require_finite(column)
    return np.column_stack([table.frame[name].cast(pl.Float64).to_numpy() for name in names])


def require_finite(column: pl.Series) -> None:
    """Refuse NaN, infinity and numbers whose squares are infinite; a missing value is an empty cell."""
    if column.dtype.is_float():
        bad = int((~column.drop_nulls().is_finite()).sum())
        if bad:
            raise TableError(
                f"column {column.name!r} holds NaN or infinity in {bad} rows: leave the cells empty, or those rows out"
            )
        far = int((column.drop_nulls().cast(pl.Float64).abs() > MOST).sum())
        if far:
            raise TableError(
                f"column {column.name!r} holds numbers beyond {MOST:g} in {far} rows: leave those rows out, or scale them"
            )


def plain_numbers(column: pl.Series) -> NDArray[Any]:
    """Numbers, booleans and dates as float64; NaN where a value is missing."""
    if column.dtype in (pl.Date, pl.Datetime):
        column = column.to_physical()
    return column.cast(pl.Float64).to_numpy()


def _numbers(column: pl.Series, scale: Scale) -> list[NDArray[np.float64]]:
    require_finite(column)
    values = plain_numbers(column)
    missing = np.isnan(values)
    if not missing.any():
        return [_scaled(values, scale)]
    known = values[~missing]
    filled = np.where(missing, known.mean() if len(known) else 0.0, values)
    return [_scaled(filled, scale), missing.astype(np.float64)]


def _scaled(values: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    if scale == "none":
        return values
    unit = np.ptp(values) if scale == "range" else values.std()
    centred: NDArray[np.float64] = (values - values.mean()) / (unit if unit > 0 else 1.0)
    return centred


def _ranks(column: pl.Series) -> NDArray[np.float64]:
    """Place of each value among the sorted different ones; a missing value comes first."""
    return column.cast(pl.String).fill_null("").rank("dense").cast(pl.Float64).to_numpy()


def _one_hot(column: pl.Series) -> NDArray[np.float64]:
    text = column.cast(pl.String).fill_null("")
    values, codes, counts = np.unique(text.to_numpy().astype(str), return_inverse=True, return_counts=True)
    if len(values) > MOST_CATEGORIES:
        place = np.full(len(values), MOST_CATEGORIES - 1)
        place[np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]] = np.arange(MOST_CATEGORIES - 1)
        codes = place[codes]
    out: NDArray[np.float64] = np.eye(int(codes.max()) + 1)[codes] * np.sqrt(0.5)
    return out
