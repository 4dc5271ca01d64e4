"""Counting a release: rows alike, the people among them, and what the groups hold beyond k. Nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ..base.matrix import Labels
from ..method.constraints import Constraint, LDiversity, Sensitive, TCloseness, found
from ..tables.table import typed
from .certificate import Column, Found, Rule


def classes_of_frame(frame: pl.DataFrame, quasi: Sequence[str]) -> Labels:
    """A number for each row, equal where all quasi-identifiers are."""
    keys = pl.DataFrame([frame[name].alias(f"c{j}") for j, name in enumerate(quasi)])  # so that "class" is free
    first = keys.unique(maintain_order=True).with_row_index("class")
    labels = keys.join(first, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["class"]
    return labels.cast(pl.Int64).to_numpy()


def classes_of_rows(matrix: np.ndarray) -> Labels:
    """A number for each row, equal where the rows are the same to the bit."""
    rows = np.ascontiguousarray(matrix)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    labels: Labels = np.unique(keys, return_inverse=True)[1].ravel().astype(np.int64)
    return labels


def count(
    labels: Labels,
    constraints: Sequence[Constraint] = (),
    sensitive: Sequence[Sensitive] = (),
    persons: Labels | None = None,
) -> Found:
    """Count the classes: rows in each, or different persons where ``persons`` says whose row it is."""
    pairs = labels if persons is None else np.unique(np.column_stack([labels, persons]), axis=0)[:, 0]
    per_class = np.bincount(pairs)
    sizes = tuple((int(size), int(number)) for size, number in zip(*np.unique(per_class, return_counts=True), strict=True))
    measured = tuple(
        Rule(name=c.name, column=s.name, asked=float(c.asked), found=float(found(c, s, labels)))  # type: ignore[arg-type]
        for c in constraints
        for s in sensitive
    )
    people = None if persons is None else len(np.unique(persons))
    return Found(
        k=int(per_class.min()), rows=len(labels), groups=len(per_class), class_sizes=sizes, persons=people, constraints=measured
    )


def recount(written: pl.DataFrame, columns: Sequence[Column], constraints: Sequence[Constraint], persons: Labels | None) -> Found:
    """Count a written frame's classes and constraints."""
    quasi = [column.name for column in columns if column.role == "quasi"]
    sensitive = sensitive_columns(written, columns) if constraints else []
    return count(classes_of_frame(written, quasi), constraints, sensitive, persons)


def constraints_of(rules: Sequence[Rule]) -> list[Constraint]:
    """The constraints that a certificate's rules stand for."""
    known: list[Constraint] = []
    for rule in rules:
        if rule.name == "t-closeness":
            constraint: Constraint = TCloseness(rule.asked)
        else:
            constraint = LDiversity(rule.asked, "entropy" if rule.name == "entropy l-diversity" else "distinct")
        if constraint not in known:
            known.append(constraint)
    return known


def sensitive_columns(frame: pl.DataFrame, columns: Sequence[Column]) -> list[Sensitive]:
    """The sensitive columns as codes; text from a CSV is first given its type again."""
    out = []
    for column in columns:
        if column.role == "sensitive":
            values = frame[column.name]
            values = typed(values) if values.dtype == pl.String and column.kind in ("number", "date", "boolean") else values
            if values.dtype in (pl.Categorical, pl.Enum):
                values = values.cast(pl.String)
            codes = values.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
            codes = np.unique(codes, return_inverse=True)[1].ravel().astype(np.int64)
            out.append(Sensitive(column.name, codes, column.kind in ("number", "date")))
    return out
