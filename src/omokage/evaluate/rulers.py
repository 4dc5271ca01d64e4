"""Rulers: the spaces in which an attacker measures how far a released row is from an original one.

Which ruler is best depends on how the release was made, and the certificate tells how. So a release is attacked with each of
those below; :data:`~omokage.evaluate.attacks.ATTACKS` lists them with one line of help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.words import counted
from ..errors import InputError, MapError
from .assignment.transport import distinct_rows
from .learned import learned_weights
from .repeated import repeated_rows
from .spaces import Space, group_space, synthesis_space
from .view import LEAST_KNOWN, View

Place = Callable[[NDArray[Any]], NDArray[Any]]
STEPS = 8  # of each coordinate, in which a Laplace likelihood is measured
MOST_COORDINATES = 8192  # of all steps together


@dataclass(frozen=True)
class Ruler:
    """A way to measure distance, as squared Euclidean distance of coordinates.

    name : of the ruler in words; the attack's own name if empty. originals, released : coordinates of rows, by their numbers.
    outsiders : coordinates of other rows in the originals' columns; None where they have none. where : equal for rulers that
    measure in the same space, so that it is attacked once; the name if empty.
    """

    originals: Callable[[Labels], NDArray[Any]]
    released: Callable[[Labels], NDArray[Any]]
    outsiders: Place | None = None
    name: str = ""
    where: str = ""

    @classmethod
    def placing(cls, view: View, place: Place, name: str = "", where: str = "") -> Ruler:
        """A ruler that places originals and released rows alike, by a function from rows to coordinates."""
        return cls(lambda i: place(view.originals[i]), lambda i: place(view.released[i]), place, name, where or name)


def _unit(view: View) -> NDArray[Any]:
    unit: NDArray[Any] = view.originals.std(axis=0)
    return np.where(unit > 0, unit, 1.0)


def raw(view: View) -> Ruler:
    return Ruler.placing(view, lambda rows: rows, "raw units", "raw")


def standard(view: View) -> Ruler:
    unit = _unit(view)
    return Ruler.placing(view, lambda rows: rows / unit, "standard units")


def ranks(view: View) -> Ruler:
    """A value between two of the originals has a rank between theirs."""
    known = [_ranked(column) for column in view.originals.T]

    def place(rows: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([np.interp(column, *pair) for column, pair in zip(rows.T, known, strict=True)])

    return Ruler.placing(view, place, "ranks")


def _ranked(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different values and the middle of the ranks of each, as a share."""
    values, counts = np.unique(column, return_counts=True)
    return values, (np.cumsum(counts) - counts / 2) / len(column)


def group(view: View) -> Ruler:
    return _own("group space", group_space(view), view)


def synthesis(view: View) -> Ruler:
    return _own("synthesis space", synthesis_space(view), view)


def _own(what: str, space: Space, view: View) -> Ruler:
    return Ruler(
        lambda i: space.place(space.x[i]),
        lambda i: space.place_released(space.y[i]),
        space.place if space.x is view.originals else None,
        f"{what} {space.where}",
        space.where,
    )


def likelihood(view: View) -> Ruler:
    """Laplace noise is as probable as its absolute values are small, so absolute differences of codes are summed.

    Each coordinate is cut into steps at the released codes' quantiles, and a value fills the steps below it. Then squared
    distance is the sum of what is filled in one row and not in the other: the absolute difference, up to parts of a step.
    """
    if view.published.noise != "Laplace":
        raise InputError("the release has no Laplace noise, so there is no likelihood to measure by: choose another attack")
    space = synthesis_space(view)
    codes = space.place_released(space.y)
    steps = min(STEPS, MOST_COORDINATES // codes.shape[1])
    if steps < 2:
        raise MapError(f"the likelihood is measured in at most 4,096 coordinates, but the codes have {codes.shape[1]:,}")
    edges = np.quantile(codes, np.linspace(0, 1, steps + 1), axis=0)
    at_hand = space.place(space.x)
    edges[0], edges[-1] = np.minimum(edges[0], at_hand.min(axis=0)), np.maximum(edges[-1], at_hand.max(axis=0))
    low, width = edges[:-1], np.diff(edges, axis=0)  # (steps, d)

    def filled(rows: NDArray[Any]) -> NDArray[Any]:
        part = (rows[:, None, :] - low) / np.where(width > 0, width, 1.0)
        steps_filled: NDArray[Any] = np.clip(part, 0.0, 1.0) * np.sqrt(width)
        return steps_filled.reshape(len(rows), -1)

    return Ruler(
        lambda i: filled(at_hand[i]),
        lambda i: filled(codes[i]),
        lambda x: filled(space.place(x)),
        f"noise likelihood in {space.where}",
        f"likelihood {space.where}",
    )


class Learned:
    """Weights learned from pairs of original and released row that the attacker knows from elsewhere."""

    uses_known_pairs = True

    def __call__(self, view: View) -> Ruler:
        if not len(view.known):
            raise InputError(
                f"weights are learned from 1 in 20 records, at least {LEAST_KNOWN}, but there are "
                f"{counted(len(view.originals), 'record')}: too few to learn from"
            )
        unit = _unit(view)
        classes, which, _ = distinct_rows(view.released)
        weights = learned_weights(view.originals[view.known] / unit, which[view.known_rows], classes / unit)
        weights /= unit[:, None]
        return Ruler.placing(view, lambda rows: rows @ weights, f"weights learned from {len(view.known)} known pairs")


def repeated(view: View) -> Ruler:
    unit = _unit(view)
    expected = repeated_rows(view) / unit
    return Ruler(lambda i: expected[i], lambda i: view.released[i] / unit, None, "the method repeated", "repeated")
