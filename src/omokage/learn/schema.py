"""What is public about a table, declared before anyone looks at it: bounds, categories, bins, classes.

A bound or a list of categories read from the data would tell about the data, so learners take them
from a ``Schema``, most often a TOML file::

    [target]
    column = "income"
    classes = ["<=50K", ">50K"]

    [columns.age]
    low = 17
    high = 90
    cuts = [25, 35, 45, 55, 65]   # inner bin edges; a value on an edge belongs to the bin above it
    whole = true                  # whole numbers; a synthetic table then has them too

    [columns.workclass]
    categories = ["Private", "State-gov", "Elsewhere"]
    other = "Elsewhere"           # where a category that is not listed goes; without it such a row is an error

Columns that are not listed are not used. Numbers beyond their bounds count as the bound.

The schema is also the range of tables that a promise is about. Every table in it is learned from, whatever its
rows are: all of one class, all the same, just one. A table outside (a missing value, a category or label that
is not declared, a number that is none) is refused before anything is learned; that refusal is for the holder of
the data, and no ε covers passing it on.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from omokage.errors import InputError, TableError
from omokage.learn.records import as_frame, column_of, look_up
from omokage.learn.settings import is_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_LIST = 100_000
_LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class Numeric:
    """A column of numbers between public bounds; with ``cuts`` it is also, or only, the bin it falls into."""

    name: str
    low: float
    high: float
    cuts: tuple[float, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.cuts, tuple) or len(self.cuts) > _LARGEST_LIST:
            raise InputError(f"the cuts of column {self.name!r} are not usable: list at most {_LARGEST_LIST:,} numbers")
        if not isinstance(self.whole, bool):
            raise InputError(f"whole of column {self.name!r} is neither true nor false: give one of them")
        edges = (self.low, *self.cuts, self.high)
        if not all(map(is_number, edges)) or any(float(a) >= float(b) for a, b in itertools.pairwise(edges)):
            raise InputError(f"the bounds of column {self.name!r} do not rise: give finite numbers with low < cuts < high")
        if self.whole and max(abs(self.low), abs(self.high)) > _LARGEST_WHOLE:
            raise InputError(f"the bounds of column {self.name!r} are too far apart for whole numbers: stay within ±2**53")

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.cuts) + 1

    @property
    def features(self) -> tuple[str, ...]:
        if not self.cuts:
            return (self.name,)
        return tuple(f"{self.name}[{k}]" for k in range(self.size))

    def read(self, frame: pl.DataFrame) -> Floats:
        column = column_of(frame, self.name)
        try:
            values = column.cast(pl.Float64).to_numpy()
        except pl.exceptions.PolarsError:
            raise TableError(
                f"column {self.name!r} is declared numeric but holds something else: convert it, or declare categories"
            ) from None
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise TableError(f"column {self.name!r} has no usable number in row {row + 1}: drop or fill such rows first")
        return np.asarray(np.clip(values, self.low, self.high))

    def codes(self, frame: pl.DataFrame) -> Integers:
        return np.searchsorted(np.array(self.cuts), self.read(frame), side="right").astype(np.int64)

    def encode(self, frame: pl.DataFrame) -> Floats:
        if self.cuts:
            return np.eye(self.size)[self.codes(frame)]
        return ((self.read(frame) - self.low) / (self.high - self.low))[:, None]

    def draw(self, codes: Integers, rng: np.random.Generator) -> pl.Series:
        """Values for bins: spread evenly over the bin, since nothing finer was released."""
        edges = np.array([self.low, *self.cuts, self.high], np.float64)
        values = edges[codes] + rng.random(len(codes)) * (edges[codes + 1] - edges[codes])
        if self.whole:
            values = np.clip(np.floor(values), np.ceil(edges[codes]), None)
        return pl.Series(self.name, values.astype(np.int64) if self.whole else values)


@dataclass(frozen=True)
class Categorical:
    """A column whose categories are public; ``other`` takes what is not listed."""

    name: str
    categories: tuple[str, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        listed = self.categories
        if not isinstance(listed, tuple) or not 1 <= len(listed) <= _LARGEST_LIST or not all(isinstance(c, str) for c in listed):
            raise InputError(f"the categories of column {self.name!r} are not usable: list 1 to {_LARGEST_LIST:,} texts")
        if len(set(listed)) != len(listed):
            raise InputError(f"a category of column {self.name!r} is listed twice: list each once")
        if self.other is not None and self.other not in self.categories:
            raise InputError(f"other of column {self.name!r} is not a category: name one of its categories")

    @property
    def size(self) -> int:
        return len(self.categories)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={c}" for c in self.categories)

    def codes(self, frame: pl.DataFrame) -> Integers:
        return look_up(column_of(frame, self.name), self.name, self.categories, self.other)

    def encode(self, frame: pl.DataFrame) -> Floats:
        return np.eye(self.size)[self.codes(frame)]

    def draw(self, codes: Integers, rng: np.random.Generator) -> pl.Series:
        return pl.Series(self.name, np.array(self.categories, dtype=object)[codes], dtype=pl.String)


Column = Numeric | Categorical


@dataclass(frozen=True)
class Schema:
    """The columns to learn from, the column to predict and its classes.

    Examples
    --------
    >>> schema = Schema((Numeric("age", 0, 100, cuts=(50,)), Categorical("job", ("a", "b"))), "rich", ("no", "yes"))
    >>> schema.encode({"age": [20, 120], "job": ["b", "a"]})
    array([[1., 0., 0., 1.],
           [0., 1., 1., 0.]])
    """

    columns: tuple[Column, ...]
    target: str = "target"
    classes: tuple[Any, ...] = (0, 1)
    features: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_name(self.target)
        names = [c.name for c in self.columns]
        if not names or len({*names, self.target}) != len(names) + 1:
            raise InputError(
                "the schema has no column, or a name twice: list at least one column, and give the target a name of its own"
            )
        check_classes(self.classes)
        object.__setattr__(self, "features", tuple(f for c in self.columns for f in c.features))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins or categories of each column."""
        return tuple(c.size for c in self.columns)

    def encode(self, table: object) -> Floats:
        """Network inputs in [0, 1], ``(n, features)``: one-hot categories and bins, scaled numbers."""
        frame = as_frame(table)
        return np.ascontiguousarray(np.hstack([c.encode(frame) for c in self.columns]))

    def codes(self, table: object) -> Integers:
        """Bin or category numbers, ``(n, columns)``."""
        frame = as_frame(table)
        return np.stack([c.codes(frame) for c in self.columns], axis=1)

    def labels(self, table: object) -> list[Any]:
        """The target column as classes; text as read from a CSV file is matched with the classes' spelling.

        >>> Schema((Numeric("x", 0, 1),), "y", (0, 1)).labels({"y": ["1", "0", None, "?"]})
        [1, 0, None, '?']
        """
        spelled = {str(c): c for c in self.classes}
        return [v if v is None else spelled.get(str(v), v) for v in column_of(as_frame(table), self.target).to_list()]

    def draw(self, codes: Integers, rng: np.random.Generator) -> pl.DataFrame:
        """A table with these bins and categories."""
        return pl.DataFrame([c.draw(codes[:, j], rng) for j, c in enumerate(self.columns)])

    def to_json(self) -> dict[str, Any]:
        """The same tree as the TOML file."""
        columns: dict[str, Any] = {}
        for c in self.columns:
            if isinstance(c, Numeric):
                columns[c.name] = {"low": c.low, "high": c.high, "cuts": list(c.cuts), "whole": c.whole}
            else:
                columns[c.name] = {
                    "categories": list(c.categories),
                    **({} if c.other is None else {"other": c.other}),
                }
        return {"target": {"column": self.target, "classes": list(self.classes)}, "columns": columns}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Schema:
        """Build a schema from the tree that a TOML or JSON file holds."""
        _check_keys(tree, {"target", "columns"}, "the schema", required={"columns"})
        target = tree.get("target", {})
        _check_keys(target, {"column", "classes"}, "[target]")
        if not isinstance(tree["columns"], Mapping):
            raise InputError("columns are not tables: write them like [columns.age]")
        columns = tuple(_column_from(name, spec) for name, spec in tree["columns"].items())
        return cls(columns, target.get("column", "target"), _listed(target.get("classes", [0, 1]), "[target] classes"))


def load_schema(path: str | Path) -> Schema:
    """Read a schema file."""
    try:
        tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"schema {path} cannot be read ({error}): check the path") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"schema {path} is not TOML ({error}): correct it") from error
    try:
        return Schema.from_json(tree)
    except InputError as error:
        raise InputError(f"schema {path}: {error}") from error


def check_classes(classes: Any) -> None:
    """Labels: two or more different texts or numbers. Spelled alike, they could not be told apart in a CSV file."""
    if not isinstance(classes, tuple) or not 2 <= len(classes) <= _LARGEST_LIST:
        raise InputError(f"the classes are not usable: list 2 to {_LARGEST_LIST:,} labels")
    if not all(isinstance(c, str | bool) or is_number(c) for c in classes):
        raise InputError("a class is neither a text nor a finite number: list such labels only")
    if len({str(c) for c in classes}) != len(classes) or len(set(classes)) != len(classes):
        raise InputError("two classes are spelled alike: list different labels")


def _column_from(name: str, spec: Mapping[str, Any]) -> Column:
    where = f"[columns.{name}]"
    if isinstance(spec, Mapping) and "categories" in spec:
        _check_keys(spec, {"categories", "other"}, where)
        # Numbers are fine as categories: what a table holds is compared as text.
        named = tuple(str(c) if is_number(c) else c for c in _listed(spec["categories"], f"{where} categories"))
        return Categorical(name, named, spec.get("other"))
    _check_keys(spec, {"low", "high", "cuts", "whole"}, where, required={"low", "high"})
    return Numeric(name, spec["low"], spec["high"], _listed(spec.get("cuts", []), f"{where} cuts"), spec.get("whole", False))


def _listed(value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where} is not a list: write it as one")
    return tuple(value)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InputError("a column has no name: give it a text that is not empty")


def _check_keys(tree: Any, allowed: set[str], where: str, required: set[str] | None = None) -> None:
    if not isinstance(tree, Mapping):
        raise InputError(f"{where} is not a table: write keys and values")
    unknown, missing = set(tree) - allowed, (required or set()) - set(tree)
    if unknown or missing:
        found = f"unknown {sorted(map(str, unknown))}, missing {sorted(missing)}"
        raise InputError(f"{where} has wrong keys ({found}): use {', '.join(sorted(allowed))}")
