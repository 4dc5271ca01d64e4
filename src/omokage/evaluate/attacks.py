"""The attacks on a release of a table, built in and your own.

An attack is called with the attacker's :class:`~omokage.evaluate.view.View` and answers in one of three ways:

- a :class:`~omokage.evaluate.rulers.Ruler`: coordinates of originals and released rows. Omokage links them by nearest record and
  by optimal assignment.
- a matrix of floats, (n, m): the distance of each original to each released row; linked in the same two ways.
- a vector of whole numbers, (n,): the released row that each original is linked to, −1 for no guess.

Omokage scores the answer. The view does not tell which released row belongs to which original; an attack that sets
``uses_known_pairs = True`` is told it for one original in twenty, and those do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from inspect import isroutine
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.plain import plain
from ..base.registry import Entry, Registry
from ..errors import InputError, OmokageError
from .linked import Linked
from .rulers import Ruler
from .view import View, view_of

GROUPS, NOISE = "groups", "noise"
_ANY, _GROUPS, _NOISE = frozenset({GROUPS, NOISE}), frozenset({GROUPS}), frozenset({NOISE})
_RULERS = "omokage.evaluate.rulers"

ATTACKS = Registry(
    "attack",
    Entry("raw", f"{_RULERS}:raw", "in the columns as they are", can=_ANY),
    Entry("standard", f"{_RULERS}:standard", "in the originals' standard deviations", can=_ANY),
    Entry("ranks", f"{_RULERS}:ranks", "by each value's place among the originals' values", can=_ANY),
    Entry("group", f"{_RULERS}:group", "in the space that the release was grouped in", can=_GROUPS),
    Entry("synthesis", f"{_RULERS}:synthesis", "in the space that groups were averaged or noise was added in", can=_ANY),
    Entry("likelihood", f"{_RULERS}:likelihood", "by how probable the difference is under the noise", can=_NOISE),
    Entry("learned", f"{_RULERS}:Learned", "with weights learned from a few pairs known from elsewhere", can=_ANY),
    Entry("repeated", f"{_RULERS}:repeated", "from the row that the published method, run again, makes of it", can=_GROUPS),
)

Answer = Ruler | NDArray[Any]


class Attack(Protocol):
    """Anything that can be called with the attacker's view. A class is created first, without arguments."""

    def __call__(self, view: View, /) -> Answer: ...


@dataclass(frozen=True)
class Asked:
    """An attack's checked answer: its name in words, what it answered, and originals it was told about, which do not count."""

    name: str
    answer: Ruler | NDArray[np.float64] | Labels
    known: Labels

    @property
    def ruler(self) -> Ruler | None:
        return self.answer if isinstance(self.answer, Ruler) else None

    @property
    def is_guess(self) -> bool:
        """Whether the attack names released rows itself, so that nothing is left to match."""
        return isinstance(self.answer, np.ndarray) and self.answer.ndim == 1


def ask(attack: str | Attack | type[Attack], both: Linked, seed: int = 0) -> Asked:
    """What an attack answers to the attacker's view of this release.

    Raises
    ------
    InputError
        If the attack cannot be had, fails, or answers something else than the contract says.
    """
    called, name = _resolved(attack)
    view = view_of(both, seed=seed, with_known_pairs=bool(getattr(called, "uses_known_pairs", False)))
    try:
        answer = called(view)
    except OmokageError:
        raise
    except Exception as error:
        raise InputError(f"the attack {name} fails with {type(error).__name__}: correct it, or leave it out") from error
    if isinstance(answer, Ruler):
        words = answer.name or name
        return Asked(words, replace(answer, name=words, where=answer.where or words), view.known)
    return Asked(name, _checked(answer, name, len(both.x), len(both.y)), view.known)


def ask_all(
    both: Linked, attacks: Iterable[str | Attack | type[Attack]] | None = None, seed: int = 0
) -> tuple[list[Asked], dict[str, str]]:
    """The answers of all attacks, each space once; and why others, which apply to this release, cannot be tried.

    ``attacks`` are names and attacks of your own; None takes every built-in one. Attacks on noise do not apply to groups, nor
    those on groups to noise.
    """
    kind = GROUPS if both.published.noise is None else NOISE
    found: list[Asked] = []
    missing: dict[str, str] = {}
    for attack in ATTACKS if attacks is None else attacks:
        built_in = isinstance(attack, str) and attack in ATTACKS
        if built_in and kind not in ATTACKS.entry(str(attack)).can:
            continue
        try:
            asked = ask(attack, both, seed)
        except OmokageError as error:
            if not built_in:
                raise  # an attack of your own that fails must not pass for one that found nothing
            missing[str(attack)] = str(error)
            continue
        spaces = {other.ruler.where for other in found if other.ruler is not None}
        if asked.ruler is not None and asked.ruler.where in spaces:
            continue
        if asked.name in {other.name for other in found}:
            raise InputError(f"two attacks have the name {asked.name}: give one of them another name")
        found.append(asked)
    return found, missing


def _resolved(attack: Any) -> tuple[Attack, str]:
    """Something to call with the view, and its name in words."""
    made = attack
    if isinstance(attack, str):
        made = ATTACKS.class_of(attack)
        made = ATTACKS.make(attack) if isinstance(made, type) else made
    elif isinstance(attack, type):
        made = attack()
    if not callable(made):
        raise InputError(f"an attack must be callable with the attacker's view, but it is of type {type(made).__name__}")
    kind = made if isroutine(made) else type(made)
    return made, plain(str(getattr(made, "name", "") or kind.__name__), 100)


def _checked(answer: Any, name: str, originals: int, released: int) -> NDArray[Any]:
    """A vector of guesses or a matrix of distances; anything else breaks the contract."""
    given = np.asarray(answer)
    if given.shape == (originals,) and given.dtype.kind in "iu":
        if len(given) and not (int(given.min()) >= -1 and int(given.max()) < released):
            raise InputError(f"the attack {name} names rows that are not in the release: give numbers from -1 to {released - 1}")
        return given.astype(np.int64)
    if given.shape == (originals, released) and given.dtype.kind in "fiu":
        if not np.isfinite(given).all():
            raise InputError(f"the attack {name} gives NaN or infinity as a distance: give finite numbers")
        return given.astype(np.float64)
    raise InputError(
        f"the attack {name} answers with {type(answer).__name__} of shape {given.shape}: return a Ruler, distances of shape "
        f"({originals}, {released}) or whole numbers of shape ({originals},)"
    )
