"""Reading tables: CSV, TSV, Parquet, Feather, .npy and .npz. Leading zeros survive, nothing is unpickled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from ..errors import TableError
from .arrays import MOST_COLUMNS, read_arrays
from .columnar import read_columnar
from .header import given_names, header_of, require_header, require_names, separator_of, usable
from .table import KINDS, Kind, Table, kind_of, typed

FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "feather", ".arrow": "feather", ".npy": "npy", ".npz": "npz",
}  # fmt: skip


def read_table(
    path: str | Path,
    kinds: Mapping[str, Kind] | None = None,
    *,
    header: bool | None = None,
    names: Sequence[str] | None = None,
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : CSV, TSV, Parquet, Feather, .npy or .npz file
    kinds : mapping from column to number, boolean, date, code or category
        Overrides what a column is taken for.
    header : bool or None
        Whether the first line of a CSV or TSV holds the columns' names. None takes it for the header, but refuses names
        that look like cells; True trusts it; False names the columns ``column_1``, ``column_2`` …
    names : sequence of str
        The columns' names, for a file without a header; with ``header=True`` they replace the first line.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise TableError(f"{path.name}: the ending must be one of {', '.join(FORMATS)}")
    try:
        if path.is_dir():
            raise TableError(f"{path.name} is a folder, but a file is needed")
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path.name} cannot be read: {error.strerror}") from None
    return with_kinds(table_of(path, content, header=header, names=names), kinds or {})


def table_of(path: Path, content: bytes, *, header: bool | None = None, names: Sequence[str] | None = None) -> Table:
    """The table that these bytes of a file hold; see :func:`read_table`."""
    form = FORMATS[path.suffix.lower()]
    if not content:
        raise TableError(f"{path.name} is empty")
    if form == "csv":
        table = _read_csv(path, content, header, names)
    elif names is not None or header is False:
        raise TableError(f"{path.name} names its columns itself: leave out --no-header and --names, which are for CSV and TSV")
    elif form in ("npy", "npz"):
        table = read_arrays(path, content)
    else:
        table = _read_columns(path, content, header)
    if not table.frame.width or not table.frame.height:
        raise TableError(f"{path.name} has no rows")
    return Table(**{**vars(table), "sha256": hashlib.sha256(content).hexdigest()})


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


def read_cells(path: Path, content: bytes, header: bool = True, names: Sequence[str] | None = None) -> tuple[pl.DataFrame, str]:
    """A CSV or TSV as text, cell by cell, and its separator; without a header or names columns are named by their place."""
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    separator = "\t" if path.suffix.lower() == ".tsv" else separator_of(content)
    if content.count(separator.encode(), 0, 1 + content.find(b"\n") or len(content)) >= MOST_COLUMNS:
        raise TableError(f"{path.name}: it has more than {MOST_COLUMNS} columns: is it transposed?")
    try:
        raw = pl.read_csv(content, separator=separator, infer_schema=False, truncate_ragged_lines=False, has_header=header)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise TableError(f"{path.name} cannot be read as a table: {_reason(error)}") from None
    if names is not None:
        names = given_names(path.name, names, raw.width)
    else:
        names = header_of(path.name, content, separator) if header else [f"column_{j}" for j in range(1, raw.width + 1)]
    if len(names) != raw.width:
        raise TableError(f"{path.name} cannot be read as a table: its first line is damaged")
    raw.columns = list(names)  # Polars leaves quotes within a quoted name doubled
    _require_whole_last_line(path, content, separator, len(names))
    return raw, separator


def _read_csv(path: Path, content: bytes, header: bool | None, names: Sequence[str] | None) -> Table:
    raw, separator = read_cells(path, content, header is True or (header is None and names is None), names)
    if names is None:
        raw.columns = usable(path.name, [name.strip() for name in raw.columns])
    if raw.width > 1:  # an empty line is nobody, and must not count as one
        raw = raw.filter(pl.any_horizontal(pl.all().is_not_null()))
    columns = {column.name: typed(column) for column in raw}
    if names is None and header is None:
        require_header(path.name, raw, {name for name, column in columns.items() if column.dtype.is_numeric()})
    kinds: dict[str, Kind] = {
        name: "code" if column.dtype == pl.String and _coded(column) else kind_of(column) for name, column in columns.items()
    }
    return Table(pl.DataFrame(columns), kinds, "csv", separator, raw=raw)


def _coded(column: pl.Series) -> bool:
    return bool(column.drop_nulls().str.contains(r"^\d+$").all()) and column.null_count() < len(column)


def _require_whole_last_line(path: Path, content: bytes, separator: str, width: int) -> None:
    """A file cut off while it was copied ends in a line with too few cells."""
    last = content.rstrip(b"\r\n").rsplit(b"\n", 1)[-1].decode("utf-8", "replace")
    if '"' not in last and last.count(separator) + 1 < width:
        raise TableError(f"{path.name} is cut off: its last line has {last.count(separator) + 1} of {width} cells")


def _reason(error: BaseException) -> str:
    """Polars' reason without what it quotes from the file."""
    text = str(error).lower()
    for sign, reason in (
        ("utf-8", "it is not text in UTF-8"),
        ("more fields than", "a line has more cells than the header"),
        ("fewer fields", "a line has fewer cells than the header"),
        ("no space", "the disk is full"),
    ):
        if sign in text:
            return reason
    return "it is damaged, cut off or of another form than its ending says"


def _read_columns(path: Path, content: bytes, header: bool | None) -> Table:
    form = FORMATS[path.suffix.lower()]
    frame = read_columnar(path.name, content, form)
    if header is None:
        require_names(path.name, frame)
    return Table(frame, {name: kind_of(frame[name]) for name in frame.columns}, form)
