"""Re-identification: the attacker holds all originals and the whole release, and links them (DR paper, section 3.2.1).

Within equal released rows the choice is arbitrary, so its expectation is counted: a right class of size c is worth 1/c.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..base.intervals import Risk, wilson
from ..base.matrix import Labels
from ..errors import InputError
from .assignment.transport import distinct_rows, solve_transport
from .attacks import Asked, Attack, ask
from .linked import Linked
from .rulers import Ruler

Matching = Literal["nearest", "assignment", "guess"]
MATCHINGS: dict[Matching, str] = {
    "nearest": "nearest record",
    "assignment": "optimal assignment",
    "guess": "direct guess",
}


@dataclass(frozen=True)
class Reidentification(Risk):
    """Share of originals that an attack links to their own released row.

    rate : expected share. interval : Wilson interval of what one attacker would count. baseline : by chance. attack, matching :
    what distance is measured in, in words, and how rows are linked by it. bound : 1/k where k is promised. exact, gap : whether
    the assignment is proved optimal, and how far its cost may be from the least, as a share of it. rows : originals counted;
    ``sampled`` if not all were attacked. known : originals whose link the attacker knew before, which are not counted.
    """

    attack: str
    matching: Matching
    bound: float | None
    exact: bool
    gap: float
    rows: int
    sampled: bool
    known: int
    seconds: float

    @property
    def name(self) -> str:
        """The attack in words."""
        return attack_name(self.matching, self.attack)


def attack_name(matching: Matching, attack: str) -> str:
    return f"{MATCHINGS[matching]}, {attack}"


@dataclass(frozen=True)
class Scene:
    """Who is attacked.

    rows : the numbers of the originals. classes : a released row of each class of equal ones. own : each original's own class.
    capacity : class sizes. class_of : the class of every released row, −1 outside of the sample.
    """

    rows: Labels
    classes: Labels
    own: Labels
    capacity: Labels
    class_of: Labels
    k: int | None
    sampled: bool


def scene_of(both: Linked, sample: int | None = None, random_state: int = 0) -> Scene:
    """All originals, or about ``sample`` of them: whole classes of equal released rows, drawn at random."""
    _, which, capacity = distinct_rows(both.y)
    classes = np.unique(which, return_index=True)[1]
    own = which[both.row_of]
    if sample is None or sample >= len(own):
        return Scene(np.arange(len(own)), classes, own, capacity, which, both.k, False)
    order = np.random.default_rng(random_state).permutation(len(classes))
    take = order[: int(np.searchsorted(np.cumsum(capacity[order]), sample)) + 1]
    number = np.full(len(classes), -1)
    number[take] = np.arange(len(take))
    rows = np.flatnonzero(number[own] >= 0)
    return Scene(rows, classes[take], number[own[rows]], capacity[take], number[which], both.k, len(rows) < len(own))


def reidentify(
    both: Linked,
    *,
    attack: str | Attack | type[Attack] = "raw",
    matching: Matching = "assignment",
    sample: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
) -> Reidentification:
    """Attack a release in one way; :func:`~omokage.evaluate.attack_all` attacks it in all of them.

    Parameters
    ----------
    both : Linked
        Originals and release, from :func:`~omokage.evaluate.link` or :func:`~omokage.evaluate.link_files`.
    attack : str or callable
        A name of :data:`~omokage.evaluate.ATTACKS`, or an attack of your own; see :mod:`omokage.evaluate.attacks`.
    matching : {"assignment", "nearest"}
        All records at once at the least total squared distance, or each record to its nearest. An attack that guesses released
        rows itself needs neither.
    sample : int or None
        Attack only about so many rows, whole classes of equal released rows at a time. With fewer others to be mistaken for,
        the rate comes out higher than it is for all.
    memory, max_seconds : limits of the assignment; past the time limit it is reported as not exact, with its gap
    """
    if matching not in ("assignment", "nearest"):
        raise InputError(f"there is no matching {matching!r}: choose assignment or nearest")
    asked = ask(attack, both, random_state)
    return score(
        scene_of(both, sample, random_state),
        asked,
        "guess" if asked.is_guess else matching,
        confidence=confidence,
        memory=memory,
        max_seconds=max_seconds,
    )


def score(
    scene: Scene,
    asked: Asked,
    matching: Matching,
    *,
    confidence: float = 0.95,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
) -> Reidentification:
    """What an attack's answer comes to: the expected share of originals linked to their own released row."""
    begun = time.perf_counter()
    exact, gap = True, 0.0
    own, capacity = scene.own, scene.capacity
    if isinstance(asked.answer, Ruler):
        x, y = _moderate(asked.answer.originals(scene.rows), asked.answer.released(scene.classes))
        centres, merged, _ = distinct_rows(y)  # classes that the ruler cannot tell apart are one
        own, capacity = merged[own], np.bincount(merged, weights=capacity).astype(np.int64)
        if matching == "assignment":
            solved = solve_transport(x, centres, capacity, memory=memory, max_seconds=max_seconds)
            found, exact, gap = solved.column, solved.exact, solved.gap / max(solved.cost, 1e-300)
        else:
            found = nearest_rows(x, centres)
    else:
        guess = _guessed(asked.answer, matching)[scene.rows]
        found = np.where(guess >= 0, scene.class_of[guess], -1)
    counted = ~np.isin(scene.rows, asked.known)
    n = int(counted.sum())
    rate = float(((found == own) / capacity[own])[counted].mean())
    return Reidentification(
        rate=rate,
        interval=wilson(rate * n, n, confidence),
        baseline=1.0 / len(scene.rows),
        attack=asked.name,
        matching=matching,
        bound=None if scene.k is None else 1.0 / scene.k,
        exact=exact,
        gap=gap,
        rows=n,
        sampled=scene.sampled,
        known=len(asked.known),
        seconds=time.perf_counter() - begun,
    )


def _moderate(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coordinates whose squares single precision can hold: a ruler may have any unit. Powers of two change no digit."""
    largest = max(float(np.abs(x).max()), float(np.abs(y).max()), 1e-300)
    if 2.0**-20 < largest < 2.0**20:
        return x, y
    unit = 2.0 ** -np.floor(np.log2(largest))
    return x * unit, y * unit


def _guessed(answer: NDArray[Any], matching: Matching) -> Labels:
    """The released row of each original: as guessed, or by distances."""
    if answer.ndim == 1:
        return answer
    if matching == "nearest":
        return answer.argmin(axis=1)
    return np.asarray(linear_sum_assignment(answer)[1])


def nearest_rows(x: NDArray[Any], centres: NDArray[Any], block: int = 2048) -> Labels:
    """The nearest centre of each row; the first of equally near ones."""
    shift = centres.mean(axis=0)
    a, b = (x - shift).astype(np.float32), (centres - shift).astype(np.float32)
    length = (b * b).sum(axis=1) / 2
    nearest = [(length - a[i : i + block] @ b.T).argmin(axis=1) for i in range(0, len(a), block)]
    return np.concatenate(nearest).astype(np.int64)
