"""Values that fewer than k persons have: what is shown in their place.

A set, a mode, a median or the end of a range repeats a member's own value. It is shown as it is only if at least k persons
of the table have it. The others are rounded, no more than needed, so that at least k persons of the table are shown as the
same; or they are shown as a neighbour that is nearer. So whoever sees a value, and knows this rule, still has k persons to
choose from. An extreme value, which only a far coarser rounding would join with others, is not shown at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...base.persons import Holders
from ..table import Kind
from .rounding import HIDDEN, Rounding, Way, cuts, period_levels, real_levels, whole_levels

REACH = 10.0  # steps are tried up to so many times the spread of the middle half of the rare values
LONGEST = 64  # digits of codes that are cut one by one
EXACT = 1 << 52  # whole numbers above it are rounded as Python's, which do not overflow


@dataclass(frozen=True)
class Shown:
    """What each of a column's sorted different values is shown as, and which are hidden."""

    values: NDArray[Any]  # (m,)
    hidden: NDArray[np.bool_]  # (m,)

    def to_list(self) -> list[Any]:
        return [HIDDEN if hidden else value for value, hidden in zip(self.values.tolist(), self.hidden, strict=True)]


def shared(values: NDArray[Any], holders: Holders, k: int, levels: Sequence[Rounding], way: Way, near: bool = True) -> Shown:
    """Show each of the sorted different ``values`` as something that at least k persons are shown as.

    A value of k persons is shown as it is. Between two such values the others are taken from the outer one inwards, k
    persons at a time, and rounded by the finest of the ``levels`` that makes these k the same. With ``near`` a value is
    shown as its neighbour where that is no farther off: for the ends of ranges the next one below or above.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.array([30, 31, 36, 37, 90])  # two people are 30
    >>> shared(ages, Holders.of(np.array([0, 0, 1, 2, 3, 4]), None), 2, [lambda x: x // 10 * 10], "down").to_list()
    [30, 30, 30, 30, 30]
    >>> shared(ages, Holders.of(np.array([0, 0, 1, 2, 3, 4]), None), 2, [lambda x: -(-x // 10) * 10], "up").to_list()
    [30, 40, 40, 40, '*']
    """
    rare = holders.rare(len(values), k)
    shown, hidden = values.copy(), np.zeros(len(values), dtype=np.bool_)
    rounded = [level(values) for level in levels]
    inwards = np.arange(len(values)) if way == "down" else np.arange(len(values))[::-1]
    run: list[int] = []
    outer: Any = None
    for i in [*inwards.tolist(), -1]:
        if i >= 0 and rare[i]:
            run.append(i)
            continue
        inner = values[i] if i >= 0 and way == "nearest" else None
        _show_run(run, _Run(values, holders, k, rounded, way, near, outer, inner), shown, hidden)
        run, outer = [], None if i < 0 else values[i]
    if way == "nearest" and near and not hidden.all():
        for i in np.flatnonzero(hidden):  # beyond all others: shown as the nearest of them
            shown[i] = shown[~hidden][np.argmin(np.abs(shown[~hidden] - values[i]))]
        hidden[:] = False
    return Shown(shown, hidden)


@dataclass(frozen=True)
class _Run:
    """Rare values between two that may be shown."""

    values: NDArray[Any]
    holders: Holders
    k: int
    rounded: list[NDArray[Any]]
    way: Way
    near: bool
    outer: Any
    inner: Any

    def finest(self, a: int, b: int) -> int | None:
        """The finest level that makes two values, and so all between them, the same."""
        return next((level for level, r in enumerate(self.rounded) if r[a] == r[b]), None)

    def neighbour(self, value: Any, outer: Any) -> Any:
        """What is shown beside a value; of two the nearer."""
        there = [s for s in (outer, self.inner) if s is not None] if self.near else []
        return min(there, key=lambda s: abs(s - value)) if len(there) > 1 else (there or [None])[0]


def _show_run(run: list[int], rule: _Run, shown: NDArray[Any], hidden: NDArray[np.bool_]) -> None:
    ends = rule.holders.ends(run, rule.k)
    outer, at = rule.outer, 0
    while at < len(run):
        i, end = run[at], ends[at]
        level = None if end is None else rule.finest(i, run[end])
        own = None if level is None else rule.rounded[level][i]
        beside = rule.neighbour(rule.values[i], outer)
        if beside is not None and (own is None or _no_farther(beside, own, rule.values[i])):
            shown[i] = beside
            at += 1
        elif own is None:
            hidden[i] = True
            at += 1
        else:
            while at < len(run) and rule.rounded[level or 0][run[at]] == own:
                shown[run[at]] = own
                at += 1
            outer = own


def _no_farther(a: Any, b: Any, value: Any) -> bool:
    return bool(abs(a - value) <= abs(b - value))


def shown_as(values: pl.Series, kind: Kind, holders: Holders, k: int, way: Way) -> list[Any]:
    """What each of the sorted different ``values`` is shown as; :data:`HIDDEN` where it cannot be.

    Numbers become multiples of 1, 2 or 5 times a power of ten, dates months, years, decades and centuries: the nearest
    one, or for the ends of ranges the one below or above. Codes lose their last digits. Other text is hidden, or, as the
    end of a range, replaced by the next text that k persons have.
    """
    if not len(values):
        return []
    if kind == "date":
        return _dates(values, holders, k, way)
    if kind == "number":
        return _numbers(values, holders, k, way)
    if way != "nearest":
        return _next_common(values, holders, k, way)
    codes = values.cast(pl.String).to_list()
    longest = max(map(len, codes))
    if kind == "code" and longest <= LONGEST:
        return shared(np.array(codes, dtype=np.str_), holders, k, cuts(longest), way, near=False).to_list()
    return [HIDDEN if r else v for v, r in zip(values.to_list(), holders.rare(len(values), k), strict=True)]


def _next_common(values: pl.Series, holders: Holders, k: int, way: Way) -> list[Any]:
    """The nearest value in order, below or above, that k persons have."""
    rare = holders.rare(len(values), k)
    place = np.where(rare, -1 if way == "down" else len(values), np.arange(len(values)))
    nearest = np.maximum.accumulate(place) if way == "down" else np.minimum.accumulate(place[::-1])[::-1]
    plain = values.to_list()
    return [plain[j] if 0 <= j < len(plain) else HIDDEN for j in nearest]


def _spread(values: NDArray[Any], holders: Holders, k: int) -> Any:
    """The width of the middle half of the rare values, without interpolation: one far value does not widen it."""
    rare = np.sort(values[holders.codes[holders.rare(len(values), k)[holders.codes]]])
    if not len(rare):
        return values[0] - values[0]
    low, high = math.ceil((len(rare) - 1) / 4), (3 * (len(rare) - 1)) // 4
    return rare[max(low, high)] - rare[min(low, high)]


def _numbers(values: pl.Series, holders: Holders, k: int, way: Way) -> list[Any]:
    if values.dtype.is_integer():
        numbers = np.array(values.to_list(), dtype=object)
        if max(abs(v) for v in (values[0], values[-1])) < EXACT:
            numbers = numbers.astype(np.int64)
        levels = whole_levels(REACH * int(_spread(numbers, holders, k)), way)
    else:
        numbers = values.cast(pl.Float64).to_numpy().astype(np.float64)
        largest = float(np.abs(numbers[[0, -1]]).max())
        levels = real_levels(largest, REACH * float(_spread(numbers, holders, k)), way)
    return shared(numbers, holders, k, levels, way).to_list()


def _dates(values: pl.Series, holders: Holders, k: int, way: Way) -> list[Any]:
    days = values.dtype == pl.Date
    unit = "D" if days else getattr(values.dtype, "time_unit", None) or "us"
    moments = values.to_physical().cast(pl.Int64).to_numpy().view(f"M8[{unit}]")
    reach = REACH * (_spread(moments, holders, k) / np.timedelta64(1, "h"))
    shown = shared(moments, holders, k, period_levels(unit, reach, way), way)
    out = pl.Series(shown.values.astype(np.int64)).cast(values.to_physical().dtype).cast(values.dtype)
    return [HIDDEN if h else s for s, h in zip(out.to_list(), shown.hidden, strict=True)]
