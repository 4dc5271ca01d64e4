"""Numbers sent through the maps and back: M_red = f(M), M'_red = A(M_red), M' = f⁻¹(M'_red) (DR paper, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.persons import person_weights
from ..method.fitting import fitted_vectors, way_back
from ..method.maps import Identity
from ..release.medium import Plan
from .rounding import rounded
from .unify.notes import Rare


@dataclass(frozen=True)
class Mapped:
    """A matrix of numbers, its maps, and what becomes of its groups or, with noise, of its rows."""

    x: NDArray[Any]
    plan: Plan
    digits: int | None
    rare: Rare

    @cached_property
    def _synthesis(self) -> tuple[Any, NDArray[Any]]:
        """The fitted synthesis map and what it makes of the data."""
        synthesis = Identity() if self.plan.synthesis_map is None else self.plan.synthesis_map
        self.plan.progress("mapping")
        return synthesis, fitted_vectors(synthesis, self.x)

    @property
    def fitted_synthesis(self) -> Any:
        return None if self.plan.synthesis_map is None else self._synthesis[0]

    @property
    def group_vectors(self) -> NDArray[Any]:
        """The data in the space where groups are made: the group map's, or else the synthesis map's."""
        group = self.plan.group_map
        return self._synthesis[1] if group is None else fitted_vectors(group, self.x)

    def unified(self, labels: Labels | None, persons: Labels | None) -> NDArray[Any]:
        """What every group becomes in the data's own space; without labels, every row with noise."""
        synthesis, z = self._synthesis
        if labels is None:
            self.plan.progress("adding noise")
            changed = self.plan.noise.add(z)
        else:
            self.plan.progress("unifying")
            unifier = self.plan.unifier
            if self.rare == "hide" and hasattr(unifier, "hiding"):
                unifier = unifier.hiding(self.plan.k, persons)
            changed = unifier.unify(z, labels, person_weights(persons))
        # one way back per group, not per row: the same mean must not come back differently
        return rounded(way_back(synthesis, changed, self.x), self.digits)
