"""The table itself: read from a file, from any frame, and matched with what a schema declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from omokage.base.words import counted
from omokage.errors import InputError, TableError
from omokage.tables import read_table

Integers = NDArray[np.int64]


def label_codes(labels: object, classes: Sequence[Any]) -> Integers:
    """Class numbers of labels; a missing or undeclared label is an error.

    >>> label_codes(["no", "yes", "no"], ("no", "yes"))
    array([0, 1, 0])
    """
    values = labels.to_list() if hasattr(labels, "to_list") else np.asarray(labels, dtype=object).ravel().tolist()
    position = {c: k for k, c in enumerate(classes)}
    try:
        codes = np.array([-1 if v is None or v != v else position.get(v, -2) for v in values], np.int64)
    except TypeError:
        raise InputError("the labels are not a list of texts or numbers: give one for each row") from None
    for code, what, fix in ((-1, "is missing", "drop such rows"), (-2, "is not one of the declared classes", "declare it")):
        if (codes == code).any():
            row = int(np.flatnonzero(codes == code)[0])
            raise InputError(f"the label {what} in {counted(int((codes == code).sum()), 'row')}, first in row {row + 1}: {fix}")
    return codes


def as_frame(table: object) -> pl.DataFrame:
    """A polars frame of anything that has named columns."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, Mapping):
        return pl.DataFrame(dict(table))
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):  # a pandas frame, without importing pandas
        return pl.DataFrame({str(c): table[c].to_list() for c in table.columns})
    raise InputError(f"X is of type {type(table).__name__}: give a table with named columns, because the learner has a schema")


def read_records(path: str | Path) -> pl.DataFrame:
    """A table as :func:`omokage.tables.read_table` reads it; text cells of a CSV without the blanks around them."""
    table = read_table(path)
    if table.raw is None:
        return table.frame
    return table.raw.rename(str.strip).with_columns(pl.all().str.strip_chars())


def column_of(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        raise TableError(f"column {name!r} is in the schema but not in the table: add it, or change the schema")
    return frame[name]


def look_up(column: pl.Series, name: str, categories: tuple[str, ...], other: str | None) -> Integers:
    position = {c: k for k, c in enumerate(categories)}
    fallback = -1 if other is None else position[other]
    text = column.cast(pl.String)
    if text.null_count():
        raise TableError(f"column {name!r} has {counted(text.null_count(), 'missing value')}: drop or fill such rows first")
    codes = text.replace_strict(position, default=fallback, return_dtype=pl.Int64).to_numpy()
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        raise TableError(
            f"column {name!r} has {counted(unknown.size, 'value')} outside of the declared categories, first in row "
            f"{unknown[0] + 1}: list them, or declare an `other`"
        )
    return np.asarray(codes, np.int64)
