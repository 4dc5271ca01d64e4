"""A table as a medium: its rows in the space where groups are made, and what each column becomes.

Without a synthesis map every column is unified in its own terms; with one, or with noise, the quasi-identifiers are numbers that
go through the map and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.persons import person_codes
from ..base.registry import Registry
from ..errors import InputError, VerificationError
from ..method.fitting import describe, fitted_vectors
from ..method.maps import MAPS, Identity
from ..release.certificate import Certificate, Column, Found, Source
from ..release.contents import Contents
from ..release.counting import constraints_of
from ..release.key import Key
from ..release.medium import Counted, Plan, Recipe, Rendered
from ..release.methods import TableMethod
from ..release.rules import Sensitive
from .arrange import arranged
from .array import ArrayMedium
from .counting import recount, sensitive_columns
from .encode import Scale, as_numbers, check_scale, encode
from .formulas import escaped, formula_notes
from .leaks import Hidden
from .mapped import Mapped
from .notes import telling_columns, uneven_units
from .read import with_kinds
from .roles import Roles, whose
from .rounding import check_digits, rounded
from .table import Kind, Table, as_table, is_frame
from .unify import DEFAULT_UNIFIER, Classes, check_unifier
from .unify.notes import Rare, check_rare, unify_rare
from .writing import TableWriter, read_written


class TableMedium:
    """A table with named columns.

    Parameters
    ----------
    data : pandas or Polars frame, or Table (see :func:`omokage.read_table`)
    roles : Roles
        Which column plays which part; None takes every column for a quasi-identifier.
    kinds, unify : mapping from column to kind, and to unifier
    scale : {"range", "std", "none"}
        How columns are put on one scale to be grouped without a map.
    digits : int or None
        Significant digits of released numbers; None keeps all.
    rare : {"hide", "show"}
        Whether a value that fewer than k persons have may show in a set, a mode, a median or as the end of a range.
    escape_formulas : bool
        Put an apostrophe before text that a spreadsheet would run as a formula.
    """

    maps: ClassVar[Registry] = MAPS

    def __init__(
        self,
        data: Any,
        roles: Roles | None = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
        unify: Mapping[str, str] | None = None,
        scale: Scale = "range",
        digits: int | None = None,
        rare: Rare = "hide",
        escape_formulas: bool = False,
    ) -> None:
        self.data = data
        self.roles = roles
        self.kinds = kinds
        self.unify = unify
        self.scale = scale
        self.digits = digits
        self.rare = rare
        self.escape_formulas = escape_formulas

    @classmethod
    def of(cls, data: Any, *, person: Any = None, **about: Any) -> TableMedium | ArrayMedium:
        """A frame or an array as a medium; ``about`` are the parameters of this class, ``person`` is for arrays."""
        if is_frame(data):
            if person is not None:
                raise InputError("person is for arrays: for a frame, name the person's column in roles")
            return cls(data, **about)
        named = [name for name in ("roles", "kinds", "unify") if about.pop(name, None)]
        if named:
            raise InputError(f"an array has no named columns: {', '.join(named)} are for frames")
        return ArrayMedium(data, person, **about)

    def prepare(self, plan: Plan) -> PreparedTable:
        """Resolve roles and columns; refuse what does not fit."""
        check_digits(self.digits)
        check_rare(self.rare)
        check_scale(self.scale)
        table = with_kinds(as_table(self.data), self.kinds or {})
        return PreparedTable(self, table, (self.roles or Roles(rest="quasi")).resolve(table), plan)

    @classmethod
    def count(cls, contents: Contents, certificate: Certificate, persons: NDArray[Any] | None) -> Found:
        """Count a written table on its bytes."""
        path = certificate.files[0].path
        written = read_written(path, contents.read(path))
        names = [column.name for column in certificate.columns]
        if written.columns != names or len(written) != certificate.found.rows:
            raise VerificationError(
                f"{len(written)} rows and {len(written.columns)} columns were found, but {certificate.found.rows} rows and "
                f"{len(names)} columns were certified, or their names differ"
            )
        return recount(written, certificate.columns, constraints_of(certificate.found.constraints), persons)


@dataclass(frozen=True)
class PreparedTable:
    """A table whose roles are known."""

    medium: TableMedium
    table: Table
    role: Mapping[str, str]
    plan: Plan

    @cached_property
    def quasi(self) -> list[str]:
        return [name for name in self.role if self.role[name] == "quasi"]

    @cached_property
    def persons(self) -> Labels | None:
        column = next((name for name, role in self.role.items() if role == "person"), None)
        return person_codes(None if column is None else whose(self.table.frame[column]))

    @property
    def counted(self) -> Counted:
        return "rows" if self.persons is None else "persons"

    @cached_property
    def mixed(self) -> bool:
        return not all(self.table.kinds[name] in ("number", "boolean") for name in self.quasi)

    @cached_property
    def mapped(self) -> Mapped | None:
        """The quasi-identifiers under the synthesis map; None where every column is unified in its own terms."""
        plan = self.plan
        if plan.noise is None and (plan.synthesis_map is None or isinstance(plan.synthesis_map, Identity)):
            return None
        who = "noise" if plan.synthesis_map is None else f"the map {describe(plan.synthesis_map)}"
        return Mapped(as_numbers(self.table, self.quasi, who), plan, self.medium.digits, self.medium.rare)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The released columns, and how each is unified."""
        unify = self.medium.unify or {}
        for name in unify:
            if self.role.get(name) != "quasi":
                raise InputError(f"column {name!r} is to be unified, but it is not a quasi-identifier")
        if unify and self.mapped is not None:
            raise InputError("with a map or noise all quasi-identifiers are treated alike: leave out the columns' unifiers")
        columns = []
        for name, part in self.role.items():
            if part not in ("identifier", "person"):
                kind, how = self.table.kinds[name], None
                if part == "quasi" and self.mapped is not None:
                    how = self.plan.unifier_name
                elif part == "quasi":
                    how = check_unifier(name, kind, unify.get(name, DEFAULT_UNIFIER[kind]))
                columns.append(Column(name, part, kind, how))  # type: ignore[arg-type]
        return tuple(columns)

    def vectors(self, ordinal: bool) -> NDArray[Any]:
        """Columns on one scale, or what the maps make of them; a group map sees numbers as they are and other kinds encoded."""
        _ = self.columns  # wrong unifiers are refused before the work
        group = self.plan.group_map
        if self.mapped is not None:
            return self.mapped.group_vectors
        if group is None or isinstance(group, Identity):
            return encode(self.table, self.quasi, self.medium.scale, ordinal)
        x = encode(self.table, self.quasi, self.medium.scale if self.mixed else "none", ordinal=False)
        return fitted_vectors(group, x)

    def sensitive(self) -> Sequence[Sensitive]:
        return sensitive_columns(self.table.frame, self.columns)

    def render(self, labels: Labels | None, recipe: Recipe) -> Rendered:
        table, columns, medium, plan = self.table, self.columns, self.medium, self.plan
        notes = telling_columns(table, self.role)
        if self.mapped is not None:
            notes += uneven_units(self.mapped.x, any(part.name == "std" for part in recipe.synthesis_map))
            groups = pl.DataFrame(self.mapped.unified(labels, self.persons), schema=self.quasi, orient="row")
        elif labels is not None:
            groups, rare = self._unified(Classes(labels, self.persons, int(plan.k or 0)))
            notes += rare
        plan.progress("arranging")
        place = np.arange(len(table.frame)) if labels is None else labels
        order, frame = arranged(table, columns, groups, place, plan.seed)
        frame = escaped(frame) if medium.escape_formulas else frame
        notes += formula_notes(frame) if table.format == "csv" else []
        key = Key.of(labels, order, self.persons, plan.seed, table.sha256)
        known = {c.name: table.kinds[c.name] for c in columns}
        released = Table(frame, known, table.format, table.separator, arrays=table.arrays)
        return Rendered(
            data=frame if isinstance(medium.data, pl.DataFrame | Table) else frame.to_pandas(),
            key=key,
            found=recount(frame, columns, plan.constraints, key.persons_by_row()),
            method=TableMethod(**vars(recipe), scale=medium.scale, digits=medium.digits, rare=medium.rare),
            source=Source(len(frame), len(table.frame.columns)),
            writer=TableWriter(released, plan.constraints, self._hidden()),
            columns=columns,
            notes=tuple(notes),
            group_map=self._fitted_group_map(),
            synthesis_map=None if self.mapped is None else self.mapped.fitted_synthesis,
        )

    def _fitted_group_map(self) -> Any:
        group = self.plan.group_map
        if group is None:
            return None if self.mapped is None else self.mapped.fitted_synthesis
        return None if self.mapped is None and isinstance(group, Identity) else group

    def _unified(self, classes: Classes) -> tuple[pl.DataFrame, list[str]]:
        """What the groups become, column by column, and what is to be noted about rare and extreme values."""
        groups: dict[str, pl.Series] = {}
        notes: list[str] = []
        for column in self.columns:
            if column.role == "quasi":
                cells, kind = self.table.frame[column.name], self.table.kinds[column.name]
                out, found, _ = unify_rare(cells, kind, column.unify or "", classes, self.medium.rare)
                notes += found
                if out.dtype.is_float():
                    out = pl.Series(column.name, rounded(out.to_numpy(), self.medium.digits), nan_to_null=True)
                groups[column.name] = out
        return pl.DataFrame(groups), notes

    def _hidden(self) -> Hidden:
        """What no byte of the release may hold."""
        table, role = self.table, self.role
        unseen = [table.verbatim(name).cast(pl.String) for name in role if role[name] in ("identifier", "person")]
        unified = [table.verbatim(name).cast(pl.String) for name in self.quasi if table.kinds[name] in ("code", "category")]
        return Hidden(pl.DataFrame(unseen), pl.DataFrame(unified), self.persons)
