"""Rulers: the spaces in which an attacker measures how far a released row is from an original one.

Which ruler is best depends on how the release was made, and the certificate tells how. So a release is attacked with each:

raw         the columns as they are
standard    in units of the originals' standard deviations
ranks       each value by its place among the originals' values
group       where the release was grouped
synthesis   where it was averaged, or noise added
likelihood  for noise: how probable the difference is under the noise that the certificate names
learned     by weights learned from a few pairs known from elsewhere
repeated    for groups: from the row that the published method, run again, makes of the original
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..errors import InputError, MapError, OmokageError
from .assignment.transport import distinct_rows
from .learned import LEAST_KNOWN, known_pairs, learned_weights
from .linked import Linked
from .repeated import repeated_rows
from .spaces import Space, group_space, synthesis_space

Place = Callable[[NDArray[Any]], NDArray[Any]]
STEPS = 8  # of each coordinate, in which a Laplace likelihood is measured
MOST_COORDINATES = 8192  # of all steps together


@dataclass(frozen=True)
class Ruler:
    """A way to measure distance, as squared Euclidean distance of coordinates.

    name : of the ruler in words. originals, released : coordinates of rows, by their numbers. outsiders : coordinates of other
    rows in the originals' columns; None where they have none. known : originals whose link was used, which must not be counted.
    """

    name: str
    originals: Callable[[Labels], NDArray[Any]]
    released: Callable[[Labels], NDArray[Any]]
    outsiders: Place | None
    where: str
    known: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def _of(both: Linked, name: str, place: Place, known: Labels | None = None) -> Ruler:
    """A ruler that places originals and released rows alike."""
    numbers = np.zeros(0, dtype=np.int64) if known is None else known
    return Ruler(name, lambda i: place(both.x[i]), lambda i: place(both.y[i]), place, name, numbers)


def _unit(both: Linked) -> NDArray[Any]:
    unit: NDArray[Any] = both.x.std(axis=0)
    return np.where(unit > 0, unit, 1.0)


def raw(both: Linked, seed: int) -> Ruler:
    return Ruler("raw units", lambda i: both.x[i], lambda i: both.y[i], lambda x: x, "raw")


def standard(both: Linked, seed: int) -> Ruler:
    unit = _unit(both)
    return _of(both, "standard units", lambda rows: rows / unit)


def ranks(both: Linked, seed: int) -> Ruler:
    """A value between two of the originals has a rank between theirs."""
    known = [_ranked(column) for column in both.x.T]

    def place(rows: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([np.interp(column, *pair) for column, pair in zip(rows.T, known, strict=True)])

    return _of(both, "ranks", place)


def _ranked(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different values and the middle of the ranks of each, as a share."""
    values, counts = np.unique(column, return_counts=True)
    return values, (np.cumsum(counts) - counts / 2) / len(column)


def group(both: Linked, seed: int) -> Ruler:
    return _own("group space", group_space(both), both)


def synthesis(both: Linked, seed: int) -> Ruler:
    return _own("synthesis space", synthesis_space(both), both)


def _own(what: str, space: Space, both: Linked) -> Ruler:
    return Ruler(
        f"{what} {space.where}",
        lambda i: space.place(space.x[i]),
        lambda i: space.place_released(space.y[i]),
        space.place if space.x is both.x else None,
        space.where,
    )


def likelihood(both: Linked, seed: int) -> Ruler:
    """Laplace noise is as probable as its absolute values are small, so absolute differences of codes are summed.

    Each coordinate is cut into steps at the released codes' quantiles, and a value fills the steps below it. Then squared
    distance is the sum of what is filled in one row and not in the other: the absolute difference, up to parts of a step.
    """
    if both.published.noise != "Laplace":
        raise InputError("only Laplace noise has a likelihood to attack by")
    space = synthesis_space(both)
    codes = space.place_released(space.y)
    steps = min(STEPS, MOST_COORDINATES // codes.shape[1])
    if steps < 2:
        raise MapError(f"the noise's likelihood is measured in steps of up to 4096 coordinates, and there are {codes.shape[1]}")
    edges = np.quantile(codes, np.linspace(0, 1, steps + 1), axis=0)
    at_hand = space.place(space.x)
    edges[0], edges[-1] = np.minimum(edges[0], at_hand.min(axis=0)), np.maximum(edges[-1], at_hand.max(axis=0))
    low, width = edges[:-1], np.diff(edges, axis=0)  # (steps, d)

    def filled(rows: NDArray[Any]) -> NDArray[Any]:
        part = (rows[:, None, :] - low) / np.where(width > 0, width, 1.0)
        steps_filled: NDArray[Any] = np.clip(part, 0.0, 1.0) * np.sqrt(width)
        return steps_filled.reshape(len(rows), -1)

    return Ruler(
        f"noise likelihood in {space.where}",
        lambda i: filled(at_hand[i]),
        lambda i: filled(codes[i]),
        lambda x: filled(space.place(x)),
        f"likelihood {space.where}",
    )


def learned(both: Linked, seed: int) -> Ruler:
    known = known_pairs(len(both.x), seed)
    if not len(known):
        raise InputError(f"weights are learned from 1 in 20 records, at least {LEAST_KNOWN}, but there are {len(both.x)} records")
    unit = _unit(both)
    classes, which, _ = distinct_rows(both.y)
    weights = learned_weights(both.x[known] / unit, which[both.row_of[known]], classes / unit)
    weights /= unit[:, None]
    return _of(both, f"weights learned from {len(known)} known pairs", lambda rows: rows @ weights, known)


def repeated(both: Linked, seed: int) -> Ruler:
    unit = _unit(both)
    expected = repeated_rows(both, seed) / unit
    return Ruler("the method repeated", lambda i: expected[i], lambda i: both.y[i] / unit, None, "repeated")


RULERS: dict[str, Callable[[Linked, int], Ruler]] = {
    "raw": raw,
    "standard": standard,
    "ranks": ranks,
    "group": group,
    "synthesis": synthesis,
    "likelihood": likelihood,
    "learned": learned,
    "repeated": repeated,
}


def rulers_of(both: Linked, seed: int = 0) -> tuple[dict[str, Ruler], dict[str, str]]:
    """All rulers that this release can be measured with, each space once; and why others, which apply to it, cannot be had."""
    found: dict[str, Ruler] = {}
    missing: dict[str, str] = {}
    for key, make in RULERS.items():
        if not _applies(key, both):
            continue
        try:
            ruler = make(both, seed)
        except OmokageError as error:
            missing[key] = str(error)
            continue
        if ruler.where not in {other.where for other in found.values()}:
            found[key] = ruler
    return found, missing


def _applies(key: str, both: Linked) -> bool:
    noisy = both.published.noise is not None
    return noisy if key == "likelihood" else not (noisy and key in ("group", "repeated"))
