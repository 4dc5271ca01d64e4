"""Arrays in .npy and .npz files as the columns of a table. Nothing is unpickled, and nothing unpacks to more than it may."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from numpy.lib import format as npy

from ..errors import TableError
from .table import Table, kind_of

ALWAYS = 1 << 28  # bytes that an archive may always unpack to
RATIO = 100  # it may unpack to so many times its own size: counts and zeros stay below, a bomb reaches 1,000
BEYOND = 1 << 32  # but to no more than so many bytes beyond its own size
MOST_COLUMNS = 1 << 18


def read_arrays(path: Path, content: bytes) -> Table:
    """The arrays of one or two dimensions in a file as columns, each named by its array and its place in it."""
    form = path.suffix.lower().lstrip(".")
    columns: dict[str, pl.Series] = {}
    arrays: dict[str, tuple[str, ...]] = {}
    for name, array in _arrays(path.name, content, form):
        wide = array.reshape(len(array), -1)
        names = (name,) if array.ndim == 1 and name else tuple(f"{name or 'x'}_{j}" for j in range(wide.shape[1]))
        if len(columns) + len(names) > MOST_COLUMNS:
            raise TableError(f"{path.name}: it has more than {MOST_COLUMNS} columns: is it transposed?")
        arrays[name] = names
        for j, column in enumerate(names):
            if column in columns:
                raise TableError(f"{path.name}: two columns would be called {column!r}: rename an array")
            columns[column] = _series(path.name, column, wide[:, j])
    if len({len(column) for column in columns.values()}) > 1:
        raise TableError(f"{path.name}: its arrays have different numbers of rows")
    frame = pl.DataFrame(columns)
    return Table(frame, {name: kind_of(frame[name]) for name in frame.columns}, form, arrays=arrays)


def archive_of(name: str, content: bytes) -> zipfile.ZipFile:
    """The archive, if what it unpacks to stays within bounds; the sizes its directory declares are never exceeded."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
        raise TableError(f"{name} cannot be read as arrays of numbers or text ({type(error).__name__})") from None
    if not all(entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise TableError(f"{name} is packed in a way that numpy.savez does not use: save it again with numpy.savez")
    declared = sum(entry.file_size for entry in entries)
    require_size(name, len(content), declared, RATIO, "save it again with numpy.savez, which does not compress")
    return archive


def require_size(name: str, packed: int, unpacked: int, ratio: int, remedy: str) -> None:
    """Refuse a file that would unpack to far more than its own size."""
    if unpacked > max(ALWAYS, min(ratio * packed, packed + BEYOND)):
        raise TableError(f"{name} of {packed / 1e6:.1f} MB would unpack to {unpacked / 1e9:.1f} GB: if you trust it, {remedy}")


def member_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A member's bytes; never more than its entry declares, whatever the packed data would unpack to."""
    with archive.open(entry) as member:
        return member.read(entry.file_size)  # without a size, zipfile unpacks first and cuts then


def _arrays(name: str, content: bytes, form: str) -> Iterator[tuple[str, np.ndarray]]:
    if form == "npy":
        yield "", _array(name, content)
        return
    with archive_of(name, content) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_COLUMNS:
            raise TableError(f"{name}: it holds more than {MOST_COLUMNS} arrays")
        if len({entry.filename for entry in entries}) < len(entries):
            raise TableError(f"{name}: two of its arrays have the same name: rename one")
        for entry in entries:
            try:
                data = member_of(archive, entry)
            except Exception as error:  # noqa: BLE001 - zipfile raises its own, zlib, value, EOF and runtime errors
                raise TableError(f"{name} cannot be read as arrays of numbers or text ({type(error).__name__})") from None
            yield entry.filename.removesuffix(".npy"), _array(name, data)


def _array(name: str, content: bytes) -> np.ndarray:
    """One array, if its header declares just the bytes that follow it."""
    file = io.BytesIO(content)
    try:
        shape, fortran, dtype = _header(file)
    except Exception as error:  # noqa: BLE001 - numpy raises value, syntax, recursion and EOF errors for damaged headers
        raise TableError(f"{name} cannot be read as arrays of numbers or text ({type(error).__name__})") from None
    if dtype.kind not in "biufUSM" or dtype.itemsize == 0:
        raise TableError(f"{name} cannot be read as arrays of numbers or text: it holds values of type {dtype.name}")
    if len(shape) not in (1, 2):
        raise TableError(f"{name}: an array has {len(shape)} dimensions, but 1 or 2 are needed")
    if 0 in shape:
        raise TableError(f"{name} has no rows")
    if min(shape) < 0 or math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise TableError(f"{name} is damaged: an array's header does not say as many bytes as there are")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    if version == (2, 0):
        return npy.read_array_header_2_0(file)
    raise ValueError("version 3.0 is for named fields only")


def _characters(values: np.ndarray) -> bool:
    codes = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))).view(np.uint32)
    return bool(((codes < 0xD800) | ((codes > 0xDFFF) & (codes <= 0x10FFFF))).all())


def _series(file: str, name: str, values: np.ndarray) -> pl.Series:
    kind = values.dtype.kind
    try:
        if kind == "S":
            values = np.char.decode(values, "utf-8")
        elif kind == "U" and not _characters(values):
            raise ValueError
        elif kind == "M":
            unit = np.datetime_data(values.dtype)[0]
            values = values.astype(f"M8[{'D' if unit in ('Y', 'M', 'W', 'D') else 'ns' if unit in ('ns', 'ps') else 'us'}]")
        elif kind == "f":
            values = values.astype(np.float32 if values.dtype.itemsize < 8 else np.float64)  # half and long double are rare
        return pl.Series(name, np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))))
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError, SystemError) as error:
        raise TableError(f"{file}: column {name!r} cannot be read as numbers, dates or text ({type(error).__name__})") from None
