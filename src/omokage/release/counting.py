"""Counting a release: rows alike, the people among them, and what the groups hold beyond k. Nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.matrix import Labels
from .certificate import Found, Rule
from .rules import Constraint, LDiversity, Sensitive, TCloseness, found


def classes_of_rows(matrix: np.ndarray) -> Labels:
    """A number for each row, equal where the rows are the same to the bit."""
    rows = np.ascontiguousarray(matrix)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    labels: Labels = np.unique(keys, return_inverse=True)[1].ravel().astype(np.int64)
    return labels


def count(
    labels: Labels,
    constraints: Sequence[Constraint] = (),
    sensitive: Sequence[Sensitive] = (),
    persons: Labels | None = None,
) -> Found:
    """Count the classes: rows in each, or different persons where ``persons`` says whose row it is."""
    pairs = labels if persons is None else np.unique(np.column_stack([labels, persons]), axis=0)[:, 0]
    per_class = np.bincount(pairs)
    sizes = tuple((int(size), int(number)) for size, number in zip(*np.unique(per_class, return_counts=True), strict=True))
    measured = tuple(
        Rule(name=c.name, column=s.name, asked=float(c.asked), found=float(found(c, s, labels)))  # type: ignore[arg-type]
        for c in constraints
        for s in sensitive
    )
    people = None if persons is None else len(np.unique(persons))
    return Found(
        k=int(per_class.min()), rows=len(labels), groups=len(per_class), class_sizes=sizes, persons=people, constraints=measured
    )


def constraints_of(rules: Sequence[Rule]) -> list[Constraint]:
    """The constraints that a certificate's rules stand for."""
    known: list[Constraint] = []
    for rule in rules:
        if rule.name == "t-closeness":
            constraint: Constraint = TCloseness(rule.asked)
        else:
            constraint = LDiversity(rule.asked, "entropy" if rule.name == "entropy l-diversity" else "distinct")
        if constraint not in known:
            known.append(constraint)
    return known
