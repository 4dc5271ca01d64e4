"""A table as it was read: a Polars frame, what kind each column is, and the file's form and hash."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import numpy as np
import polars as pl

from ..errors import TableError
from .header import require_names

Kind = Literal["number", "boolean", "date", "code", "category"]
EPOCH = date(1970, 1, 1).toordinal()
KINDS: tuple[Kind, ...] = ("number", "boolean", "date", "code", "category")


@dataclass(frozen=True)
class Table:
    """A frame and the kind of each of its columns.

    ``raw`` keeps the text of a CSV cell by cell, so that columns which are released as they are keep every character.
    """

    frame: pl.DataFrame
    kinds: dict[str, Kind]
    format: str = "csv"
    separator: str = ","
    sha256: str | None = None
    raw: pl.DataFrame | None = None
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def verbatim(self, name: str) -> pl.Series:
        """A column as it stood in the file."""
        return (self.frame if self.raw is None else self.raw)[name]


def kind_of(column: pl.Series) -> Kind:
    """The kind of a typed column.

    Examples
    --------
    >>> import polars as pl
    >>> kind_of(pl.Series([1, 2])), kind_of(pl.Series(["0123", "1220"])), kind_of(pl.Series(["a"]))
    ('number', 'code', 'category')
    """
    kind = column.dtype
    if kind.is_numeric():
        return "number"
    if kind == pl.Boolean:
        return "boolean"
    if kind in (pl.Date, pl.Datetime):
        _require_years(column)
        return "date"
    if kind == pl.Null:
        return "category"
    if kind == pl.String:
        text = column.drop_nulls()
        return "code" if len(text) and bool(text.str.contains(r"^\d+$").all()) else "category"
    if kind in (pl.Categorical, pl.Enum):
        return "category"
    raise TableError(f"column {column.name!r} is of type {kind}, which cannot be anonymized: turn it into numbers or text")


def _require_years(column: pl.Series) -> None:
    """Refuse dates that a calendar program would not take."""
    days = column.to_physical()
    if column.dtype != pl.Date:
        days = days // (86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(column.dtype, "time_unit", None) or "us"])
    outside = int(((days < date.min.toordinal() - EPOCH) | (days > date.max.toordinal() - EPOCH)).sum())
    if outside:
        raise TableError(
            f"column {column.name!r} holds dates outside of the years 1 to 9999 in {outside} rows: leave the cells empty"
        )


def typed(text: pl.Series) -> pl.Series:
    """A column of text as the type that every cell of it can be; text where there is none.

    Whole numbers with a leading zero, or too long for a number, are codes and stay text.
    """
    bare = text.str.strip_chars()
    full = bare.drop_nulls()
    if not len(full):
        return text
    if full.str.contains(r"^[+-]?\d+$").all():
        if full.str.contains(r"^[+-]?0\d").any():
            return bare
        whole = bare.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == bare.null_count() else bare
    number = bare.cast(pl.Float64, strict=False)
    if number.null_count() == bare.null_count():
        return number
    lower = full.str.to_lowercase()
    if lower.is_in(["true", "false"]).all():
        return bare.str.to_lowercase() == "true"
    return _dated(bare)


def _dated(text: pl.Series) -> pl.Series:
    missing = text.null_count()
    for form in ("%Y-%m-%d", "%Y/%m/%d"):
        day = text.str.to_date(form, strict=False)
        if day.null_count() == missing:
            return day
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"):
        moment = text.str.to_datetime(form, strict=False)
        if moment.null_count() == missing:
            return moment
    return text


def as_table(data: Any) -> Table:
    """A Polars or pandas frame, or a :class:`Table`, as a table."""
    if isinstance(data, Table):
        return data
    if not isinstance(data, pl.DataFrame):
        data = _from_pandas(data)
    if not data.width or not data.height:
        raise TableError("the frame has no rows: there is nothing to anonymize")
    require_names("the frame", data)
    return Table(data, {name: kind_of(data[name]) for name in data.columns})


def _from_pandas(frame: Any) -> pl.DataFrame:
    try:
        out: pl.DataFrame = pl.from_pandas(frame.reset_index(drop=True), nan_to_null=True)
    except ImportError:
        from ..errors import MissingExtra

        raise MissingExtra("support for pandas frames", "pandas") from None
    except Exception as error:  # noqa: BLE001 - pyarrow raises many kinds for a column of mixed objects
        raise TableError(
            f"the pandas frame has a column that is neither numbers, dates nor text ({type(error).__name__})"
        ) from None
    return out


def is_frame(data: Any) -> bool:
    """Whether ``data`` has named columns: a table, a Polars or a pandas frame."""
    return isinstance(data, Table | pl.DataFrame) or (hasattr(data, "columns") and not isinstance(data, np.ndarray))
