"""What a certificate tells everybody about how a table was anonymized: the one place that reads its structure.

Attacks rebuild the maps and run the method again from here; evaluators ask here which column has which role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.parts import AnyPart, rebuild
from ..errors import InputError
from ..method import UNIFIERS
from ..method.anonymizer import Anonymizer
from ..method.grouping import GROUPERS
from ..method.maps.parts import rebuild_map
from ..release.certificate import Certificate, Column, Noisy
from ..release.counting import constraints_of
from ..release.methods import TableMethod
from ..tables.encode import Scale
from ..tables.roles import Roles


@dataclass(frozen=True)
class Published:
    """The method, promise and columns of a certificate, as questions and answers."""

    certificate: Certificate
    method: TableMethod

    @classmethod
    def of(cls, certificate: Certificate) -> Published:
        if not isinstance(certificate.method, TableMethod):
            raise InputError("the release holds faces, not a table: evaluate it with omokage faces evaluate")
        return cls(certificate, certificate.method)

    # ------------------------------------------------------------------ columns

    @property
    def quasi(self) -> tuple[Column, ...]:
        return self._with("quasi")

    @property
    def sensitive(self) -> tuple[Column, ...]:
        return self._with("sensitive")

    @property
    def unchanged(self) -> tuple[Column, ...]:
        """Columns released as they are."""
        return self._with("sensitive", "keep")

    def _with(self, *roles: str) -> tuple[Column, ...]:
        return tuple(column for column in self.certificate.columns if column.role in roles)

    @property
    def roles(self) -> Roles:
        """The roles that the released columns had."""
        named = {role: [c.name for c in self._with(role)] for role in ("quasi", "sensitive", "keep")}
        return Roles(quasi=named["quasi"], sensitive=named["sensitive"], keep=named["keep"], rest="drop")

    @property
    def unifiers(self) -> dict[str, str]:
        """How each quasi-identifier was unified; with a synthesis map, the map decides for all of them."""
        return {} if self.synthesis_map else {c.name: c.unify for c in self.quasi if c.unify is not None}

    # ------------------------------------------------------------------ the method

    @property
    def noise(self) -> str | None:
        """The noise's distribution, where noise took the place of groups."""
        promise = self.certificate.promise
        return promise.distribution if isinstance(promise, Noisy) else None

    @property
    def group_map(self) -> tuple[AnyPart, ...]:
        """The parts of the group map; none for the identity."""
        return self.method.group_map

    @property
    def synthesis_map(self) -> tuple[AnyPart, ...]:
        return self.method.synthesis_map

    @property
    def scale(self) -> Scale:
        """How columns were put on one scale to be grouped without a map."""
        return self.method.scale

    @property
    def ordinal(self) -> bool:
        """Whether the grouper saw categories as ranks."""
        grouper = None if self.method.grouping is None else GROUPERS.get(self.method.grouping.name)
        return bool(getattr(grouper, "axis_parallel", False))

    def anonymizer(self, random_state: int, group_map: Any = None, synthesis_map: Any = None) -> Anonymizer:
        """The anonymizer that the certificate describes, with another seed.

        ``group_map`` and ``synthesis_map`` are used where they are at hand; else the maps are rebuilt from their parts.
        """
        method = self.method
        if method.grouping is None:
            raise InputError("the release has noise instead of groups: only groups can be repeated")
        if self.certificate.counted == "persons":
            raise InputError("the certificate does not say whose rows they are: groups of persons cannot be repeated")
        if method.synthesis_map and method.unifier not in UNIFIERS:
            raise InputError(f"the unifier {method.unifier!r} is not built in: a certificate is not enough to repeat the method")
        own = method.group_map != method.synthesis_map
        return Anonymizer(
            rebuild(method.grouping, GROUPERS),
            group_map=_map(group_map, method.group_map) if own else None,
            synthesis_map=_map(synthesis_map, method.synthesis_map),
            unifier=method.unifier if method.unifier in UNIFIERS else "mean",
            constraints=constraints_of(self.certificate.found.constraints),
            random_state=random_state,
        )

    @property
    def written(self) -> dict[str, Any]:
        """How columns were scaled to be grouped, rare values shown and digits kept: the last of what describes the table."""
        return {"scale": self.method.scale, "rare": self.method.rare, "digits": self.method.digits}


def is_plain(columns: Sequence[Column]) -> bool:
    """Whether every column is a number, so that values can be compared as they are."""
    return all(column.kind in ("number", "boolean") for column in columns)


def _map(at_hand: Any, parts: Sequence[AnyPart]) -> Any:
    """A map to fit again, at hand or rebuilt from its parts; None for the identity."""
    return (rebuild_map(parts) if at_hand is None else at_hand) if parts else None
