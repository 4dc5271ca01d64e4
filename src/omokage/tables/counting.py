"""Counting a table: rows alike, and its sensitive columns as codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ..base.matrix import Labels
from ..release.certificate import Column, Found
from ..release.counting import count
from ..release.rules import Constraint, Sensitive
from .table import typed


def classes_of_frame(frame: pl.DataFrame, quasi: Sequence[str]) -> Labels:
    """A number for each row, equal where all quasi-identifiers are."""
    keys = pl.DataFrame([frame[name].alias(f"c{j}") for j, name in enumerate(quasi)])  # so that "class" is free
    first = keys.unique(maintain_order=True).with_row_index("class")
    labels = keys.join(first, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["class"]
    return labels.cast(pl.Int64).to_numpy()


def recount(written: pl.DataFrame, columns: Sequence[Column], constraints: Sequence[Constraint], persons: Labels | None) -> Found:
    """Count a written frame's classes and constraints."""
    quasi = [column.name for column in columns if column.role == "quasi"]
    sensitive = sensitive_columns(written, columns) if constraints else []
    return count(classes_of_frame(written, quasi), constraints, sensitive, persons)


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
