"""Originals and release side by side, as an attacker or analyst who holds both sees them.

Numbers are compared as they are where every quasi-identifier is a number (the DR paper's setting), else in units of their
range. A cell that stands for several values (``012*``, ``[22, 26]``, ``*``) is taken for the mean of the original values it
is compatible with: the best a least-squares attacker can do with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.parts import AnyPart
from ..errors import InputError, VerificationError
from ..method.grouping import GROUPERS
from ..release.certificate import Certificate, Column, Noisy, TableMethod
from ..release.contents import Contents
from ..release.key import read_key
from ..release.release import Release
from ..release.verify import verify
from ..tables.encode import Scale, encode, plain_numbers
from ..tables.read import read_table, with_kinds
from ..tables.table import Table, as_table, is_frame, typed
from ..tables.writing import TableWriter, read_written


@dataclass(frozen=True)
class Published:
    """How a release was made, as far as its certificate tells everybody.

    group_map, synthesis_map : the maps' parts, none for the identity. scale, ordinal : how columns were encoded to be grouped
    without a map. noise : its distribution, where noise took the place of groups.
    """

    group_map: tuple[AnyPart, ...]
    synthesis_map: tuple[AnyPart, ...]
    scale: Scale
    ordinal: bool
    noise: str | None


@dataclass(frozen=True)
class Linked:
    """Originals ``x`` and released rows ``y`` in one space; ``row_of[i]`` is the released row of original i."""

    x: NDArray[Any]
    y: NDArray[Any]
    row_of: Labels
    certificate: Certificate
    table: Table | None = None  # the originals
    frame: pl.DataFrame | None = None  # the release
    group_map: Any = None  # fitted, where the release was made in this process
    synthesis_map: Any = None

    @property
    def published(self) -> Published:
        """What the certificate says of the method."""
        method, promise = self.certificate.method, self.certificate.promise
        if not isinstance(method, TableMethod):
            raise InputError("the release is one of faces: omokage faces evaluate judges those")
        grouper = None if method.grouping is None else GROUPERS.get(method.grouping.name)
        return Published(
            method.group_map,
            method.synthesis_map,
            method.scale,
            getattr(grouper, "axis_parallel", False),
            promise.distribution if isinstance(promise, Noisy) else None,
        )

    @property
    def k(self) -> int | None:
        return self.certificate.k

    @property
    def aligned(self) -> NDArray[Any]:
        """The released row of each original."""
        return self.y[self.row_of]

    def column(self, name: str) -> pl.Series:
        """An original column."""
        if self.table is None or name not in self.table.frame.columns:
            raise InputError(f"there is no column {name!r} in the originals")
        return self.table.frame[name]


def link(original: Any, release: Release | Linked) -> Linked:
    """Join a release in memory with its originals; what is joined already is left as it is."""
    if isinstance(release, Linked):
        return release
    if not is_frame(original):
        x = np.asarray(original)
        if x.shape != np.shape(release.data):
            raise InputError(
                f"the originals have shape {x.shape}, the release {np.shape(release.data)}: they do not belong together"
            )
        both = Linked(x, np.asarray(release.data), release.key.rows, release.certificate)
    else:
        if not isinstance(release.writer, TableWriter):
            raise InputError("the release is one of faces: omokage faces evaluate judges those")
        both = _linked(as_table(original), release.writer.table.frame, release.key.rows, release.certificate)
    return replace(both, group_map=release.group_map, synthesis_map=release.synthesis)


def link_files(
    original: str | Path,
    folder: str | Path,
    key: str | Path,
    *,
    header: bool | None = None,
    names: Sequence[str] | None = None,
) -> Linked:
    """Join a written release with its originals by its key; the release is verified first.

    ``header`` and ``names`` are those of :func:`~omokage.tables.read_table`: read the originals as for the release.
    """
    result = verify(folder, key=key)
    if not result.passed:
        failed = ", ".join(check.name for check in result.checks if not check.passed)
        raise VerificationError(f"the release does not keep its promise ({failed}), so it is not evaluated")
    certificate, digest = Certificate.read(Path(folder))
    if certificate.medium != "table":
        raise InputError("the release is one of faces: omokage faces evaluate judges those")
    secret, table = read_key(Path(key), digest), read_table(original, header=header, names=names)
    if not secret.fits(table.sha256, certificate.source.fingerprint):
        raise InputError(f"{Path(original).name} is not the table that this release was made from")
    if len(secret.rows) != len(table.frame):
        raise InputError(f"{Path(original).name} has {len(table.frame)} rows, but the key links {len(secret.rows)}")
    path = certificate.files[0].path
    return _linked(table, read_written(path, Contents(Path(folder)).read(path)), secret.place, certificate)


def _linked(table: Table, frame: pl.DataFrame, rows: Labels, certificate: Certificate) -> Linked:
    quasi = [column for column in certificate.columns if column.role == "quasi"]
    as_read: dict[str, Any] = {column.name: column.kind for column in quasi}
    table = with_kinds(table, as_read)  # the kinds it was anonymized by
    x, y = side_by_side(table, frame, quasi, "none" if is_plain(quasi) else "range")
    return Linked(x, y, rows, certificate, table, frame)


def is_plain(columns: Sequence[Column]) -> bool:
    """Whether every column is a number, so that values can be compared as they are."""
    return all(column.kind in ("number", "boolean") for column in columns)


def side_by_side(
    table: Table, frame: pl.DataFrame, columns: Sequence[Column], scale: Scale, *, ordinal: bool = False, gaps: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Original and released quasi-identifiers as matrices of the same columns, encoded as the anonymizer encodes them.

    With ``gaps``, a column that has gaps has one more that marks them.
    """
    before, after = [], []
    for column in columns:
        original, released = table.frame[column.name], frame[column.name]
        if column.unify in ("mean", "median", "noise") and column.kind in ("number", "boolean", "date"):
            block = encode(table, [column.name], scale, ordinal)  # (n, 1), or (n, 2) with gaps
            width = block.shape[1] if gaps else 1
            a, b = block[:, :width], _placed(plain_numbers(original), block[:, 0], _numbers(released, column))[:, :width]
        else:
            a, b = _compatible_means(encode(table, [column.name], scale, ordinal), original, released, column)
        before.append(a)
        after.append(b)
    return np.column_stack(before), np.column_stack(after)


def _numbers(released: pl.Series, column: Column) -> NDArray[Any]:
    """Released numbers or dates, which a CSV gives as text."""
    if released.dtype == pl.String:
        released = typed(released) if column.kind == "date" else released.cast(pl.Float64, strict=False)
    return plain_numbers(released)


def _placed(known: NDArray[Any], encoded: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Released numbers on the line that takes the original ones to their code; a missing one at the mean, and marked."""
    there = np.flatnonzero(~np.isnan(known))
    middle = float(known[there].mean()) if len(there) else 0.0
    missing = np.isnan(values)
    filled = np.where(missing, middle, values)
    slope, start, at = 1.0, 0.0, 0.0
    if len(there):
        low, high = there[known[there].argmin()], there[known[there].argmax()]
        start, at = float(encoded[low]), float(known[low])
        slope = (encoded[high] - start) / (known[high] - at) if known[high] > at else 1.0
    return np.column_stack([start + slope * (filled - at), missing])


def _compatible_means(
    block: NDArray[Any], original: pl.Series, released: pl.Series, column: Column
) -> tuple[NDArray[Any], NDArray[Any]]:
    text = original.cast(pl.String)
    values = text.unique().sort().to_list()
    rank = {value: i for i, value in enumerate(values)}
    codes = np.array([rank[v] for v in text.to_list()])
    count = np.bincount(codes, minlength=len(values))
    first = np.array([int(np.argmax(codes == i)) for i in range(len(values))])
    cells = released.cast(pl.String)
    seen = {}
    for cell in cells.unique().to_list():
        fits = np.array([compatible(cell, value, column.unify or "") for value in values])
        weight = count * fits if fits.any() else count
        seen[cell] = weight @ block[first] / weight.sum()
    return block, np.stack([seen[cell] for cell in cells.to_list()])


def compatible(cell: str | None, value: str | None, how: str) -> bool:
    """Whether a released cell may stand for an original value.

    Examples
    --------
    >>> compatible("012*", "0123", "prefix"), compatible("[22, 26]", "24", "range"), compatible("{a, b}", "c", "set")
    (True, True, False)
    >>> compatible("[22, *]", "99", "range"), compatible("{*, a}", "c", "set")
    (True, True)
    """
    if cell is None or cell == "*" or value is None:
        return cell == "*" or value is None
    if cell == value:
        return True
    if how in ("prefix", "set", "mode") and cell.endswith("*"):
        return value.startswith(cell.rstrip("*"))
    if how == "range" and cell.startswith("["):
        low, _, high = cell[1:-1].partition(", ")
        return (low == "*" or _before(low, value)) and (high == "*" or _before(value, high))
    return how == "set" and cell.startswith("{") and any(compatible(part, value, how) for part in cell[1:-1].split(", "))


def _before(a: str, b: str) -> bool:
    try:
        return float(a) <= float(b)
    except ValueError:
        return a <= b
