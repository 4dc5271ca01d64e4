"""A release attacked in every way we know, so that the strongest can be named.

Nearest record costs little, so it is tried with every ruler first; optimal assignment follows with every ruler too, those first
with which the nearest record was right most often. If a time limit ends that early, what was not tried is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .linked import Linked
from .reidentification import Reidentification, attack_name, attack_scene, scene_of
from .rulers import Ruler, rulers_of


@dataclass(frozen=True)
class Attacks:
    """Every attack by its name, strongest first; why others were not tried; and the ruler of each attack."""

    results: dict[str, Reidentification]
    missing: dict[str, str]
    rulers: dict[str, Ruler]

    @property
    def strongest(self) -> Reidentification:
        """The attack that links most."""
        return max(self.results.values(), key=lambda result: result.rate)

    @property
    def nearest_ruler(self) -> Ruler:
        """The ruler with which the nearest record is right most often."""
        return self.rulers[max((r for r in self.results.values() if r.attack == "nearest"), key=lambda r: r.rate).name]


def attack_all(
    both: Linked,
    *,
    sample: int | None = None,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Attacks:
    """Attack with every ruler, by nearest record and by optimal assignment.

    Parameters
    ----------
    sample : see :func:`~omokage.evaluate.reidentify`; all attacks see the same rows
    max_seconds : float or None
        For all assignments together. One that is under way when the time is up is reported as not exact, with its gap.
    """
    progress("fitting the spaces that the certificate names")
    scene = scene_of(both, sample, random_state)
    rulers, unmeasured = rulers_of(both, random_state)
    missing = {f"both attacks, {key} ruler": reason for key, reason in unmeasured.items()}
    near, found = [], []
    for ruler in rulers.values():
        progress(f"attacking: {attack_name('nearest', ruler.name)}")
        near.append((attack_scene(scene, ruler, "nearest"), ruler))
    until = None if max_seconds is None else time.monotonic() + max_seconds
    for _, ruler in sorted(near, key=lambda pair: -pair[0].rate):
        name = attack_name("assignment", ruler.name)
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            missing[name] = f"the limit of {max_seconds:g} s was reached"
            continue
        progress(f"attacking: {name}")
        found.append((attack_scene(scene, ruler, "assignment", memory=memory, max_seconds=left), ruler))
    ranked = sorted(found + near, key=lambda pair: -pair[0].rate)  # where rates are equal, the assignment first
    return Attacks({r.name: r for r, _ in ranked}, missing, {r.name: ruler for r, ruler in ranked})
