"""Disclosure: what a release tells about people without linking a record: groups that agree, inference, membership.

Every risk stands beside its baseline: what the attacker would guess without the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..base.intervals import Risk, wilson
from ..base.matrix import Labels
from ..release.certificate import Column
from ..release.release import Release
from ..release.rules import LDiversity, TCloseness, found
from ..tables.counting import sensitive_columns
from .assignment.transport import distinct_rows
from .linked import Linked, link
from .reidentification import nearest_rows
from .rulers import Ruler, raw


@dataclass(frozen=True)
class SensitiveDisclosure:
    """One sensitive column: l and t found, the share of rows whose class gives the value away, and attribute inference.

    Inference: the attacker knows a person's quasi-identifiers, takes the nearest released class and guesses its most
    frequent value; the baseline guesses the most frequent value of all.
    """

    column: str
    distinct_l: float
    entropy_l: float
    t: float
    given_away: float
    inference: Risk


@dataclass(frozen=True)
class Disclosure:
    """Everything but re-identification.

    singling_out : share of the attacker's predicates ("nearest to this class, and with these columns as they are") that fit
    exactly one original; the baseline uses the columns as they are alone. membership : how often the attacker tells who was
    in the data from who was not, by distance; baseline one half; None without people who were not.
    """

    sizes: dict[int, int]
    sensitive: tuple[SensitiveDisclosure, ...]
    singling_out: Risk
    membership: Risk | None


def disclosure(
    original: Any, release: Release | Linked, *, outsiders: NDArray[Any] | None = None, ruler: Ruler | None = None
) -> Disclosure:
    """Measure what a release gives away.

    Parameters
    ----------
    original : the data the release was made from; ignored for a :class:`Linked`
    outsiders : (m, d) array
        People who were not in the data, in the originals' space, for membership inference.
    ruler : Ruler
        What the nearest class is nearest in; the columns as they are by default.
    """
    both = link(original, release)
    measure = ruler or raw(both, 0)
    _, which, capacity = distinct_rows(both.y)
    centres = measure.released(np.unique(which, return_index=True)[1])
    inside = measure.originals(np.arange(len(both.x)))
    nearest = nearest_rows(inside, centres)
    sizes = dict(zip(*(a.tolist() for a in np.unique(capacity, return_counts=True)), strict=True))
    columns = both.certificate.columns
    asis = [c for c in columns if c.role in ("sensitive", "keep")]
    sensitive = [_sensitive(both, which, nearest, column) for column in columns if column.role == "sensitive"]
    outside = None if outsiders is None or measure.outsiders is None else measure.outsiders(outsiders)
    membership = None if outside is None else membership_risk(inside, outside, centres)
    return Disclosure(sizes, tuple(sensitive), _singling_out(both, which, nearest, asis), membership)


def _sensitive(both: Linked, which: Labels, nearest: Labels, column: Column) -> SensitiveDisclosure:
    assert both.frame is not None
    coded = sensitive_columns(both.frame, [column])[0]
    count = np.zeros((int(which.max()) + 1, coded.values), dtype=np.int64)
    np.add.at(count, (which, coded.codes), 1)
    alone = (count > 0).sum(axis=1) == 1
    truth = coded.codes[both.row_of]
    right = count.argmax(axis=1)[nearest] == truth
    baseline = float(np.bincount(truth).max() / len(truth))
    n = len(truth)
    return SensitiveDisclosure(
        column.name,
        found(LDiversity(2), coded, which),
        found(LDiversity(2, "entropy"), coded, which),
        found(TCloseness(0), coded, which),
        float(alone[which].mean()),
        Risk(float(right.mean()), wilson(float(right.sum()), n), baseline),
    )


def _singling_out(both: Linked, which: Labels, nearest: Labels, asis: Sequence[Column]) -> Risk:
    """Predicates from the release, counted on the originals."""
    if both.frame is not None and asis:
        names = [column.name for column in asis]
        kept = _numbered(both.frame.select(names))
    else:
        kept = np.zeros(len(which), dtype=np.int64)
    base = int(kept.max()) + 1
    mine = kept[both.row_of]  # released as they are, so each original has those of its released row
    predicates = np.unique(which * base + kept)
    fitting = dict(zip(*np.unique(nearest * base + mine, return_counts=True), strict=True))
    hits = sum(1 for p in predicates.tolist() if fitting.get(p, 0) == 1)
    alone = np.unique(mine, return_counts=True)[1]
    return Risk(hits / len(predicates), wilson(hits, len(predicates)), float((alone == 1).mean()))


def _numbered(frame: pl.DataFrame) -> Labels:
    from ..tables.counting import classes_of_frame

    return classes_of_frame(frame, frame.columns)


def membership_risk(inside: NDArray[Any], outside: NDArray[Any], centres: NDArray[Any]) -> Risk:
    """The best threshold on the distance to the nearest released row: the share of both kinds told right.

    The threshold is chosen on one half of the people and tried on the other, both kinds counting alike.
    """
    near = [((x - centres[nearest_rows(x, centres)]) ** 2).sum(axis=1) for x in (inside, outside)]
    order = [np.random.default_rng(0).permutation(len(d)) for d in near]
    halves = [(d[o[: len(d) // 2]], d[o[len(d) // 2 :]]) for d, o in zip(near, order, strict=True)]
    cuts = np.quantile(np.concatenate([halves[0][0], halves[1][0]]), np.linspace(0, 1, 101))
    told = [(np.mean(halves[0][0] <= c) + np.mean(halves[1][0] > c)) / 2 for c in cuts]
    cut = cuts[int(np.argmax(told))]
    rate = float((np.mean(halves[0][1] <= cut) + np.mean(halves[1][1] > cut)) / 2)
    n = min(len(halves[0][1]), len(halves[1][1])) * 2
    return Risk(rate, wilson(rate * n, n), 0.5)
