"""The method repeated: the attacker runs what the certificate describes on the originals, and looks up what became of each.

Grouping that draws no random numbers gives the attacker the very groups of the release: then only the size of a class protects.
The seed of a grouping that draws some is secret, so the attacker uses another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.parts import rebuild
from ..errors import InputError
from ..method import UNIFIERS
from ..method.anonymizer import Anonymizer
from ..method.grouping import GROUPERS
from ..method.maps.parts import rebuild_map
from ..release.certificate import TableMethod
from ..release.counting import constraints_of
from ..tables.roles import Roles
from .linked import Linked, link


def repeated_rows(both: Linked, seed: int) -> NDArray[Any]:
    """The released row that each original has in the attacker's own run, in the columns of ``both.y``."""
    anonymizer = _published_anonymizer(both, seed)
    if both.table is None:
        return link(both.x, anonymizer.release(both.x, **_written_as(both))).aligned
    columns = both.certificate.columns
    named = {role: [c.name for c in columns if c.role == role] for role in ("quasi", "sensitive", "keep")}
    roles = Roles(quasi=named["quasi"], sensitive=named["sensitive"], keep=named["keep"], rest="drop")
    plain = anonymizer.synthesis_map is None
    unify = {c.name: c.unify for c in columns if c.role == "quasi" and c.unify is not None} if plain else {}
    return link(both.table, anonymizer.release(both.table, roles=roles, unify=unify, **_written_as(both))).aligned


def _written_as(both: Linked) -> dict[str, Any]:
    """How numbers were scaled, rare values shown and digits kept."""
    method = both.certificate.method
    return {name: getattr(method, name) for name in ("scale", "rare", "digits")}


def _published_anonymizer(both: Linked, seed: int) -> Anonymizer:
    certificate, method = both.certificate, both.certificate.method
    if not isinstance(method, TableMethod) or method.grouping is None:
        raise InputError("noise cannot be repeated: only groups can")
    if certificate.counted == "persons":
        raise InputError("groups of persons are not repeated: the certificate does not say whose rows they are")
    if method.synthesis_map and method.unifier not in UNIFIERS:
        raise InputError(f"the unifier {method.unifier!r} is not built in, so the method cannot be repeated from its certificate")
    own = method.group_map != method.synthesis_map
    return Anonymizer(
        rebuild(method.grouping, GROUPERS),
        group_map=_map(both.group_map, method.group_map) if own else None,
        synthesis_map=_map(both.synthesis_map, method.synthesis_map),
        unifier=method.unifier if method.unifier in UNIFIERS else "mean",
        constraints=constraints_of(certificate.found.constraints),
        random_state=int(np.random.default_rng([seed, 0x61747461]).integers(2**62)),
    )


def _map(at_hand: Any, parts: tuple[Any, ...]) -> Any:
    """A map to fit anew, as it is at hand or as the certificate describes it; None for the identity."""
    return (rebuild_map(parts) if at_hand is None else at_hand) if parts else None
