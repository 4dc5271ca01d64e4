"""The order of released rows: it depends on what is released and on the seed alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ..base.matrix import Labels
from ..release.certificate import Column
from .counting import classes_of_frame
from .table import Table
from .write import rebuilt


def arranged(
    table: Table, columns: Sequence[Column], groups: pl.DataFrame, labels: Labels, seed: int
) -> tuple[Labels, pl.DataFrame]:
    """The input row of each released row, and the released frame."""
    quasi = list(groups.columns)
    keys = pl.DataFrame([column.alias(f"c{j}") for j, column in enumerate(groups)])  # a name such as ^a$ is a pattern
    rank = keys.select(pl.arg_sort_by(keys.columns)).to_series().to_numpy()
    place = np.empty(len(rank), dtype=np.int64)
    place[rank] = np.arange(len(rank))
    classes = classes_of_frame(groups, quasi)  # groups released alike share one place, so the order cannot tell them apart
    first = np.full(int(classes.max()) + 1, len(rank))
    np.minimum.at(first, classes, place)
    place = first[classes]
    asis = [table.verbatim(c.name) for c in columns if c.role != "quasi"]
    keys = pl.DataFrame([place[labels], *(s.cast(pl.String) for s in asis)], schema=[f"c{j}" for j in range(len(asis) + 1)])
    canonical = keys.select(pl.arg_sort_by(keys.columns)).to_series().to_numpy()
    order = shuffled(canonical.astype(np.int64), seed)
    unified = groups[labels[order]]
    kept = pl.DataFrame([s.gather(order) for s in asis]) if asis else pl.DataFrame()
    frame = pl.DataFrame([unified[c.name] if c.role == "quasi" else kept[c.name] for c in columns])
    return order, rebuilt(frame)  # gathering moves views only: the buffers would still hold the input's order


def shuffled(order: Labels, seed: int) -> Labels:
    """The order, shuffled. It starts from released values alone, so the original row order cannot be recovered with the seed."""
    shuffled: Labels = np.random.default_rng([seed, 0x6F6D6F6B]).permutation(order)
    return shuffled
