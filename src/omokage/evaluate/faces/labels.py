"""What faces show — sex, age, glasses, a smile — before and after, and how alike the people of a group are in it (MIKU-2020).

AV is a face's vector of labels, gAV the mean of its group's: the mean Euclidean |AV − gAV| says how well a group map keeps people
together who look alike. It is a matter of the groups alone, not of the pictures; agreement is a matter of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.intervals import wilson
from ...base.matrix import Labels
from ...faces.photo_table import read_photo_table
from ...method.unify import Mean

APART = ("Male", "Young", "Eyeglasses", "Smiling", "Mouth_Slightly_Open")  # the last two: the expression
DISTANCES = ("Male", "Oval_Face")  # the papers'
ALL = "All"


@dataclass(frozen=True)
class Agreement:
    """Share of faces whose released picture shows the label just as the original does, by the same network at 0.5.

    chance : the share if released pictures were dealt out at random. before, after : how many faces show the label.
    """

    label: str
    share: float
    interval: tuple[float, float]
    chance: float
    before: float
    after: float


@dataclass(frozen=True)
class LabelDistance:
    """Mean |AV − gAV| over some labels; at_random : in random groups of the same sizes; one_group : if all were one group."""

    labels: str
    distance: float
    interval: tuple[float, float]
    at_random: float
    one_group: float


def agreements(before: NDArray[Any], after: NDArray[Any], names: Sequence[str]) -> tuple[Agreement, ...]:
    """Agreement over all labels together and for some apart; ``before`` and ``after`` are (faces, labels) probabilities.

    Examples
    --------
    >>> [a.share for a in agreements(np.array([[0.9, 0.1], [0.9, 0.2]]), np.array([[0.8, 0.1], [0.1, 0.3]]), ["Male", "Hat"])]
    [0.75, 0.5]
    """
    x, y = before >= 0.5, after >= 0.5  # (n, labels)
    same, n = x == y, len(x)
    p, q = x.mean(0), y.mean(0)
    chance = p * q + (1 - p) * (1 - q)
    shares = same.mean(1)
    out = [Agreement(ALL, float(shares.mean()), _interval(shares), float(chance.mean()), float(p.mean()), float(q.mean()))]
    for j in (list(names).index(label) for label in APART if label in names):
        hits = int(same[:, j].sum())
        out.append(Agreement(names[j], hits / n, wilson(hits, n), float(chance[j]), float(p[j]), float(q[j])))
    return tuple(out)


def label_distances(
    vectors: NDArray[Any], names: Sequence[str], groups: Labels, seed: int = 0, repeats: int = 5
) -> tuple[LabelDistance, ...]:
    """|AV − gAV| for all labels, and for the papers' two, or a table's own first ones where it has neither.

    Examples
    --------
    >>> found = label_distances(np.array([[0.0], [1.0], [1.0], [1.0]]), ["Male"], np.array([0, 0, 1, 1]))
    >>> [(each.labels, each.distance, each.one_group) for each in found]
    [('All', 0.25, 0.375), ('Male', 0.25, 0.375)]
    """
    x = np.asarray(vectors, np.float64)  # (n, labels)
    rng = np.random.default_rng(seed)
    others = [rng.permutation(groups) for _ in range(repeats)]
    apart = [label for label in DISTANCES if label in names] or list(names)[:8]
    out = []
    for title, columns in [(ALL, list(range(len(names)))), *((label, [list(names).index(label)]) for label in apart)]:
        part = x[:, columns]
        own = _from_means(part, groups)
        out.append(
            LabelDistance(
                title,
                float(own.mean()),
                _interval(own),
                float(np.mean([_from_means(part, other).mean() for other in others])),
                float(_from_means(part, np.zeros_like(groups)).mean()),
            )
        )
    return tuple(out)


def _from_means(x: NDArray[np.float64], groups: Labels) -> NDArray[np.float64]:
    """Distance of each row from its group's mean."""
    distance: NDArray[np.float64] = np.linalg.norm(x - Mean().unify(x, groups)[groups], axis=1)
    return distance


def _interval(values: NDArray[Any]) -> tuple[float, float]:
    """95 % of a mean, by its standard error."""
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return float(values.mean()) - half, float(values.mean()) + half


def read_labels(table: Path, photos: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names of the labels, and 0 or 1 for each of these photos."""
    read = read_photo_table(table)
    names, values = read.labels()
    return names, values[read.rows_of(photos)].astype(np.float64)
