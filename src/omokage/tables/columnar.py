"""Parquet and Feather files as frames: what they unpack to is bounded, and what a damaged one does to the reader is caught."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from ..errors import TableError
from .arrays import MOST_COLUMNS, require_size
from .ipc_sizes import unpacked_size

RATIO = 1000  # times its own size that a file may unpack to: columns of few values pack better than arrays
WIDTH = 16  # bytes of a cell of text, as Polars holds it


def read_columnar(file: str, content: bytes, form: str) -> pl.DataFrame:
    """The frame in a Parquet or Feather file."""
    scan = pl.scan_parquet if form == "parquet" else pl.scan_ipc
    try:
        with quiet():
            lazy = scan(io.BytesIO(content))
            schema = lazy.collect_schema()
            if len(schema) > MOST_COLUMNS:
                raise TableError(f"{file}: it has more than {MOST_COLUMNS} columns: is it transposed?")
            rows = int(lazy.select(pl.len()).collect().item())
            size = rows * sum(_width(dtype) for dtype in schema.dtypes())
            size = max(size, unpacked_size(content)) if form == "feather" else size
            require_size(file, len(content), size, RATIO, "save it again without compression")
            return pl.read_parquet(content) if form == "parquet" else pl.read_ipc(content)
    except TableError:
        raise
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 - what a damaged file raises is not documented
        raise TableError(
            f"{file} cannot be read as a table: it is damaged, cut off or of another form than its ending says"
        ) from None


def _width(dtype: pl.DataType) -> int:
    bits = {pl.Boolean: 1, pl.Int8: 8, pl.UInt8: 8, pl.Int16: 16, pl.UInt16: 16, pl.Int32: 32, pl.UInt32: 32, pl.Float32: 32}
    return max(1, bits.get(dtype.base_type(), 64 if dtype.is_numeric() else 8 * WIDTH) // 8)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what Polars prints when a damaged file makes it panic from the terminal; other output is only delayed."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        panicked = False
        try:
            yield
        except pl.exceptions.PanicException:
            panicked = True
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            if not panicked:
                file.seek(0)
                os.write(2, file.read())
