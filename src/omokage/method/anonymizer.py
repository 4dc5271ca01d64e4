"""Map, group, unify, map back: one pipeline for every medium (MIKU-2020 section 3; DR paper section 4).

With no maps it is plain k-anonymization (DIRECT); with one map for both spaces the DR paper; with different group and
synthesis maps MIKU; with noise instead of a grouper the DR paper's other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from numpy.typing import NDArray

from ..base.matrix import Labels, check_k
from ..base.parts import part_of
from ..base.progress import Progress, silent
from ..base.seeds import seed_from
from ..errors import InputError, MapError, NotEnoughPeople
from ..release.certificate import Certificate, KAnonymity, Noisy, versions
from ..release.medium import MEDIA, Medium, Plan, Prepared, Recipe
from ..release.publish import require_promise
from ..release.release import Release
from ..release.rules import Constraint
from . import UNIFIERS
from .constraints import merge_until
from .fitting import labels_of, seeded
from .grouping import GROUPERS, Cells, Mondrian
from .maps.parts import parts_of
from .noise import Laplace
from .unify import Mean


class Anonymizer:
    """Anonymizes a whole data set at once.

    Parameters
    ----------
    grouper : object with ``fit_predict`` and ``k``, a whole number k, or None with ``noise``
        Who is alike: :class:`~omokage.Mondrian`, ``MDAV``, ``Cells`` … A number takes the grouper that suits the data:
        ``Mondrian`` where numbers and categories are mixed, else ``Cells``.
    group_map : transformer or None
        The space to group in; None groups in the synthesis map's space.
    synthesis_map : transformer with ``inverse_transform``, or None
        The space to average in; None averages the data as they are.
    unifier : {"mean", "median", "spread"} or object with ``unify``
        What a group becomes in the synthesis space.
    noise : Laplace or None
        Noise in the synthesis space instead of groups. It promises no k.
    constraints : sequence of LDiversity, TCloseness
        What groups must hold beyond k; groups that fail are merged with their nearest.
    random_state : int or None
        Fixes groupers and maps that were given no seed of their own, and the order of released rows. It is written
        only into the secret key; noise never uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from omokage import Anonymizer, Mondrian
    >>> X = np.array([[22.0, 1.0], [24.0, 1.0], [26.0, 0.0], [31.0, 0.0], [39.0, 0.0]])
    >>> release = Anonymizer(Mondrian(k=2), random_state=0).release(X)
    >>> release.certificate.found.k, sorted(release.data[:, 0].tolist())
    (2, [24.0, 24.0, 24.0, 35.0, 35.0])
    """

    def __init__(
        self,
        grouper: Any = None,
        *,
        group_map: Any = None,
        synthesis_map: Any = None,
        unifier: Any = "mean",
        noise: Laplace | None = None,
        constraints: Sequence[Constraint] = (),
        random_state: int | None = None,
    ) -> None:
        self.grouper = grouper
        self.group_map = group_map
        self.synthesis_map = synthesis_map
        self.unifier = unifier
        self.noise = noise
        self.constraints = constraints
        self.random_state = random_state

    def release(self, data: Any, *, progress: Progress = silent, **about: Any) -> Release:
        """Anonymize ``data``.

        Parameters
        ----------
        data : a medium, a table, a pandas or Polars frame, or an (n, d) array
            A medium is a :class:`~omokage.tables.medium.TableMedium`, a :class:`~omokage.faces.FaceFolder`, or your own.
        progress : called with what is being done
        about : what describes a frame or an array, as TableMedium takes it: ``roles``, ``kinds``, ``unify``, ``scale``,
            ``digits``, ``rare``, ``escape_formulas``, and ``person`` for an array
        """
        self.check()
        medium = as_medium(data, **about)
        seed = seed_from(self.random_state)
        plan = Plan(
            k=self.k,
            group_map=None if self.group_map is None else seeded(self.group_map, seed),
            synthesis_map=None if self.synthesis_map is None else seeded(self.synthesis_map, seed),
            unifier=self._unifier(),
            unifier_name="noise" if self.noise is not None else _name_of(self.unifier),
            noise=self.noise,
            constraints=tuple(self.constraints),
            seed=seed,
            progress=progress,
        )
        prepared = medium.prepare(plan)
        grouper = None if self.noise is not None else self._grouper(prepared)
        labels = None if grouper is None else self._labels(prepared, grouper, plan)
        recipe = Recipe(
            grouping=None if grouper is None else part_of(grouper, GROUPERS),
            group_map=parts_of(self.synthesis_map if self.group_map is None else self.group_map, medium.maps),
            synthesis_map=parts_of(self.synthesis_map, medium.maps),
            unifier=plan.unifier_name,
        )
        made = prepared.render(labels, recipe)
        certificate = Certificate(
            promise=self._promise(prepared),
            found=made.found,
            method=made.method,
            columns=made.columns,
            source=made.source,
            notes=(*made.notes, *self._notes()),
            versions=dict(versions()),
        )
        require_promise(certificate)
        return Release(made.data, certificate, made.key, made.writer, made.synthesis_map, made.group_map)

    @property
    def k(self) -> int | None:
        """The least number of people in a group; None with noise."""
        if self.grouper is None:
            return None
        return int(self.grouper if isinstance(self.grouper, Integral) else self.grouper.k)

    # ------------------------------------------------------------------ groups

    def _grouper(self, prepared: Prepared) -> Any:
        if not isinstance(self.grouper, Integral):
            return self.grouper
        # Cells loses least where a group becomes its mean; halves along axes keep categories and prefixes together
        return (Mondrian if prepared.mixed else Cells)(int(self.grouper))

    def _labels(self, prepared: Prepared, grouper: Any, plan: Plan) -> Labels:
        """The group of each record: vectors, groups of people, and groups merged until every constraint holds."""
        z = prepared.vectors(bool(getattr(grouper, "axis_parallel", False)))
        plan.progress("grouping")
        labels = group_people(z, prepared.persons, seeded(grouper, plan.seed), prepared.counted)
        return merge_until(labels, z, prepared.sensitive(), plan.constraints) if plan.constraints else labels

    # ------------------------------------------------------------------ checks

    def check(self) -> None:
        """Refuse a combination of parts that does not work, before any data are read."""
        if (self.grouper is None) == (self.noise is None):
            raise InputError("give a grouper or noise, one of the two")
        if isinstance(self.grouper, Integral):
            check_k(self.grouper)
        elif self.grouper is not None:
            if not (hasattr(self.grouper, "k") and hasattr(self.grouper, "fit_predict")):
                raise InputError(f"grouper must have k and fit_predict, but it is of type {type(self.grouper).__name__}")
            check_k(self.grouper.k)
        if self.noise is not None and not (hasattr(self.noise, "add") and hasattr(self.noise, "scale")):
            raise InputError(f"noise must be a Laplace, but it is of type {type(self.noise).__name__}")
        self._unifier()
        for name in ("group_map", "synthesis_map"):
            given = getattr(self, name)
            if given is not None and not hasattr(given, "fit"):
                raise InputError(f"{name} must be a transformer, but it is of type {type(given).__name__}")
        if self.synthesis_map is not None and not hasattr(self.synthesis_map, "inverse_transform"):
            raise MapError(
                f"{type(self.synthesis_map).__name__} has no way back (inverse_transform), so it can group but not "
                "synthesize: give it as group_map"
            )

    def _unifier(self) -> Any:
        unifier = UNIFIERS.make(self.unifier) if isinstance(self.unifier, str) else self.unifier
        if not hasattr(unifier, "unify"):
            raise InputError(f"there is no unifier {self.unifier!r}: choose {UNIFIERS.choices}, or give an object with unify")
        return unifier

    # ------------------------------------------------------------------ the certificate

    def _promise(self, prepared: Prepared) -> KAnonymity | Noisy:
        if self.noise is not None:
            return Noisy(type(self.noise).__name__, float(self.noise.scale))  # type: ignore[arg-type]
        return KAnonymity(int(self.k or 0), prepared.counted)

    def _notes(self) -> list[str]:
        if self.noise is not None and getattr(self.noise, "random_state", None) is not None:
            return ["The noise was drawn with a fixed seed: whoever knows it can take the noise off again."]
        return []


def as_medium(data: Any, **about: Any) -> Medium:
    """A medium as it is; a table, frame or array as a table."""
    if hasattr(data, "prepare"):
        if about:
            raise InputError(f"{', '.join(about)} describe a frame or an array: give them to the medium instead")
        medium: Medium = data
        return medium
    table: Medium = MEDIA["table"].of(data, **about)
    return table


def group_people(z: NDArray[Any], persons: Labels | None, grouper: Any, counted: str = "rows") -> Labels:
    """A group for every record. Where a person has several, the person is grouped by their mean, and they stay together."""
    people = z if persons is None else Mean().unify(z, persons)
    if len(people) < grouper.k:
        raise NotEnoughPeople(
            f"k = {grouper.k} needs at least {grouper.k} {counted}, but there are {len(people)}: lower k or add {counted}"
        )
    labels = labels_of(grouper, people)
    return labels if persons is None else labels[persons]


def _name_of(unifier: Any) -> str:
    return unifier if isinstance(unifier, str) else type(unifier).__name__.lower()
