"""What the certificate says about rare and extreme values: counts of classes, never a value."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from ...base.persons import person_weights
from ...errors import InputError
from ..encode import plain_numbers
from ..table import Kind
from .columns import Classes, unify_column

Rare = Literal["hide", "show"]
RARES: tuple[Rare, ...] = ("hide", "show")


def check_rare(rare: object) -> None:
    """Refuse anything but "hide" and "show"."""
    if rare not in RARES:
        raise InputError(f"rare can be {', '.join(RARES)}, not {rare!r}")


_HIDDEN = {
    "mean": "fewer than {k} {people} have a value, so it was rounded until {k} {people} share it",
    "median": "the median was the value of fewer than {k} {people}, so the values around it were averaged",
    "range": "an end of the range was a value that fewer than {k} {people} have, so it was moved outward to one that {k} share, "
    "or left open (*)",
    "mode": "a value that fewer than {k} {people} have was merged with its nearest, or became *",
    "set": "values that fewer than {k} {people} have were merged with their nearest, or became *",
}


def unify_rare(column: pl.Series, kind: Kind, how: str, classes: Classes, rare: Rare) -> tuple[pl.Series, list[str], int]:
    """One value per group, what is to be noted about it, and in how many groups hiding rare values makes a difference.

    ``classes.hide`` is k; with ``rare="show"`` the values are released as they are, and only counted.
    """
    shown = unify_column(column, kind, how, replace(classes, hide=None))
    if how not in _HIDDEN or (how == "mean" and not column.null_count()):
        return shown, _extremes(column, how, classes), 0
    hidden = unify_column(column, kind, how, classes)
    differ = int(shown.cast(pl.String).ne_missing(hidden.cast(pl.String)).sum())
    notes = _extremes(column, how, classes)
    if differ:
        people = "rows" if classes.persons is None else "persons"
        where = f"Column {column.name}: in {differ} of {len(shown)} classes "
        if rare == "hide":
            notes.append(where + _HIDDEN[how].format(k=classes.hide, people=people) + ".")
        else:
            notes.append(where + f"a value shows that fewer than {classes.hide} {people} have, as --rare show allows.")
    return (hidden if rare == "hide" else shown), notes, differ


def _extremes(column: pl.Series, how: str, classes: Classes) -> list[str]:
    """A note where one person moves the mean of a class by more than the column's standard deviation."""
    if how != "mean" or column.dtype == pl.Boolean:
        return []
    values = plain_numbers(column)
    known = ~np.isnan(values)
    spread = float(np.std(values[known])) if known.any() else 0.0
    weights = person_weights(classes.persons)
    weight = np.ones(int(known.sum())) if weights is None else weights[known]
    labels, values = classes.labels[known], values[known]
    person, group = np.arange(len(labels)), labels
    if classes.persons is not None:  # a person's rows in a group count once, together
        people = int(classes.persons.max()) + 1
        pairs, person = np.unique(labels * people + classes.persons[known], return_inverse=True)
        group = pairs // people
    share = np.bincount(person, weight)
    own = np.bincount(person, weight * values) / share
    size, total = np.bincount(group, share), np.bincount(group, share * own)
    others = size[group] - share
    alone = np.divide(total[group] - share * own, others, out=own.copy(), where=others > 1e-9)
    moved = np.abs(own - alone) * share / size[group] > spread
    count = len(np.unique(group[moved]))
    if not count or spread == 0:
        return []
    return [
        f"Column {column.name}: in {count} of {int(classes.labels.max()) + 1} classes one extreme value moves the mean by more "
        "than the column's standard deviation, so the mean tells of one person: the median, a range or a larger k tells less."
    ]
