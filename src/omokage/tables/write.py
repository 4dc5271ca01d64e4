"""Writing a released frame in the form its input had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from ..errors import OutputError
from .table import Table

SUFFIX = {"csv": ".csv", "parquet": ".parquet", "feather": ".feather", "npy": ".npy", "npz": ".npz"}


def data_name(table: Table) -> str:
    """``data.csv``, ``data.tsv``, ``data.parquet`` …"""
    return "data" + (".tsv" if table.format == "csv" and table.separator == "\t" else SUFFIX[table.format])


def write_frame(frame: pl.DataFrame, path: Path, table: Table) -> None:
    """Write ``frame`` to ``path``, in the form of ``table``; the file holds the frame's cells in their order and nothing else."""
    frame = rebuilt(frame)
    try:
        with path.open("wb") as file:
            if table.format == "csv":
                frame.write_csv(file, separator=table.separator)
            elif table.format == "parquet":
                frame.write_parquet(file)
            elif table.format == "feather":
                frame.write_ipc(file, compat_level=pl.CompatLevel.oldest())  # text in one buffer, row by row
            elif table.format == "npy":
                np.save(file, _stack(frame, frame.columns), allow_pickle=False)
            else:
                np.savez(file, allow_pickle=False, **_arrays(frame, table))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise OutputError(f"the release could not be written: {reason_of(error)}") from None


def rebuilt(frame: pl.DataFrame) -> pl.DataFrame:
    """The same cells in fresh memory.

    Polars moves rows by moving views: text stays where it lay in the input, categories stay listed in the input's order
    with those that no row has any more, and values stay under cells that became empty. Feather writes all of that.
    """
    return pl.DataFrame({column.name: _fresh(column) for column in frame})


def _fresh(column: pl.Series) -> pl.Series:
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    bare = column.to_physical() if column.dtype.is_temporal() else column
    return pl.Series(column.name, bare.to_list(), dtype=bare.dtype).cast(column.dtype)


def reason_of(error: Exception) -> str:
    """The operating system's reason, without paths."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error).lower()
    for sign in ("no space left on device", "file too large", "disk quota exceeded", "permission denied"):
        if sign in text:
            return sign.capitalize()
    return type(error).__name__


def _arrays(frame: pl.DataFrame, table: Table) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    for name, columns in table.arrays.items():
        left = [column for column in columns if column in frame.columns]
        if left == [name]:
            out[name] = _plain(frame[name])
        elif left:
            out[name] = _stack(frame, left)
    return out


def _stack(frame: pl.DataFrame, columns: list[str]) -> np.ndarray:
    """Columns side by side in one array, as text if one of them is."""
    arrays = [_plain(frame[name]) for name in columns]
    if any(array.dtype.kind == "U" for array in arrays) or len({array.dtype.kind == "M" for array in arrays}) > 1:
        arrays = [_plain(frame[name].cast(pl.String)) for name in columns]
    return np.column_stack(arrays)


def _plain(column: pl.Series) -> np.ndarray:
    """A NumPy array without Python objects: text becomes fixed-width text."""
    values: np.ndarray = column.to_numpy()
    return np.array(column.cast(pl.String).fill_null("").to_list(), dtype=np.str_) if values.dtype == object else values
