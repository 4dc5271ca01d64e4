"""What a written table's bytes hold beyond its cells: buffers, dictionaries, members of an archive, metadata.

A reader of cells does not see them, an attacker does. The leak search looks through everything that this module lists.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import TableError
from .arrays import archive_of, member_of


def raw_parts(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Everything that the bytes of a table say: the file itself, then what it packs, each part with a name.

    Of an ``.npz`` these are its members; of Feather and Parquet the buffers of each column as they are stored
    (validity, offsets, values, dictionaries with entries that no row uses) and the metadata. Without pyarrow the columns
    are read by Polars, which shows every value that a row or an Enum holds.

    Examples
    --------
    >>> list(raw_parts("data.csv", b"age,ill\\n24,flu\\n"))
    [('file', b'age,ill\\n24,flu\\n')]
    """
    yield "file", content
    path = Path(name)
    form = path.suffix.lower()
    if form == ".npz":
        yield from _members(path, content)
    elif form in (".feather", ".arrow", ".parquet", ".pq"):
        try:
            yield from _columns(content, form in (".parquet", ".pq"))
        except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - Arrow and Polars raise many kinds
            raise TableError(f"{path.name} is damaged: its columns cannot be unpacked ({type(error).__name__})") from None


def _members(path: Path, content: bytes) -> Iterator[tuple[str, bytes]]:
    with archive_of(path.name, content) as archive:
        try:
            for entry in archive.infolist():
                yield f"member {entry.filename}", member_of(archive, entry)
        except Exception as error:  # noqa: BLE001 - zipfile raises its own, zlib, value, EOF and runtime errors
            raise TableError(f"{path.name} is damaged: a member cannot be unpacked ({type(error).__name__})") from None


def _columns(content: bytes, parquet: bool) -> Iterator[tuple[str, bytes]]:
    try:
        import pyarrow
    except ImportError:
        yield from _by_polars(content, parquet)
        return
    yield from _parquet(content) if parquet else _feather(pyarrow, content)


def _feather(pyarrow: Any, content: bytes) -> Iterator[tuple[str, bytes]]:
    with pyarrow.ipc.open_file(pyarrow.py_buffer(content)) as file:
        yield from _metadata(file.schema)
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            for field, column in zip(batch.schema, batch.columns, strict=True):
                yield from _buffers(f"column {field.name}, batch {i}", column)


def _parquet(content: bytes) -> Iterator[tuple[str, bytes]]:
    from pyarrow import BufferReader
    from pyarrow.parquet import ParquetFile

    with ParquetFile(BufferReader(content)) as plain:
        names = plain.schema_arrow.names
    with ParquetFile(BufferReader(content), read_dictionary=names) as file:
        for key, value in (file.metadata.metadata or {}).items():
            yield f"metadata {key.decode('utf-8', 'replace')}", _unpacked(value)
        yield from _metadata(file.schema_arrow)
        for i in range(file.num_row_groups):
            group = file.read_row_group(i)
            for name, column in zip(group.column_names, group.columns, strict=True):
                for chunk in column.chunks:
                    yield from _buffers(f"column {name}, row group {i}", chunk)


def _unpacked(value: bytes) -> bytes:
    """Metadata, with what it packs as base64 (the Arrow schema, with the categories of an Enum) beside it."""
    try:
        return value + b"\n" + base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value


def _metadata(schema: Any) -> Iterator[tuple[str, bytes]]:
    for what, entries in [("table", schema.metadata), *((f"column {field.name}", field.metadata) for field in schema)]:
        for key, value in (entries or {}).items():
            yield f"metadata {key.decode('utf-8', 'replace')} of {what}", bytes(value)


def _buffers(name: str, column: Any) -> Iterator[tuple[str, bytes]]:
    for j, buffer in enumerate(column.buffers()):
        if buffer is not None:
            yield f"{name}, buffer {j}", buffer.to_pybytes()
    if hasattr(column, "dictionary"):
        yield from _buffers(f"{name}, dictionary", column.dictionary)


def _by_polars(content: bytes, parquet: bool) -> Iterator[tuple[str, bytes]]:
    frame = (pl.read_parquet if parquet else pl.read_ipc)(io.BytesIO(content))
    for column in frame:
        if isinstance(column.dtype, pl.Enum):
            yield f"dictionary of column {column.name}", _text(column.dtype.categories)
        if column.dtype.is_numeric() or column.dtype.is_temporal():
            yield f"column {column.name}", column.to_physical().fill_null(0).to_numpy().tobytes()
        else:
            yield f"column {column.name}", _text(column)


def _text(column: pl.Series) -> bytes:
    return "\n".join(column.cast(pl.String).drop_nulls().to_list()).encode()
