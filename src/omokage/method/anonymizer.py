"""Map, group, unify, map back: one class joins the parts (MIKU-2020 section 3; DR paper section 4).

With no maps it is plain k-anonymization (DIRECT); with one map for both spaces the DR paper; with different group and
synthesis maps MIKU; with noise instead of a grouper the DR paper's other half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..base.matrix import Labels, check_k
from ..base.persons import person_codes, person_weights
from ..base.seeds import seed_from
from ..errors import InputError, MapError, NotEnoughPeople
from ..release.certificate import Certificate, Column, Found, KAnonymity, Noisy, Source, TableMethod, versions
from ..release.counting import classes_of_frame, classes_of_rows, count, recount, sensitive_columns
from ..release.key import Key
from ..release.leaks import Hidden
from ..release.publish import Release, require_promise, shuffled
from ..tables.encode import MOST, SCALES, Scale, as_numbers, encode
from ..tables.formulas import escaped, formula_notes
from ..tables.notes import telling_columns, uneven_units
from ..tables.read import with_kinds
from ..tables.roles import Roles, whose
from ..tables.table import Kind, Table, as_table, is_frame
from ..tables.unify import DEFAULT_UNIFIER, Classes, check_unifier
from ..tables.unify.notes import RARES, Rare, unify_rare
from ..tables.write import rebuilt
from . import UNIFIERS
from .constraints import Constraint, merge_until
from .fitting import describe, finite, seeded, way_back
from .grouping import GROUPERS
from .maps import Identity
from .maps.parts import part_of, parts_of
from .noise import Laplace
from .unify import Mean, Median

Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Grouped:
    """Labels by row, what every group (with noise: every row) becomes in the data's own space, and the fitted maps."""

    labels: Labels
    unified: NDArray[Any]
    synthesis: Any
    group: Any


class Anonymizer:
    """Anonymizes a whole data set at once.

    Parameters
    ----------
    grouper : object with ``fit_predict`` and ``k``, or None with ``noise``
        Who is alike: :class:`~omokage.method.grouping.Mondrian`, ``MDAV``, ``Cells`` …
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
    scale : {"range", "std", "none"}
        How the columns of a table are put on one scale to be grouped without a map.
    digits : int or None
        Significant digits of released numbers; None keeps all.
    rare : {"hide", "show"}
        Whether a value that fewer than k persons have may show in a set, a mode, a median or as the end of a range.
    escape_formulas : bool
        Put an apostrophe before text that a spreadsheet would run as a formula.
    random_state : int or None
        Fixes groupers and maps that were given no seed of their own, and the order of the released rows. It is written
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
        scale: Scale = "range",
        digits: int | None = None,
        rare: Rare = "hide",
        escape_formulas: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.grouper = grouper
        self.group_map = group_map
        self.synthesis_map = synthesis_map
        self.unifier = unifier
        self.noise = noise
        self.constraints = constraints
        self.scale = scale
        self.digits = digits
        self.rare = rare
        self.escape_formulas = escape_formulas
        self.random_state = random_state

    def release(
        self,
        data: Any,
        *,
        roles: Roles | None = None,
        person: Any = None,
        kinds: Mapping[str, Kind] | None = None,
        unify: Mapping[str, str] | None = None,
        progress: Progress = lambda _: None,
    ) -> Release:
        """Anonymize ``data``: an array (all columns are quasi-identifiers), or a table or frame with ``roles``.

        Parameters
        ----------
        data : (n, d) array, pandas or Polars frame, or Table
        roles : Roles
            The columns of a frame; None takes every column for a quasi-identifier.
        person : (n,) array
            For arrays: whose row it is. For frames name the column in ``roles``.
        kinds, unify : mapping from column to kind, and to unifier
        progress : called with what is being done
        """
        self._check()
        seed = seed_from(self.random_state)
        if is_frame(data):
            if person is not None:
                raise InputError("for a frame, name the person's column in roles")
            return self._release_table(data, roles or Roles(rest="quasi"), kinds or {}, unify or {}, seed, progress)
        if roles is not None or kinds or unify:
            raise InputError("an array has no named columns: roles, kinds and unify are for frames")
        return self._release_array(_as_rows(data), person_codes(person), seed, progress)

    def _check(self) -> None:
        if (self.grouper is None) == (self.noise is None):
            raise InputError("give a grouper or noise, one of the two")
        if self.grouper is not None:
            if not (hasattr(self.grouper, "k") and hasattr(self.grouper, "fit_predict")):
                raise InputError(f"grouper must have k and fit_predict, but it is of type {type(self.grouper).__name__}")
            check_k(self.grouper.k)
        if self.noise is not None and not (hasattr(self.noise, "add") and hasattr(self.noise, "scale")):
            raise InputError(f"noise must be a Laplace, but it is of type {type(self.noise).__name__}")
        if self.digits is not None and (not isinstance(self.digits, Integral) or self.digits < 1):
            raise InputError(f"digits must be None or a whole number from 1, but it is {self.digits!r}")
        for name, choices in (("scale", SCALES), ("rare", RARES)):
            if getattr(self, name) not in choices:
                raise InputError(f"{name} can be {', '.join(choices)}, not {getattr(self, name)!r}")
        self._matrix_unifier(None)
        for name in ("group_map", "synthesis_map"):
            if getattr(self, name) is not None and not hasattr(getattr(self, name), "fit"):
                raise InputError(f"{name} must be a transformer, but it is of type {type(getattr(self, name)).__name__}")
        if self.synthesis_map is not None and not hasattr(self.synthesis_map, "inverse_transform"):
            raise MapError(
                f"{type(self.synthesis_map).__name__} has no way back (inverse_transform), so it can group but not "
                "synthesize: give it as group_map"
            )

    # ------------------------------------------------------------------ the method

    def _anonymize(
        self,
        x: NDArray[Any],
        persons: Labels | None,
        seed: int,
        progress: Progress,
        merge: Callable[[Labels, NDArray[Any]], Labels] = lambda labels, _: labels,
    ) -> _Grouped:
        """M_red = f(M), M'_red = A(M_red), M' = f⁻¹(M'_red), with A grouping in the group map's space."""
        synthesis = seeded(self.synthesis_map or Identity(), seed)
        progress("mapping")
        s = finite(synthesis.fit_transform(x), synthesis)
        if self.noise is not None:
            progress("adding noise")
            noisy = self._rounded(way_back(synthesis, self.noise.add(s), x))
            return _Grouped(np.arange(len(x)), noisy, None if self.synthesis_map is None else synthesis, None)
        z, group = s, None if self.synthesis_map is None else synthesis
        if self.group_map is not None:
            group = seeded(self.group_map, seed)
            z = finite(group.fit_transform(x), group)
        progress("grouping")
        labels = merge(self._group(z, persons, seed), z)
        progress("unifying")
        unifier = self._matrix_unifier(persons)
        # one way back per group, not per row: the same mean must not come back differently
        unified = self._rounded(way_back(synthesis, unifier.unify(s, labels, person_weights(persons)), x))
        return _Grouped(labels, unified, None if self.synthesis_map is None else synthesis, group)

    def _matrix_unifier(self, persons: Labels | None) -> Any:
        """The unifier of mapped data; a median that shows no rare value."""
        unifier = UNIFIERS.make(self.unifier) if isinstance(self.unifier, str) else self.unifier
        if not hasattr(unifier, "unify"):
            raise InputError(f"there is no unifier {self.unifier!r}: choose {UNIFIERS.choices}, or give an object with unify")
        if isinstance(unifier, Median) and self.rare == "hide" and self.grouper is not None:
            return replace(unifier, hide=int(self.grouper.k), persons=persons)
        return unifier

    def _group(self, z: NDArray[Any], persons: Labels | None, seed: int) -> Labels:
        """Group rows, or persons by the mean of their rows."""
        grouper = seeded(self.grouper, seed)
        if persons is None:
            labels: Labels = grouper.fit_predict(z)
        else:
            people = Mean().unify(z, persons)
            if len(people) < grouper.k:
                raise NotEnoughPeople(f"k = {grouper.k} needs at least {grouper.k} persons, but there are {len(people)}: lower k")
            labels = grouper.fit_predict(people)[persons]
        return labels

    def _rounded(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.digits is None:
            return values + 0.0  # no negative zero, which would look like another value
        size = np.abs(values)
        usual = (size > 1e-290) & (size < 1e290)
        place = np.floor(np.log10(np.where(usual, size, 1.0)))
        unit = 10.0 ** (min(self.digits, 17) - 1 - place)
        rounded: NDArray[Any] = np.round(values.astype(np.float64) * unit) / unit + 0.0
        for at in zip(*np.nonzero(~usual & (size > 0)), strict=True):  # powers of ten near the ends of floats overflow
            rounded[at] = float(f"{values[at]:.{min(self.digits, 17) - 1}e}")
        return rounded.astype(values.dtype)

    # ------------------------------------------------------------------ arrays

    def _release_array(self, x: NDArray[Any], persons: Labels | None, seed: int, progress: Progress) -> Release:
        if self.constraints:
            raise InputError("l-diversity and t-closeness need a frame with a sensitive column")
        if persons is not None and len(persons) != len(x):
            raise InputError(f"person must name one person for each of the {len(x)} rows, but it has {len(persons)}")
        done = self._anonymize(x, persons, seed, progress)
        classes = classes_of_rows(done.unified)  # canonical: ranks of the released rows, whatever the input's order
        order = shuffled(np.argsort(classes[done.labels], kind="stable"), seed)
        out = np.ascontiguousarray(done.unified[done.labels][order])
        names = tuple(f"x_{j}" for j in range(out.shape[1]))
        key = Key.of(done.labels if self.noise is None else None, order, persons, seed)
        columns = tuple(Column(name, "quasi", "number", self._how()) for name in names)
        found = count(classes_of_rows(out), persons=key.persons_by_row())
        certificate = self._certificate(found, columns, persons, Source(len(x), x.shape[1]), ())
        table = Table(
            pl.DataFrame(out, schema=list(names), orient="row"),
            dict.fromkeys(names, "number"),
            "npy",
            arrays={"": names},
        )
        return Release(out, certificate, key, table, synthesis=done.synthesis, group_map=done.group)

    def _how(self) -> str:
        if self.noise is not None:
            return "noise"
        return self.unifier if isinstance(self.unifier, str) else type(self.unifier).__name__.lower()

    # ------------------------------------------------------------------ tables

    def _release_table(
        self,
        data: Any,
        roles: Roles,
        kinds: Mapping[str, Kind],
        unify: Mapping[str, str],
        seed: int,
        progress: Progress,
    ) -> Release:
        table = with_kinds(as_table(data), kinds)
        role = roles.resolve(table)
        quasi = [name for name in role if role[name] == "quasi"]
        mapped = self.noise is not None or not (self.synthesis_map is None or isinstance(self.synthesis_map, Identity))
        columns = self._columns(table, role, unify, mapped)
        sensitive = sensitive_columns(table.frame, columns) if self.constraints else []
        persons = person_codes(None if roles.person is None else whose(table.frame[roles.person]))

        def merge(labels: Labels, z: NDArray[Any]) -> Labels:
            return merge_until(labels, z, sensitive, self.constraints)

        notes = telling_columns(table, role)
        if mapped:
            who = "noise" if self.synthesis_map is None else f"the map {describe(self.synthesis_map)}"
            x = as_numbers(table, quasi, who)
            notes += uneven_units(x, any(part.name == "std" for part in parts_of(self.synthesis_map)))
            done = self._anonymize(x, persons, seed, progress, merge)
            labels, synthesis, group = done.labels, done.synthesis, done.group
            groups = pl.DataFrame(done.unified, schema=quasi, orient="row")
        else:
            (labels, group), synthesis = self._group_columns(table, quasi, persons, seed, progress, merge), None
            groups, rare = self._unify(table, columns, Classes(labels, persons, int(self.grouper.k)))
            notes += rare
        progress("arranging")
        order, frame = self._arrange(table, columns, groups, labels, seed)
        frame = escaped(frame) if self.escape_formulas else frame
        notes += formula_notes(frame) if table.format == "csv" else []
        key = Key.of(labels if self.noise is None else None, order, persons, seed, table.sha256)
        found = recount(frame, columns, self.constraints, key.persons_by_row())
        certificate = self._certificate(found, columns, persons, Source(len(frame), len(table.frame.columns)), notes)
        known = {c.name: table.kinds[c.name] for c in columns}
        released = Table(frame, known, table.format, table.separator, arrays=table.arrays)
        unseen = [table.verbatim(name).cast(pl.String) for name in role if role[name] in ("identifier", "person")]
        unified = [table.verbatim(name).cast(pl.String) for name in quasi if table.kinds[name] in ("code", "category")]
        hidden = Hidden(pl.DataFrame(unseen), pl.DataFrame(unified), persons)
        return Release(_same_type(frame, data), certificate, key, released, tuple(self.constraints), synthesis, group, hidden)

    def _group_columns(
        self, table: Table, quasi: list[str], persons: Labels | None, seed: int, progress: Progress,
        merge: Callable[[Labels, NDArray[Any]], Labels],
    ) -> tuple[Labels, Any]:  # fmt: skip
        """Labels from columns of any kind, and the fitted group map, which sees numbers as they are and other kinds encoded."""
        progress("grouping")
        group = None
        if self.group_map is None or isinstance(self.group_map, Identity):
            z = encode(table, quasi, self.scale, getattr(self.grouper, "axis_parallel", False))
        else:
            plain = all(table.kinds[name] in ("number", "boolean") for name in quasi)
            x = encode(table, quasi, "none" if plain else self.scale, ordinal=False)
            group = seeded(self.group_map, seed)
            z = finite(group.fit_transform(x), group)
        return merge(self._group(z, persons, seed), z), group

    def _columns(self, table: Table, role: Mapping[str, str], unify: Mapping[str, str], mapped: bool) -> tuple[Column, ...]:
        for name in unify:
            if role.get(name) != "quasi":
                raise InputError(f"column {name!r} is to be unified, but it is not a quasi-identifier")
        if unify and mapped:
            raise InputError("with a map or noise all quasi-identifiers are treated alike: leave out the columns' unifiers")
        columns = []
        for name, part in role.items():
            if part in ("identifier", "person"):
                continue
            how = None
            if part == "quasi":
                kind = table.kinds[name]
                default = DEFAULT_UNIFIER[kind]
                how = self._how() if mapped else check_unifier(name, kind, unify.get(name, default))
            columns.append(Column(name, part, table.kinds[name], how))  # type: ignore[arg-type]
        return tuple(columns)

    def _unify(self, table: Table, columns: Sequence[Column], classes: Classes) -> tuple[pl.DataFrame, list[str]]:
        """What the groups become, column by column, and what is to be noted about rare and extreme values."""
        groups: dict[str, pl.Series] = {}
        notes: list[str] = []
        for column in columns:
            if column.role == "quasi":
                cells = table.frame[column.name]
                out, found, _ = unify_rare(cells, table.kinds[column.name], column.unify or "", classes, self.rare)
                notes += found
                if out.dtype.is_float():
                    out = pl.Series(column.name, self._rounded(out.to_numpy()), nan_to_null=True)
                groups[column.name] = out
        return pl.DataFrame(groups), notes

    def _arrange(
        self, table: Table, columns: Sequence[Column], groups: pl.DataFrame, labels: Labels, seed: int
    ) -> tuple[Labels, pl.DataFrame]:
        """Put the released rows in an order that depends on what is released and the seed alone."""
        quasi = list(groups.columns)
        keys = pl.DataFrame([column.alias(f"c{j}") for j, column in enumerate(groups)])  # a name such as ^a$ is a pattern
        rank = keys.select(pl.arg_sort_by(keys.columns)).to_series().to_numpy()
        place = np.empty(len(rank), dtype=np.int64)
        place[rank] = np.arange(len(rank))
        classes = classes_of_frame(groups, quasi)  # groups released alike share one place, so the order cannot tell them apart
        first = np.full(int(classes.max()) + 1, len(rank))
        np.minimum.at(first, classes, place)
        place = first[classes]
        asis = [table.verbatim(c.name) for c in columns if c.role != "quasi"]
        keys = pl.DataFrame([place[labels], *(s.cast(pl.String) for s in asis)], schema=[f"c{j}" for j in range(len(asis) + 1)])
        canonical = keys.select(pl.arg_sort_by(keys.columns)).to_series().to_numpy()
        order = shuffled(canonical.astype(np.int64), seed)
        unified = groups[labels[order]]
        kept = pl.DataFrame([s.gather(order) for s in asis]) if asis else pl.DataFrame()
        frame = pl.DataFrame([unified[c.name] if c.role == "quasi" else kept[c.name] for c in columns])
        return order, rebuilt(frame)  # gathering moves views only: the buffers would still hold the input's order

    # ------------------------------------------------------------------ the certificate

    def _certificate(
        self, found: Found, columns: Sequence[Column], persons: Labels | None, source: Source, notes: Sequence[str]
    ) -> Certificate:
        promise: KAnonymity | Noisy
        if self.noise is not None:
            promise = Noisy(type(self.noise).__name__, float(self.noise.scale))  # type: ignore[arg-type]
            if self.noise.random_state is not None:
                notes = [*notes, "The noise was drawn with a fixed seed: whoever knows it can take the noise off again."]
        else:
            promise = KAnonymity(int(self.grouper.k), "rows" if persons is None else "persons")
        method = TableMethod(
            grouping=None if self.grouper is None else part_of(self.grouper, GROUPERS),
            group_map=parts_of(self.group_map or self.synthesis_map),
            synthesis_map=parts_of(self.synthesis_map),
            unifier=self._how(),
            scale=self.scale,
            digits=self.digits,
        )
        certificate = Certificate(promise, found, method, tuple(columns), source, notes=tuple(notes), versions=dict(versions()))
        require_promise(certificate)
        return certificate


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


def _same_type(frame: pl.DataFrame, like: Any) -> Any:
    return frame if isinstance(like, pl.DataFrame | Table) else frame.to_pandas()
