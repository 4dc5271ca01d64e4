"""What an attacker holds: all originals, the whole release and its certificate, but not which row belongs to whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..release.certificate import Certificate
from ..tables.table import Table
from .linked import Linked
from .published import Published

LEAST_KNOWN, MOST_KNOWN = 10, 250


def _nobody() -> Labels:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class View:
    """The attacker's side of a release; row i of ``released`` is not the row of original i.

    originals, released : quasi-identifiers as numbers in the same columns, (n, d) and (m, d). certificate : as published.
    seed : for whatever the attack draws. table, frame : originals and release with all columns, None for arrays. known,
    known_rows : originals whose released row the attacker knows from elsewhere, and that row; empty unless the attack asks for
    them with ``uses_known_pairs``. group_map, synthesis_map : fitted, where the release was made in this process.
    """

    originals: NDArray[Any]
    released: NDArray[Any]
    certificate: Certificate
    seed: int = 0
    table: Table | None = None
    frame: pl.DataFrame | None = None
    known: Labels = field(default_factory=_nobody)
    known_rows: Labels = field(default_factory=_nobody)
    group_map: Any = None
    synthesis_map: Any = None

    @property
    def published(self) -> Published:
        """What the certificate says of the method and the columns."""
        return Published.of(self.certificate)


def view_of(both: Linked, *, seed: int = 0, with_known_pairs: bool = False) -> View:
    """The attacker's view of a linked release; the link itself stays here."""
    known = known_originals(len(both.x), seed) if with_known_pairs else _nobody()
    return View(
        both.x, both.y, both.certificate, seed, both.table, both.frame, known, both.row_of[known], both.group_map,
        both.synthesis_map,
    )  # fmt: skip


def known_originals(n: int, seed: int) -> Labels:
    """Originals whose released row the attacker knows: one in twenty, at most 250; none if that is too few to learn from."""
    count = min(MOST_KNOWN, n // 20)
    if count < LEAST_KNOWN:
        return _nobody()
    return np.sort(np.random.default_rng([seed, count]).choice(n, count, replace=False))
