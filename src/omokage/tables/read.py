"""Reading tables: CSV, TSV, Parquet, Feather, .npy and .npz. Leading zeros survive, nothing is unpickled."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ..errors import TableError
from .arrays import read_arrays
from .table import KINDS, Kind, Table, kind_of, typed

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "feather", ".arrow": "feather", ".npy": "npy", ".npz": "npz",
}  # fmt: skip


def read_table(path: str | Path, kinds: Mapping[str, Kind] | None = None) -> Table:
    """Read a table; ``kinds`` overrides what a column is taken for (number, boolean, date, code, category)."""
    path = Path(path)
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise TableError(f"{path.name}: the ending must be one of {', '.join(FORMATS)}")
    try:
        if path.is_dir():
            raise TableError(f"{path.name} is a folder, but a file is needed")
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path.name} cannot be read: {error.strerror}") from None
    if not content:
        raise TableError(f"{path.name} is empty")
    table = _READERS[form](path, content)
    if not table.frame.width or not table.frame.height:
        raise TableError(f"{path.name} has no rows")
    sha256 = hashlib.sha256(content).hexdigest()
    return with_kinds(Table(**{**vars(table), "sha256": sha256}), kinds or {})


def with_kinds(table: Table, kinds: Mapping[str, Kind]) -> Table:
    """The table with some columns taken for another kind."""
    frame, known = table.frame, dict(table.kinds)
    for name, kind in kinds.items():
        if name not in known:
            raise TableError(f"there is no column {name!r} to take for a {kind}")
        if kind not in KINDS:
            raise TableError(f"a column can be a {', '.join(KINDS)}, not {kind!r}")
        if kind in ("code", "category"):
            frame = frame.with_columns(table.verbatim(name).cast(pl.String))
        elif known[name] != kind:
            raise TableError(f"column {name!r} cannot be taken for a {kind}: its cells are those of a {known[name]}")
        known[name] = kind
    return Table(**{**vars(table), "frame": frame, "kinds": known})


def read_cells(path: Path, content: bytes) -> tuple[pl.DataFrame, str]:
    """A CSV or TSV as text, cell by cell, and its separator."""
    header = content[:1_000_000].split(b"\n", 1)[0]
    separator = "\t" if path.suffix.lower() == ".tsv" else _separator(header)
    names = _header(path, header, separator)
    try:
        raw = pl.read_csv(content, separator=separator, infer_schema=False, truncate_ragged_lines=False)
        raw.columns = names  # Polars leaves quotes within a quoted name doubled
    except pl.exceptions.PolarsError as error:
        raise TableError(f"{path.name} cannot be read as a table: {_reason(error)}") from None
    _require_whole_last_line(path, content, separator, len(names))
    return raw, separator


def _read_csv(path: Path, content: bytes) -> Table:
    raw, separator = read_cells(path, content)
    columns = {name: typed(raw[name]) for name in raw.columns}
    kinds: dict[str, Kind] = {
        name: "code" if column.dtype == pl.String and _coded(column) else kind_of(column) for name, column in columns.items()
    }
    return Table(pl.DataFrame(columns), kinds, "csv", separator, raw=raw)


def _coded(column: pl.Series) -> bool:
    return bool(column.drop_nulls().str.contains(r"^\d+$").all()) and column.null_count() < len(column)


def _separator(header: bytes) -> str:
    counts = Counter({s: header.count(s.encode()) for s in (",", ";", "\t")})
    return counts.most_common(1)[0][0] if any(counts.values()) else ","


def _header(path: Path, header: bytes, separator: str) -> list[str]:
    try:
        names = next(csv.reader([header.decode("utf-8-sig").rstrip("\r")], delimiter=separator))
    except (UnicodeDecodeError, csv.Error, StopIteration):
        raise TableError(f"{path.name} is not text in UTF-8: save it as UTF-8") from None
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{path.name} has {len(twice)} column names twice (the first is {twice[0]!r}): rename them")
    return names


def _require_whole_last_line(path: Path, content: bytes, separator: str, width: int) -> None:
    """A file cut off while it was copied ends in a line with too few cells."""
    last = content.rstrip(b"\r\n").rsplit(b"\n", 1)[-1].decode("utf-8", "replace")
    if '"' not in last and last.count(separator) + 1 < width:
        raise TableError(f"{path.name} is cut off: its last line has {last.count(separator) + 1} of {width} cells")


def _reason(error: Exception) -> str:
    """Polars' reason without what it quotes from the file."""
    text = str(error).lower()
    for sign, reason in (
        ("utf-8", "it is not text in UTF-8"),
        ("more fields than", "a line has more cells than the header"),
        ("fewer fields", "a line has fewer cells than the header"),
        ("out of specification", "it is damaged or cut off"),
        ("ipc", "it is damaged or cut off"),
        ("no space", "the disk is full"),
    ):
        if sign in text:
            return reason
    return "it is damaged, cut off or of another form than its ending says"


def _read_columns(path: Path, content: bytes) -> Table:
    form = FORMATS[path.suffix.lower()]
    try:
        frame = pl.read_parquet(content) if form == "parquet" else pl.read_ipc(content)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise TableError(f"{path.name} cannot be read as a table: {_reason(error)}") from None
    return Table(frame, {name: kind_of(frame[name]) for name in frame.columns}, form)


_READERS = {
    "csv": _read_csv, "parquet": _read_columns, "feather": _read_columns, "npy": read_arrays, "npz": read_arrays,
}  # fmt: skip
