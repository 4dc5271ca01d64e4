"""What a group must hold beyond k: l-diversity (distinct or entropy) and t-closeness of the sensitive columns.

Definitions: Machanavajjhala et al. 2007 (l-diversity) and Li, Li & Venkatasubramanian 2007 (t-closeness; the earth mover's
distance, with all values equally far apart for categories and with neighbouring values 1/(m − 1) apart for numbers).
Every row counts once; a missing value is a value of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels, members_of
from ..errors import InputError, NotEnoughPeople
from ..release.rules import Constraint, Sensitive, shares_of


def merge_until(labels: Labels, z: NDArray[Any], columns: Sequence[Sensitive], constraints: Sequence[Constraint]) -> Labels:
    """Merge each group that fails a constraint, the smallest first, with the group whose mean is nearest in ``z``."""
    if not constraints:
        return labels
    if not columns:
        raise InputError("l-diversity and t-closeness need a sensitive column: name one")
    members = members_of(labels)
    means = np.stack([z[rows].mean(axis=0, dtype=np.float64) for rows in members])
    shares = [shares_of(column) for column in columns]
    alive = np.ones(len(members), dtype=bool)

    def passes(rows: NDArray[np.int64]) -> bool:
        return all(
            c.holds(c.measure(column.codes[rows], share, column.ordered))
            for c in constraints
            for column, share in zip(columns, shares, strict=True)
        )

    failing = {g for g, rows in enumerate(members) if not passes(rows)}
    while failing:
        g = min(failing, key=lambda h: (len(members[h]), h))
        if alive.sum() == 1:
            asked = " and ".join(f"{c.name} of {c.asked:g}" for c in constraints)
            raise NotEnoughPeople(f"{asked} cannot be reached even with all rows in one group: ask for less")
        gap = ((means - means[g]) ** 2).sum(axis=1)
        gap[g] = np.inf
        gap[~alive] = np.inf
        h = int(gap.argmin())
        size_g, size_h = len(members[g]), len(members[h])
        means[h] = (means[g] * size_g + means[h] * size_h) / (size_g + size_h)
        members[h] = np.concatenate([members[h], members[g]])
        alive[g] = False
        failing -= {g, h}
        if not passes(members[h]):
            failing.add(h)
    merged = np.empty_like(labels)
    for new, left in enumerate(np.flatnonzero(alive)):
        merged[members[left]] = new
    return merged
