"""Re-identification: the attacker holds all originals and the whole release, and links them (DR paper, section 3.2.1).

Within equal released rows the choice is arbitrary, so its expectation is counted: a right class of size c is worth 1/c.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.intervals import wilson
from ..base.matrix import Labels
from ..errors import InputError
from ..release.release import Release
from .assignment.transport import distinct_rows, solve_transport
from .linked import Linked, link
from .rulers import RULERS, Ruler

Attack = Literal["assignment", "nearest"]
ATTACKS: dict[Attack, str] = {"nearest": "nearest record", "assignment": "optimal assignment"}


@dataclass(frozen=True)
class Reidentification:
    """Share of originals that an attack links to their own released row.

    attack, ruler : how rows are matched, and what distance is measured in. rate : expected share. interval : Wilson interval of
    what one attacker would count. chance : without looking. bound : 1/k where k is promised. exact, gap : whether the assignment
    is proved optimal, and how far its cost may be from the least, as a share of it. rows : originals counted; ``sampled`` if not
    all were attacked. known : originals whose link the attacker knew before, which are not counted.
    """

    attack: Attack
    ruler: str
    rate: float
    interval: tuple[float, float]
    chance: float
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
        return attack_name(self.attack, self.ruler)


def attack_name(attack: Attack, ruler: str) -> str:
    return f"{ATTACKS[attack]}, {ruler}"


@dataclass(frozen=True)
class Scene:
    """Who is attacked: the numbers of the originals, a released row of each class, each original's own class, and class sizes."""

    rows: Labels
    classes: Labels
    own: Labels
    capacity: Labels
    k: int | None
    sampled: bool


def scene_of(both: Linked, sample: int | None = None, random_state: int = 0) -> Scene:
    """All originals, or about ``sample`` of them: whole classes of equal released rows, drawn at random."""
    _, which, capacity = distinct_rows(both.y)
    classes = np.unique(which, return_index=True)[1]
    own = which[both.row_of]
    if sample is None or sample >= len(own):
        return Scene(np.arange(len(own)), classes, own, capacity, both.k, False)
    order = np.random.default_rng(random_state).permutation(len(classes))
    take = order[: int(np.searchsorted(np.cumsum(capacity[order]), sample)) + 1]
    number = np.full(len(classes), -1)
    number[take] = np.arange(len(take))
    rows = np.flatnonzero(number[own] >= 0)
    return Scene(rows, classes[take], number[own[rows]], capacity[take], both.k, len(rows) < len(own))


def reidentify(
    original: Any,
    release: Release | Linked,
    *,
    attack: Attack = "assignment",
    ruler: str = "raw",
    sample: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
) -> Reidentification:
    """Attack a release in one way; :func:`~omokage.evaluate.attack_all` attacks it in all of them.

    Parameters
    ----------
    original : the data the release was made from; ignored for a :class:`Linked`
    attack : {"assignment", "nearest"}
        All records at once at least total squared distance, or each record to its nearest.
    ruler : {"raw", "standard", "ranks", "group", "synthesis", "likelihood", "learned"}
        What distance is measured in; see :mod:`omokage.evaluate.rulers`.
    sample : int or None
        Attack only about so many rows, whole classes of equal released rows at a time. With fewer others to be mistaken for,
        the rate comes out higher than it is for all.
    memory, max_seconds : limits of the assignment; past the time limit it is reported as not exact, with its gap
    """
    both = link(original, release)
    if attack not in ATTACKS:
        raise InputError(f"the attack is assignment or nearest, not {attack!r}")
    if ruler not in RULERS:
        raise InputError(f"there is no ruler {ruler!r}: they are {', '.join(RULERS)}")
    scene = scene_of(both, sample, random_state)
    return attack_scene(
        scene, RULERS[ruler](both, random_state), attack, confidence=confidence, memory=memory, max_seconds=max_seconds
    )


def attack_scene(
    scene: Scene,
    ruler: Ruler,
    attack: Attack,
    *,
    confidence: float = 0.95,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
) -> Reidentification:
    """One attack with one ruler."""
    begun = time.perf_counter()
    x = ruler.originals(scene.rows)
    centres, merged, _ = distinct_rows(ruler.released(scene.classes))  # classes that the ruler cannot tell apart are one
    own = merged[scene.own]
    capacity = np.bincount(merged, weights=scene.capacity).astype(np.int64)
    exact, gap = True, 0.0
    if attack == "assignment":
        solved = solve_transport(x, centres, capacity, memory=memory, max_seconds=max_seconds)
        found, exact, gap = solved.column, solved.exact, solved.gap / max(solved.cost, 1e-300)
    else:
        found = nearest_rows(x, centres)
    counted = ~np.isin(scene.rows, ruler.known)
    n = int(counted.sum())
    rate = float(((found == own) / capacity[own])[counted].mean())
    return Reidentification(
        attack=attack,
        ruler=ruler.name,
        rate=rate,
        interval=wilson(rate * n, n, confidence),
        chance=1.0 / len(scene.rows),
        bound=None if scene.k is None else 1.0 / scene.k,
        exact=exact,
        gap=gap,
        rows=n,
        sampled=scene.sampled,
        known=len(ruler.known),
        seconds=time.perf_counter() - begun,
    )


def nearest_rows(x: NDArray[Any], centres: NDArray[Any], block: int = 2048) -> Labels:
    """The nearest centre of each row; the first of equally near ones."""
    shift = centres.mean(axis=0)
    a, b = (x - shift).astype(np.float32), (centres - shift).astype(np.float32)
    length = (b * b).sum(axis=1) / 2
    nearest = [(length - a[i : i + block] @ b.T).argmin(axis=1) for i in range(0, len(a), block)]
    return np.concatenate(nearest).astype(np.int64)
