"""What the person who makes a release should be careful with, in sentences that hold no cell of the input."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .table import Table


def telling_columns(table: Table, role: Mapping[str, str]) -> list[str]:
    """Columns released as they are that nearly tell every row apart."""
    notes = []
    for name, part in role.items():
        if part in ("sensitive", "keep"):
            share = table.frame[name].n_unique() / max(len(table.frame), 1)
            if share > 0.5 and len(table.frame) > 20:
                notes.append(
                    f"Column {name} is released unchanged and differs in {share:.0%} of the rows: it may identify people."
                )
    return notes


def uneven_units(x: np.ndarray, standardized: bool) -> list[str]:
    """A note where the columns' units differ so much that a map would see only few of them."""
    deviation = x.std(axis=0)
    deviation = deviation[deviation > 0]
    if len(deviation) > 1 and deviation.max() > 1000 * deviation.min() and not standardized:
        return [
            "The columns' standard deviations differ more than 1000-fold, so few columns decide: std+ before the map "
            "would even them out."
        ]
    return []
