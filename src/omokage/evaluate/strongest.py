"""A release attacked in every way we know, so that the strongest can be named.

Nearest record costs little, so it is tried with every attack first; optimal assignment follows, those attacks first with which
the nearest record was right most often. If a time limit ends that early, what was not tried is named.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.progress import Progress, silent
from ..errors import InputError
from .attacks import Attack, ask_all
from .linked import Linked
from .reidentification import Matching, Reidentification, attack_name, scene_of, score
from .rulers import Ruler


@dataclass(frozen=True)
class Attacks:
    """Every attack by its name, strongest first; why others were not tried; and the ruler of each that has one."""

    results: dict[str, Reidentification]
    missing: dict[str, str]
    rulers: dict[str, Ruler]

    @property
    def strongest(self) -> Reidentification:
        """The attack that links most."""
        return max(self.results.values(), key=lambda result: result.rate)

    @property
    def nearest_ruler(self) -> Ruler | None:
        """The ruler with which the nearest record is right most often; None if no attack has one."""
        near = [r for r in self.results.values() if r.matching == "nearest" and r.name in self.rulers]
        return self.rulers[max(near, key=lambda r: r.rate).name] if near else None


def attack_all(
    both: Linked,
    *,
    attacks: Iterable[str | Attack | type[Attack]] | None = None,
    sample: int | None = None,
    memory: int = 6 << 30,
    max_seconds: float | None = None,
    random_state: int = 0,
    progress: Progress = silent,
) -> Attacks:
    """Attack by nearest record and by optimal assignment with every attack.

    Parameters
    ----------
    both : Linked
        Originals and release, from :func:`~omokage.evaluate.link` or :func:`~omokage.evaluate.link_files`.
    attacks : names of :data:`~omokage.evaluate.ATTACKS` and attacks of your own
        Exactly these, ``[*ATTACKS, MyAttack]`` for yours besides the built-in ones; None takes every built-in attack that
        applies to the release. See :mod:`omokage.evaluate.attacks` for how to write one.
    sample : see :func:`~omokage.evaluate.reidentify`; all attacks see the same rows
    max_seconds : float or None
        For all assignments together. One that is under way when the time is up is reported as not exact, with its gap.
    progress : called with the name of each stage
    """
    progress("fitting the spaces that the certificate names")
    scene = scene_of(both, sample, random_state)
    asked, unmeasured = ask_all(both, attacks, random_state)
    missing = {f"both attacks, {key} ruler": reason for key, reason in unmeasured.items()}
    near, found = [], []
    for each in asked:
        matching: Matching = "guess" if each.is_guess else "nearest"
        progress(f"attacking: {attack_name(matching, each.name)}")
        near.append((score(scene, each, matching), each))
    until = None if max_seconds is None else time.monotonic() + max_seconds
    for _, each in sorted(near, key=lambda pair: -pair[0].rate):
        if each.is_guess:
            continue
        name = attack_name("assignment", each.name)
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            missing[name] = f"the limit of {max_seconds:g} s was reached"
            continue
        progress(f"attacking: {name}")
        found.append((score(scene, each, "assignment", memory=memory, max_seconds=left), each))
    ranked = sorted(found + near, key=lambda pair: -pair[0].rate)  # where rates are equal, the assignment first
    if not ranked:
        why = "; ".join(missing.values()) or "none of those named applies to it"
        raise InputError(f"no attack can be tried on this release ({why}): name another one")
    rulers = {r.name: each.ruler for r, each in ranked if each.ruler is not None}
    return Attacks({r.name: r for r, _ in ranked}, missing, rulers)
