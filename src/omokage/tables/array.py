"""An array as a medium: every column is a number and a quasi-identifier, and rows are alike to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.persons import person_codes
from ..base.registry import Registry
from ..errors import InputError
from ..method.maps import MAPS
from ..release.certificate import Column, Source
from ..release.counting import classes_of_rows, count
from ..release.key import Key
from ..release.medium import Counted, Plan, Recipe, Rendered
from ..release.methods import TableMethod
from ..release.rules import Sensitive
from .arrange import shuffled
from .encode import MOST, Scale, check_scale
from .leaks import Hidden
from .mapped import Mapped
from .rounding import check_digits
from .table import Table
from .unify.notes import Rare, check_rare
from .writing import TableWriter


class ArrayMedium:
    """An (n, d) array of numbers.

    Parameters
    ----------
    data : (n, d) array
    person : (n,) array
        Whose row each is; None takes every row for a different person.
    digits, rare, scale : see :class:`~omokage.tables.medium.TableMedium`; numbers are never scaled here
    """

    maps: ClassVar[Registry] = MAPS

    def __init__(
        self, data: Any, person: Any = None, *, digits: int | None = None, rare: Rare = "hide", scale: Scale = "range"
    ) -> None:
        self.data = data
        self.person = person
        self.digits = digits
        self.rare = rare
        self.scale = scale

    def prepare(self, plan: Plan) -> PreparedArray:
        check_digits(self.digits)
        check_rare(self.rare)
        check_scale(self.scale)
        if plan.constraints:
            raise InputError("l-diversity and t-closeness need a frame with a sensitive column")
        x, persons = _as_rows(self.data), person_codes(self.person)
        if persons is not None and len(persons) != len(x):
            raise InputError(f"person must name one person for each of the {len(x)} rows, but it has {len(persons)}")
        return PreparedArray(self, x, persons, plan)


@dataclass(frozen=True)
class PreparedArray:
    """An array that has been checked."""

    medium: ArrayMedium
    x: NDArray[Any]
    persons: Labels | None
    plan: Plan
    mixed: bool = False

    @property
    def counted(self) -> Counted:
        return "rows" if self.persons is None else "persons"

    @cached_property
    def mapped(self) -> Mapped:
        return Mapped(self.x, self.plan, self.medium.digits, self.medium.rare)

    def vectors(self, ordinal: bool) -> NDArray[Any]:
        return self.mapped.group_vectors

    def sensitive(self) -> Sequence[Sensitive]:
        return ()

    def render(self, labels: Labels | None, recipe: Recipe) -> Rendered:
        plan, medium = self.plan, self.medium
        unified = self.mapped.unified(labels, self.persons)
        place = np.arange(len(self.x)) if labels is None else labels
        classes = classes_of_rows(unified)  # canonical: ranks of the released rows, whatever the input's order
        order = shuffled(np.argsort(classes[place], kind="stable"), plan.seed)
        out = np.ascontiguousarray(unified[place][order])
        names = tuple(f"x_{j}" for j in range(out.shape[1]))
        key = Key.of(labels, order, self.persons, plan.seed)
        frame = pl.DataFrame(out, schema=list(names), orient="row")
        table = Table(frame, dict.fromkeys(names, "number"), "npy", arrays={"": names})
        return Rendered(
            data=out,
            key=key,
            found=count(classes_of_rows(out), persons=key.persons_by_row()),
            method=TableMethod(**vars(recipe), scale=medium.scale, digits=medium.digits, rare=medium.rare),
            source=Source(len(out), len(names)),
            writer=TableWriter(table, (), Hidden(pl.DataFrame())),
            columns=tuple(Column(name, "quasi", "number", plan.unifier_name) for name in names),
            group_map=self.mapped.fitted_synthesis if plan.group_map is None else plan.group_map,
            synthesis_map=self.mapped.fitted_synthesis,
        )


def _as_rows(data: Any) -> NDArray[Any]:
    try:
        x = np.asarray(data)
    except ValueError:
        raise InputError("a matrix of rows × columns is needed, but the rows are not of one length") from None
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(f"a matrix of rows × columns is needed, but the data have shape {x.shape}")
    if x.dtype.kind not in "fiub":
        raise InputError(f"an array of numbers is needed, but it is of type {x.dtype}: give a frame for mixed columns")
    x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    if max(-float(x.min()), float(x.max())) > MOST and np.isfinite(x).all():
        raise InputError(f"the data hold numbers beyond {MOST:g}: scale them")
    return x
