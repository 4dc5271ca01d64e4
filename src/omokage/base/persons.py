"""Persons: k counts them, not rows, where a column says whose row it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .matrix import Labels


def person_codes(persons: Any) -> Labels | None:
    """Persons as numbers 0, 1, …; a row of nobody is refused."""
    if persons is None:
        return None
    try:
        people = np.asarray(persons)
        nobody = sum(map(_nobody, persons))
    except (TypeError, ValueError):
        people, nobody = np.zeros(()), 0
    if people.ndim != 1:
        raise InputError("person must be a list or an array that names one person for each row")
    if nobody:
        raise InputError(f"person says whose row it is, but {nobody} rows name nobody: name a person for each row")
    try:
        codes: Labels = np.unique(people, return_inverse=True)[1].ravel().astype(np.int64)
    except TypeError:
        raise InputError("person must name persons by numbers or by text, not by both") from None
    return codes


def _nobody(person: Any) -> bool:
    return person is None or (not isinstance(person, str) and str(person) in ("nan", "NaT", "<NA>"))


def person_weights(persons: Labels | None) -> NDArray[np.float64] | None:
    """A person's rows count as one together."""
    return None if persons is None else 1.0 / np.bincount(persons)[persons]


def persons_in(cells: Labels, persons: Labels | None, size: int) -> Labels:
    """Different persons in each of ``size`` cells, from the cell of each row.

    Examples
    --------
    >>> persons_in(np.array([0, 0, 1]), np.array([7, 7, 7]), 3).tolist()
    [1, 1, 0]
    """
    if persons is not None:
        people = int(persons.max(initial=0)) + 1
        cells = np.unique(cells * people + persons) // people
    return np.bincount(cells, minlength=size)


@dataclass(frozen=True)
class Holders:
    """Who has which value: pairs of a value's code and a person, each pair once."""

    codes: Labels  # (p,)
    persons: Labels | None  # (p,); None where each row is another person's

    @classmethod
    def of(cls, codes: Labels, persons: Labels | None) -> Holders:
        """From the code of each row, −1 where it has no value, and whose row it is."""
        known = codes >= 0
        return cls(codes[known], None if persons is None else persons[known])

    def count(self, cell: Labels) -> Labels:
        """Persons in each cell, where ``cell[c]`` is the cell of code c."""
        return persons_in(cell[self.codes], self.persons, int(cell.max(initial=-1)) + 1)

    def ends(self, run: list[int], k: int) -> list[int | None]:
        """For each place of a run of codes the first place at which k persons are reached; None where they are not."""
        place = np.full(int(self.codes.max(initial=0)) + 1, -1, dtype=np.int64)
        place[run] = np.arange(len(run))
        at, who = place[self.codes], self.persons
        if who is None:
            total = np.concatenate([[0], np.cumsum(np.bincount(at[at >= 0], minlength=len(run)))])
            found = np.searchsorted(total, total[:-1] + k) - 1
            return [int(end) if end < len(run) else None for end in found]
        people: list[list[int]] = [[] for _ in run]
        for j, person in zip(at[at >= 0].tolist(), who[at >= 0].tolist(), strict=True):
            people[j].append(person)
        return [_until(people, start, k) for start in range(len(run))]

    def rare(self, values: int, k: int) -> NDArray[np.bool_]:
        """Whether fewer than k persons have a value."""
        return self.count(np.arange(values)) < k


def _until(people: list[list[int]], start: int, k: int) -> int | None:
    seen: set[int] = set()
    for end in range(start, len(people)):
        seen.update(people[end])
        if len(seen) >= k:
            return end
    return None
