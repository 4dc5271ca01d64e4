"""Rules that a release may promise beyond k, on the sensitive values within a group: l-diversity and t-closeness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels, members_of
from ..errors import InputError


@dataclass(frozen=True)
class Sensitive:
    """A sensitive column as codes 0 … m − 1, ascending where the values have an order."""

    name: str
    codes: NDArray[np.int64]
    ordered: bool

    @property
    def values(self) -> int:
        return int(self.codes.max()) + 1 if len(self.codes) else 0


class Constraint(Protocol):
    """A rule on the values of one sensitive column within a group."""

    @property
    def name(self) -> str: ...
    @property
    def asked(self) -> float: ...
    def measure(self, inside: NDArray[np.int64], overall: NDArray[np.float64], ordered: bool) -> float: ...
    def holds(self, found: float) -> bool: ...
    def worst(self, found: Sequence[float]) -> float: ...


@dataclass(frozen=True)
class LDiversity:
    """At least l different sensitive values in a group; with ``entropy``, as if l equally frequent ones.

    Examples
    --------
    >>> import numpy as np
    >>> LDiversity(2).measure(np.array([0, 0, 0, 1]), np.ones(2) / 2, False)
    2.0
    >>> round(LDiversity(2, "entropy").measure(np.array([0, 0, 0, 1]), np.ones(2) / 2, False), 3)
    1.755
    """

    l: float  # noqa: E741 - the literature's letter
    kind: Literal["distinct", "entropy"] = "distinct"

    def __post_init__(self) -> None:
        if self.kind not in ("distinct", "entropy"):
            raise InputError(f"l-diversity is distinct or entropy, not {self.kind!r}")
        if not self.l > 1:
            raise InputError(f"l must be above 1, but it is {self.l}: one value in a group gives it away")

    @property
    def name(self) -> str:
        return f"{self.kind} l-diversity"

    @property
    def asked(self) -> float:
        return self.l

    def measure(self, inside: NDArray[np.int64], overall: NDArray[np.float64], ordered: bool) -> float:
        """l of a group whose sensitive codes are ``inside``."""
        count = np.unique(inside, return_counts=True)[1]
        if self.kind == "distinct":
            return float(len(count))
        share = count / count.sum()
        return float(np.exp(-(share * np.log(share)).sum()))

    def holds(self, found: float) -> bool:
        return found >= self.l * (1 - 1e-12)

    def worst(self, found: Sequence[float]) -> float:
        return min(found)


@dataclass(frozen=True)
class TCloseness:
    """The distribution in a group is within t (earth mover's distance) of that in the whole table.

    Examples
    --------
    >>> import numpy as np
    >>> TCloseness(0.2).measure(np.array([0, 0, 1, 1]), np.array([0.25, 0.25, 0.5]), False)
    0.5
    >>> TCloseness(0.2).measure(np.array([0, 0, 1, 1]), np.array([0.25, 0.25, 0.5]), True)
    0.375
    """

    t: float

    def __post_init__(self) -> None:
        if not 0 <= self.t < 1:
            raise InputError(f"t must be at least 0 and below 1, but it is {self.t}")

    @property
    def name(self) -> str:
        return "t-closeness"

    @property
    def asked(self) -> float:
        return self.t

    def measure(self, inside: NDArray[np.int64], overall: NDArray[np.float64], ordered: bool) -> float:
        """Distance of a group whose sensitive codes are ``inside`` from the ``overall`` shares."""
        gap = np.bincount(inside, minlength=len(overall)) / len(inside) - overall
        if not ordered:
            return float(np.abs(gap).sum() / 2)
        return float(np.abs(np.cumsum(gap))[:-1].sum() / max(len(overall) - 1, 1))

    def holds(self, found: float) -> bool:
        return found <= self.t + 1e-12

    def worst(self, found: Sequence[float]) -> float:
        return max(found)


def found(constraint: Constraint, column: Sensitive, labels: Labels) -> float:
    """The weakest group's value of a constraint."""
    overall = shares_of(column)
    return constraint.worst([constraint.measure(column.codes[rows], overall, column.ordered) for rows in members_of(labels)])


def shares_of(column: Sensitive) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.bincount(column.codes, minlength=column.values) / max(len(column.codes), 1)
    return shares
