"""The method repeated: the attacker runs what the certificate describes on the originals, and looks up what became of each.

Grouping that draws no random numbers gives the attacker the very groups of the release: then only the size of a class protects.
The seed of a grouping that draws some is secret, so the attacker uses another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .linked import link
from .view import View


def repeated_rows(view: View) -> NDArray[Any]:
    """The released row that each original has in the attacker's own run, in the columns of ``view.released``."""
    published = view.published
    seed = int(np.random.default_rng([view.seed, 0x61747461]).integers(2**62))
    anonymizer = published.anonymizer(seed, view.group_map, view.synthesis_map)
    if view.table is None:
        return link(view.originals, anonymizer.release(view.originals, **published.written)).aligned
    about = {"roles": published.roles, "unify": published.unifiers, **published.written}
    return link(view.table, anonymizer.release(view.table, **about)).aligned
