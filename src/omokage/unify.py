"""What a group becomes: one value per column, computed from the group's own values.

A matrix unifier has ``unify(Z, labels) -> (groups, d)``. Columns of a table are unified by name, each in its own terms;
``UNIFIERS`` says which names fit which kinds of column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from .errors import InputError, TableError
from .grouping.constraints import members_of
from .grouping.matrix import Labels
from .tables.encode import plain_numbers
from .tables.table import Kind

Weights = NDArray[np.float64] | None


@dataclass(frozen=True)
class Mean:
    """The mean of each group.

    Examples
    --------
    >>> import numpy as np
    >>> Mean().unify(np.array([[22.0], [26.0], [31.0]]), np.array([0, 0, 1]))
    array([[24.],
           [31.]])
    """

    def unify(self, z: NDArray[Any], labels: Labels, weights: Weights = None) -> NDArray[Any]:
        """Group means (groups, d); ``weights`` lets a person with many rows count once."""
        n = len(labels)
        w = np.ones(n) if weights is None else weights
        total = sparse.csr_array((w, (labels, np.arange(n))), shape=(int(labels.max()) + 1, n))
        means: NDArray[Any] = (total @ z.astype(np.float64)) / np.bincount(labels, w)[:, None]
        return means.astype(z.dtype)


@dataclass(frozen=True)
class Median:
    """The median of each group, column by column; less moved by one far member than the mean."""

    def unify(self, z: NDArray[Any], labels: Labels, weights: Weights = None) -> NDArray[Any]:
        """Group medians (groups, d); every row counts once."""
        return np.stack([np.median(z[rows], axis=0) for rows in members_of(labels)]).astype(z.dtype)


@dataclass(frozen=True)
class Spread:
    """The mean of each group, moved away from the overall mean so that every column has its spread again.

    Averaging shrinks. This is one linear function for all groups, set by each column's standard deviation over all rows
    before and after averaging, so the members of a group still come out the same. ``most`` limits how far it stretches.

    Examples
    --------
    >>> import numpy as np
    >>> z, labels = np.array([[0.0], [2.0], [4.0], [6.0]]), np.array([0, 0, 1, 1])
    >>> Spread().unify(z, labels)[labels].std() == z.std()
    np.True_
    """

    most: float = 3.0

    def unify(self, z: NDArray[Any], labels: Labels, weights: Weights = None) -> NDArray[Any]:
        """Group means (groups, d), stretched from the overall mean."""
        means = Mean().unify(z.astype(np.float64), labels, weights)
        share = np.bincount(labels, weights) / np.bincount(labels, weights).sum()
        middle = share @ means
        after = np.sqrt(share @ (means - middle) ** 2)
        before = z.std(axis=0, dtype=np.float64)
        stretch = np.minimum(np.divide(before, after, out=np.ones_like(after), where=after > 1e-12 * before), self.most)
        spread: NDArray[Any] = middle + (means - middle) * np.maximum(stretch, 1.0)
        return spread.astype(z.dtype)


MATRIX_UNIFIERS: dict[str, Mean | Median | Spread] = {"mean": Mean(), "median": Median(), "spread": Spread()}


@dataclass(frozen=True)
class _Coded:
    """A column as ranks among its sorted different values, −1 where a value is missing, in the order of the groups."""

    codes: NDArray[np.int64]
    first: NDArray[np.int64]  # where each group begins
    values: list[Any]

    @classmethod
    def of(cls, column: pl.Series, labels: Labels) -> _Coded:
        if column.dtype in (pl.Categorical, pl.Enum):
            column = column.cast(pl.String)
        values = column.drop_nulls().unique().sort()
        codes = (column.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy()
        order = np.argsort(labels, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(labels))[:-1]])
        return cls(codes[order].astype(np.int64), first, values.to_list())

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
        return f"{value:.15g}"
    return str(value)


def _mean(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    values = plain_numbers(column)
    known = ~np.isnan(values)
    w = known * (1.0 if weights is None else weights)
    total = np.bincount(labels, w * np.where(known, values, 0.0))
    size = np.bincount(labels, w)
    means = np.divide(total, size, out=np.full(len(size), np.nan), where=size > 0)
    return _like(column, means)


def _median(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    values = plain_numbers(column)
    middle = []
    for rows in members_of(labels):
        known = values[rows][~np.isnan(values[rows])]
        middle.append(np.median(known) if len(known) else np.nan)
    return _like(column, np.array(middle))


def _like(column: pl.Series, values: NDArray[np.float64]) -> pl.Series:
    """Values as the column's type where that can hold them: dates, and whole numbers if all are whole."""
    out = pl.Series(column.name, values).fill_nan(None)
    if column.dtype in (pl.Date, pl.Datetime):
        return out.round().cast(pl.Int64).cast(column.to_physical().dtype).cast(column.dtype)
    if column.dtype.is_integer() and (out.drop_nulls() == out.drop_nulls().round()).all():
        return out.cast(pl.Int64)
    return out


def _mode(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    coded = _Coded.of(column, labels)
    best = [int(np.bincount(c[c >= 0]).argmax()) if (c >= 0).any() else -1 for c in coded.groups()]
    return pl.Series(column.name, [coded.values[b] if b >= 0 else None for b in best], dtype=_plain(column))


def _plain(column: pl.Series) -> Any:
    return pl.String if column.dtype in (pl.Categorical, pl.Enum) else column.dtype


def _suppress(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    coded = _Coded.of(column, labels)
    most, alike = coded.most(), coded.alike()
    cells = [(None if m < 0 else _text(coded.values[m])) if a else "*" for m, a in zip(most, alike, strict=True)]
    return pl.Series(column.name, cells, dtype=pl.String)


def _range(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    coded = _Coded.of(column, labels)
    text = [_text(value) for value in coded.values]
    cells = [
        None if low < 0 else text[low] if low == high else f"[{text[low]}, {text[high]}]"
        for low, high in zip(coded.least(), coded.most(), strict=True)
    ]
    return pl.Series(column.name, cells, dtype=pl.String)


def _set(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    coded = _Coded.of(column, labels)
    text = [_text(value) for value in coded.values]
    cells = []
    for codes in coded.groups():
        there = np.unique(codes[codes >= 0])
        cells.append(
            None if not len(there) else text[there[0]] if len(there) == 1 else "{" + ", ".join(text[c] for c in there) + "}"
        )
    return pl.Series(column.name, cells, dtype=pl.String)


def _prefix(column: pl.Series, kind: Kind, labels: Labels, weights: Weights) -> pl.Series:
    coded = _Coded.of(column.cast(pl.String), labels)
    cells: list[str | None] = []
    for codes in coded.groups():
        there = np.unique(codes)
        texts = ["" if c < 0 else coded.values[c] for c in there]
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
    unify: Callable[[pl.Series, Kind, Labels, Weights], pl.Series]


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


def unify_column(column: pl.Series, kind: Kind, how: str, labels: Labels, weights: Weights = None) -> pl.Series:
    """One value per group, by the unifier named ``how``."""
    return UNIFIERS[how].unify(column, kind, labels, weights)


def check_unifier(name: str, kind: Kind, how: str) -> str:
    """``how``, if a column of this kind can be unified that way."""
    if how not in UNIFIERS:
        raise InputError(f"there is no unifier {how!r}: they are {', '.join(UNIFIERS)}")
    if kind not in UNIFIERS[how].kinds:
        fitting = ", ".join(n for n, u in UNIFIERS.items() if kind in u.kinds)
        raise TableError(f"column {name!r} is a {kind} and cannot be unified by {how}: use {fitting}")
    return how
