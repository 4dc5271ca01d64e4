"""Which column plays which part. Nothing is released because it was forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import InputError, TableError
from .table import Table

Role = Literal["identifier", "quasi", "sensitive", "keep", "person"]
Rest = Literal["drop", "quasi", "sensitive", "keep"]
RESTS: tuple[Rest, ...] = ("drop", "quasi", "sensitive", "keep")


@dataclass(frozen=True)
class Roles:
    """Column names, or patterns such as ``feat_*``, by role.

    identifier : removed. quasi : made equal within each group. sensitive : released as it is, and what l-diversity and
    t-closeness look at. keep : released as it is. person : says whose row it is; removed. rest : what becomes of columns
    that no role names; without it they are an error.
    """

    identifier: Sequence[str] = ()
    quasi: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    keep: Sequence[str] = ()
    person: str | None = None
    rest: Rest | None = None

    def __post_init__(self) -> None:
        for role in ("identifier", "quasi", "sensitive", "keep"):
            given = getattr(self, role)
            if isinstance(given, str):  # letter by letter it would name other columns
                raise TableError(f"{role} must be a list of column names, not a string: write {role}=[{given!r}]")
            try:
                names = tuple(given)
            except TypeError:
                names = (None,)
            if not all(isinstance(name, str) for name in names):
                raise TableError(f"{role} must be a list of column names, such as ['age', 'zip']")
            object.__setattr__(self, role, names)
        if self.person is not None and not (isinstance(self.person, str) and self.person):
            raise TableError("person must be the name of one column, such as 'patient'")

    def resolve(self, table: Table) -> dict[str, Role]:
        """The role of every column of the table."""
        columns = table.frame.columns
        if self.person is not None and self.person not in columns:  # one column, not a pattern
            raise _unknown(self.person, columns)
        roles: dict[str, Role] = {}
        named: tuple[tuple[Role, Sequence[str]], ...] = (
            ("identifier", self.identifier),
            ("quasi", self.quasi),
            ("sensitive", self.sensitive),
            ("keep", self.keep),
            ("person", (self.person,) if self.person else ()),
        )
        for role, patterns in named:
            for name in _expand(patterns, columns):
                if name in roles and roles[name] != role:
                    raise TableError(f"column {name!r} is named both as {roles[name]} and as {role}: choose one")
                roles[name] = role
        for name in columns:
            if name not in roles:
                roles[name] = self._unnamed(name, table, roles)
        if "quasi" not in roles.values():
            raise TableError("no quasi-identifier is named, so there is nothing to anonymize: name at least one")
        return {name: roles[name] for name in columns}

    def _unnamed(self, name: str, table: Table, roles: dict[str, Role]) -> Role:
        if self.rest is not None:
            if self.rest not in RESTS:
                raise TableError(f"the rest of the columns can be {', '.join(RESTS)}, not {self.rest!r}")
            return "identifier" if self.rest == "drop" else self.rest
        if counts_rows(table, name):
            return "identifier"  # a row number says nothing but the order, which is not released either
        left = [c for c in table.frame.columns if c not in roles and not counts_rows(table, c)]
        shown = ", ".join(repr(c) for c in left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        raise TableError(
            f"no role is named for {shown}: name them as identifier, quasi, sensitive or keep, "
            "or say what becomes of the rest (--rest drop)"
        )


def _expand(patterns: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Columns that the patterns name, each pattern naming at least one."""
    found: list[str] = []
    for pattern in patterns:
        hits = [pattern] if pattern in columns else [c for c in columns if fnmatchcase(c, pattern)]
        if not hits:
            raise _unknown(pattern, columns)
        found += [c for c in hits if c not in found]
    return found


def _unknown(name: str, columns: Sequence[str]) -> TableError:
    near = get_close_matches(name, columns, n=1, cutoff=0.4)
    return TableError(
        f"there is no column {name!r}" + (f": did you mean {near[0]!r}?" if near else f"; there are {len(columns)} columns")
    )


def counts_rows(table: Table, name: str) -> bool:
    """Whether a column is 0, 1, 2, … or 1, 2, 3, …: a row number."""
    column = table.frame[name]
    if not column.dtype.is_integer() or column.null_count() or len(column) < 2:
        return False
    values = column.to_numpy()
    return values[0] in (0, 1) and bool((np.diff(values) == 1).all())


def whose(column: pl.Series) -> NDArray[Any]:
    """The persons a column names, as numbers; a row of nobody is refused."""
    if column.null_count():
        raise InputError(f"column {column.name!r} says whose row it is, but {column.null_count()} rows name nobody")
    return column.cast(pl.String).rank("dense").to_numpy()
