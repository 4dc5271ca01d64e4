"""What a group becomes in a table: one value per column, each in the column's own terms.

``UNIFIERS`` says which names fit which kinds of column. A value that fewer than k persons have does not show: see
:mod:`omokage.tables.unify.rare`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...base.matrix import Labels, members_of
from ...base.persons import Holders, person_weights, persons_in
from ...errors import InputError, TableError
from ...method.unify import median_of_many, rare_cells
from ..encode import plain_numbers
from ..table import Kind
from .rare import shown_as
from .rounding import HIDDEN, Way


@dataclass(frozen=True)
class Classes:
    """Who is together: the group of each row, whose row it is, and below how many persons a value is hidden (None: never)."""

    labels: Labels
    persons: Labels | None = None
    hide: int | None = None

    def thin(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Groups in which fewer persons than ``hide`` have a value that is known."""
        who = None if self.persons is None else self.persons[known]
        return persons_in(self.labels[known], who, int(self.labels.max()) + 1) < (self.hide or 0)


@dataclass(frozen=True)
class _Coded:
    """A column as ranks among its sorted different values, −1 where a value is missing, in the order of the groups."""

    codes: NDArray[np.int64]
    first: NDArray[np.int64]  # where each group begins
    values: pl.Series
    kind: Kind
    persons: Labels | None
    hide: int | None

    @classmethod
    def of(cls, column: pl.Series, kind: Kind, classes: Classes) -> _Coded:
        if column.dtype in (pl.Categorical, pl.Enum):
            column = column.cast(pl.String)
        values = column.drop_nulls().unique().sort()
        codes = (column.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy().astype(np.int64)
        order = np.argsort(classes.labels, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(classes.labels))[:-1]])
        persons = None if classes.persons is None else classes.persons[order]
        return cls(codes[order], first, values, kind, persons, classes.hide)

    def shown(self, way: Way = "nearest") -> list[Any]:
        """What each value is shown as."""
        if self.hide is None:
            return self.values.to_list()
        return shown_as(self.values, self.kind, Holders.of(self.codes, self.persons), self.hide, way)

    def least(self) -> NDArray[np.int64]:
        """Rank of each group's least value that is there; −1 where none is."""
        shifted = np.where(self.codes < 0, len(self.values), self.codes)
        low = np.minimum.reduceat(shifted, self.first)
        return np.where(low == len(self.values), -1, low)

    def most(self) -> NDArray[np.int64]:
        return np.maximum.reduceat(self.codes, self.first)

    def alike(self) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = np.minimum.reduceat(self.codes, self.first) == self.most()
        return same

    def groups(self) -> list[NDArray[np.int64]]:
        return np.split(self.codes, self.first[1:])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:.15g}"
        return short if float(short) == value else repr(value)
    return str(value)


def _mean(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    values = _numbers(column, kind, classes)
    known = ~np.isnan(values)
    weights = person_weights(classes.persons)
    w = known * (1.0 if weights is None else weights)
    total = np.bincount(classes.labels, w * np.where(known, values, 0.0))
    size = np.bincount(classes.labels, w)
    means = np.divide(total, size, out=np.full(len(size), np.nan), where=size > 0)
    return _like(column, means)


def _median(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    values = _numbers(column, kind, classes)
    groups = [rows[~np.isnan(values[rows])] for rows in members_of(classes.labels)]
    if classes.hide is None:
        return _like(column, np.array([np.median(values[rows]) if len(rows) else np.nan for rows in groups]))
    rare = rare_cells(plain_numbers(column), classes.persons, classes.hide)[:, None]
    persons = np.arange(len(values)) if classes.persons is None else classes.persons
    middle = [median_of_many(values[rows, None], rare[rows], persons[rows])[0] if len(rows) else np.nan for rows in groups]
    return _like(column, np.array(middle))


def _numbers(column: pl.Series, kind: Kind, classes: Classes) -> NDArray[np.float64]:
    """The numbers to average: as they are, but shared ones in a group where fewer than k persons have any."""
    values = plain_numbers(column)
    known = ~np.isnan(values)
    if classes.hide is None or known.all():
        return values
    thin = classes.thin(known)[classes.labels] & known
    if not thin.any():
        return values
    alone = Classes(np.zeros(len(values), dtype=np.int64), classes.persons, classes.hide)
    coded = _Coded.of(column, kind, alone)
    shown = [None if s == HIDDEN else s for s in coded.shown()]
    merged = plain_numbers(pl.Series(shown, dtype=_plain(column) if kind == "date" else pl.Float64, strict=False))
    return np.where(thin, merged[np.maximum(coded.codes, 0)], values)


def _like(column: pl.Series, values: NDArray[np.float64]) -> pl.Series:
    """Values as the column's type where that can hold them: dates, and whole numbers if all are whole."""
    out = pl.Series(column.name, values, nan_to_null=True)
    if column.dtype in (pl.Date, pl.Datetime):
        return out.round().cast(pl.Int64).cast(column.to_physical().dtype).cast(column.dtype)
    known = values[~np.isnan(values)]
    if column.dtype.is_integer() and (known == np.round(known)).all() and (np.abs(known) < 2.0**63).all():
        return out.cast(pl.Int64)
    return out


def _mode(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    coded = _Coded.of(column, kind, classes)
    shown = coded.shown()
    distinct = sorted(dict.fromkeys(shown), key=lambda value: value == HIDDEN)  # as they come, what is hidden last
    place = {value: j for j, value in enumerate(distinct)}
    merged = np.array([place[value] for value in shown] or [0])
    best = [distinct[int(np.bincount(merged[c[c >= 0]]).argmax())] if (c >= 0).any() else None for c in coded.groups()]
    return _column(column, kind, best)


def _column(like: pl.Series, kind: Kind, values: list[Any]) -> pl.Series:
    """Values, some of them hidden, as a column: empty cells where the type has no star."""
    if kind in ("code", "category"):
        return pl.Series(like.name, values, dtype=pl.String)
    values = [None if value == HIDDEN else value for value in values]
    if like.dtype.is_decimal():
        return pl.Series(like.name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    if not like.dtype.is_integer():
        return pl.Series(like.name, values, dtype=like.dtype)
    fits = all(value is None or abs(value) < 1 << 63 for value in values)
    return pl.Series(like.name, values, dtype=pl.Int64 if fits else pl.Float64, strict=fits)


def _plain(column: pl.Series) -> Any:
    return pl.String if column.dtype in (pl.Categorical, pl.Enum) else column.dtype


def _suppress(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    coded = _Coded.of(column, kind, classes)
    values, most, alike = coded.values.to_list(), coded.most(), coded.alike()
    cells = [(None if m < 0 else _text(values[m])) if a else HIDDEN for m, a in zip(most, alike, strict=True)]
    return pl.Series(column.name, cells, dtype=pl.String)


def _range(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    coded = _Coded.of(column, kind, classes)
    down, up = [_text(v) for v in coded.shown("down")], [_text(v) for v in coded.shown("up")]
    cells: list[str | None] = []
    for low, high in zip(coded.least(), coded.most(), strict=True):
        if low < 0:
            cells.append(None)
        else:
            cells.append(down[low] if down[low] == up[high] else f"[{down[low]}, {up[high]}]")
    return pl.Series(column.name, cells, dtype=pl.String)


def _set(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    coded = _Coded.of(column, kind, classes)
    text = [_text(value) for value in coded.shown()]
    cells = []
    for codes in coded.groups():
        there = list(dict.fromkeys(text[c] for c in np.unique(codes[codes >= 0])))
        there = [*(t for t in there if t == HIDDEN), *(t for t in there if t != HIDDEN)]
        cells.append(None if not there else there[0] if len(there) == 1 else "{" + ", ".join(there) + "}")
    return pl.Series(column.name, cells, dtype=pl.String)


def _prefix(column: pl.Series, kind: Kind, classes: Classes) -> pl.Series:
    coded = _Coded.of(column.cast(pl.String), kind, classes)
    values = coded.values.to_list()
    cells: list[str | None] = []
    for codes in coded.groups():
        there = np.unique(codes)
        texts = ["" if c < 0 else values[c] for c in there]
        cells.append(None if list(there) == [-1] else common_prefix(texts))
    return pl.Series(column.name, cells, dtype=pl.String)


def common_prefix(texts: list[str]) -> str:
    """The leading characters all share, then a star for each character masked (one if the lengths differ).

    Examples
    --------
    >>> common_prefix(["0123", "0124"]), common_prefix(["0123"]), common_prefix(["12", "1"])
    ('012*', '0123', '1*')
    """
    if len(texts) == 1:
        return texts[0]
    low, high = min(texts), max(texts)  # what these two share, all between them share
    shared = next((i for i, c in enumerate(low) if i >= len(high) or c != high[i]), len(low))
    prefix = low[:shared]
    lengths = {len(text) for text in texts}
    return prefix + "*" * (max(lengths) - len(prefix) if len(lengths) == 1 else 1)


@dataclass(frozen=True)
class ColumnUnifier:
    """A way to unify a column, and the kinds of column it fits."""

    kinds: tuple[Kind, ...]
    unify: Callable[[pl.Series, Kind, Classes], pl.Series]


ANY: tuple[Kind, ...] = ("number", "boolean", "date", "code", "category")
UNIFIERS = {
    "mean": ColumnUnifier(("number", "boolean", "date"), _mean),
    "median": ColumnUnifier(("number", "date"), _median),
    "mode": ColumnUnifier(ANY, _mode),
    "prefix": ColumnUnifier(("number", "code", "category"), _prefix),
    "range": ColumnUnifier(ANY, _range),
    "set": ColumnUnifier(ANY, _set),
    "suppress": ColumnUnifier(ANY, _suppress),
}
DEFAULT_UNIFIER: dict[Kind, str] = {
    "number": "mean", "boolean": "suppress", "date": "mean", "code": "prefix", "category": "suppress",
}  # fmt: skip


def unify_column(column: pl.Series, kind: Kind, how: str, classes: Classes) -> pl.Series:
    """One value per group, by the unifier named ``how``."""
    return UNIFIERS[how].unify(column, kind, classes)


def check_unifier(name: str, kind: Kind, how: str) -> str:
    """``how``, if a column of this kind can be unified that way."""
    if how not in UNIFIERS:
        raise InputError(f"there is no unifier {how!r}: they are {', '.join(UNIFIERS)}")
    if kind not in UNIFIERS[how].kinds:
        fitting = ", ".join(n for n, u in UNIFIERS.items() if kind in u.kinds)
        raise TableError(f"column {name!r} is a {kind} and cannot be unified by {how}: use {fitting}")
    return how
