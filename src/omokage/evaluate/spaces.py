"""The spaces a release was made in: where it grouped and where it averaged or added noise.

The certificate publishes both maps, so an attacker who holds the originals fits them again and measures there. A map at hand in
memory is used as it is; from files it is rebuilt from the certificate's parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from ..base.parts import AnyPart
from ..errors import InputError, MapError
from ..method.maps.parts import rebuild_map, spelled
from .linked import Linked, is_plain, side_by_side

MOST_SOLVED = 4096  # codes of a way back that are solved for as a linear system


@dataclass(frozen=True)
class Space:
    """Coordinates of originals and of released rows.

    ``x`` and ``y`` are all originals and all released rows in the columns that ``place`` and ``place_released`` take. ``where``
    is the same for equal spaces.
    """

    where: str
    x: NDArray[Any]
    y: NDArray[Any]
    place: Callable[[NDArray[Any]], NDArray[Any]]
    place_released: Callable[[NDArray[Any]], NDArray[Any]]


def group_space(both: Linked) -> Space:
    """The space in which the release looked for people who are alike."""
    made = both.published
    if made.noise is not None:
        raise InputError("noise was added and nobody was grouped: there is no group space")
    x, y = _seen_by_groups(both)
    if not made.group_map:
        return Space("raw" if x is both.x else f"columns by {made.scale}", x, y, _unchanged, _unchanged)
    fitted = _fitted(both.group_map, made.group_map, x)
    low, high = x.min(axis=0), x.max(axis=0)

    def place_released(rows: NDArray[Any]) -> NDArray[Any]:
        try:
            return _transformed(fitted, rows)
        except MapError:  # some maps take no values that no original could have
            return _transformed(fitted, np.clip(rows, low, high))

    return Space(spelled(made.group_map), x, y, lambda rows: _transformed(fitted, rows), place_released)


def synthesis_space(both: Linked) -> Space:
    """The space in which groups were averaged or noise was added; released rows at the codes they came back from."""
    made = both.published
    if not made.synthesis_map:
        return Space("raw", both.x, both.y, _unchanged, _unchanged)
    fitted = _fitted(both.synthesis_map, made.synthesis_map, both.x)
    return Space(
        spelled(made.synthesis_map),
        both.x,
        both.y,
        lambda rows: _transformed(fitted, rows),
        lambda rows: released_codes(fitted, rows),
    )


def _seen_by_groups(both: Linked) -> tuple[NDArray[Any], NDArray[Any]]:
    """Originals and release as the grouper or its map saw them: numbers as they are, or columns of any kind encoded."""
    made = both.published
    if both.table is None or both.frame is None or made.synthesis_map:
        return both.x, both.y
    quasi = [column for column in both.certificate.columns if column.role == "quasi"]
    if made.group_map:
        if is_plain(quasi):
            return both.x, both.y
        return side_by_side(both.table, both.frame, quasi, made.scale, ordinal=False, gaps=True)
    x, y = side_by_side(both.table, both.frame, quasi, made.scale, ordinal=made.ordinal, gaps=True)
    if x.shape == both.x.shape and np.allclose(x, both.x):
        return both.x, both.y
    return x, y


def _fitted(at_hand: Any, parts: tuple[AnyPart, ...], x: NDArray[Any]) -> Any:
    return rebuild_map(parts).fit(x) if at_hand is None else at_hand


def _unchanged(rows: NDArray[Any]) -> NDArray[Any]:
    return rows


def _transformed(fitted: Any, rows: NDArray[Any]) -> NDArray[Any]:
    try:
        z = np.asarray(fitted.transform(rows))
    except ValueError:  # what scikit-learn's own maps raise, and MapError is one too
        raise MapError("the map has no place for these rows") from None
    if not np.isfinite(z).all():
        raise MapError("the map gives NaN or infinity for these rows")
    return z


def released_codes(fitted: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """The codes that the way back has turned into ``rows``: solved for where that way is linear, else by ``transform``.

    For an autoencoder or NMF this is more than ``transform`` gives, which does not undo the way back.

    Examples
    --------
    >>> import numpy as np
    >>> from omokage.method.maps import NMF
    >>> fitted = NMF(2).fit(np.random.default_rng(0).random((20, 5)))
    >>> codes = np.array([[1.0, -0.5]])
    >>> released_codes(fitted, fitted.inverse_transform(codes)).round(6) + 0.0
    array([[ 1. , -0.5]])
    """
    for step in [step for _, step in fitted.steps] if isinstance(fitted, Pipeline) else [fitted]:
        solved = _solved(step, rows)
        rows = _transformed(step, rows) if solved is None else solved
    return rows


def _solved(step: Any, rows: NDArray[Any]) -> NDArray[Any] | None:
    """Codes from an affine way back into more columns than there are codes; None where it is not one."""
    width = getattr(step, "n_components", None)
    if not isinstance(width, int) or not 0 < width < rows.shape[1] or width > MOST_SOLVED:
        return None
    origin = np.asarray(step.inverse_transform(np.zeros((1, width))))
    columns = np.asarray(step.inverse_transform(np.eye(width))) - origin  # (codes, d)
    probe = np.random.default_rng(0).normal(size=(4, width))
    there = np.asarray(step.inverse_transform(probe))
    if not np.allclose(there, origin + probe @ columns, rtol=0, atol=1e-4 * max(float(np.abs(there).max()), 1e-300)):
        return None
    codes: NDArray[Any] = (rows - origin) @ np.linalg.pinv(columns)
    return codes
