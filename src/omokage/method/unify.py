"""What a group becomes in a space of numbers: ``unify(Z, labels) -> (groups, d)``. ``omokage.method.UNIFIERS`` lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.matrix import Labels, members_of
from ..base.persons import Holders
from ..errors import InputError

Weights = NDArray[np.float64] | None


@dataclass(frozen=True)
class Mean:
    """The mean of each group.

    Examples
    --------
    >>> import numpy as np
    >>> Mean().unify(np.array([[22.0], [26.0], [31.0]]), np.array([0, 0, 1]))
    array([[24.],
           [31.]])
    """

    def unify(self, z: NDArray[Any], labels: Labels, weights: Weights = None) -> NDArray[Any]:
        """Group means (groups, d); ``weights`` lets a person with many rows count once."""
        n = len(labels)
        w = np.ones(n) if weights is None else weights
        total = sparse.csr_array((w, (labels, np.arange(n))), shape=(int(labels.max()) + 1, n))
        means: NDArray[Any] = (total @ z.astype(np.float64)) / np.bincount(labels, w)[:, None]
        return means.astype(z.dtype)

    def mean_of(self, vectors: Iterable[NDArray[Any]], weights: NDArray[np.float64]) -> NDArray[Any]:
        """The mean of one group whose vectors come one after the other, where a group is too large to hold.

        Examples
        --------
        >>> Mean().mean_of((np.array([x]) for x in (22.0, 26.0)), np.array([1.0, 1.0]))
        array([24.])
        """
        total: NDArray[Any] | None = None
        for vector, share in zip(vectors, weights / weights.sum(), strict=True):
            part = vector * vector.dtype.type(share)
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            raise InputError("a group has at least one member")
        return total


@dataclass(frozen=True)
class Median:
    """The median of each group, column by column; less moved by one far member than the mean.

    The median of three people is the value of one of them. With ``hide`` a value that fewer than ``hide`` persons have is
    replaced by the mean of the values around it, at least three.

    Examples
    --------
    >>> import numpy as np
    >>> z, labels = np.array([[1.0], [4.0], [10.0]]), np.array([0, 0, 0])
    >>> Median().unify(z, labels), Median(hide=2).unify(z, labels)
    (array([[4.]]), array([[5.]]))
    """

    hide: int | None = None
    persons: Labels | None = None

    def hiding(self, k: int, persons: Labels | None) -> Median:
        """The same, without values that fewer than k persons have."""
        return replace(self, hide=k, persons=persons)

    def unify(self, z: NDArray[Any], labels: Labels, weights: Weights = None) -> NDArray[Any]:
        """Group medians (groups, d); every row counts once."""
        if self.hide is None:
            return np.stack([np.median(z[rows], axis=0) for rows in members_of(labels)]).astype(z.dtype)
        rare = np.column_stack([rare_cells(column, self.persons, self.hide) for column in z.T])
        persons = np.arange(len(z)) if self.persons is None else self.persons
        out = [median_of_many(z[rows], rare[rows], persons[rows]) for rows in members_of(labels)]
        return np.stack(out).astype(z.dtype)


def rare_cells(values: NDArray[Any], persons: Labels | None, k: int) -> NDArray[np.bool_]:
    """Whether fewer than k persons have the value of each row."""
    codes = np.unique(values, return_inverse=True)[1].ravel().astype(np.int64)
    return Holders.of(codes, persons).rare(int(codes.max()) + 1, k)[codes]


def median_of_many(z: NDArray[Any], rare: NDArray[np.bool_], persons: Labels) -> NDArray[np.float64]:
    """The median of each column (d,), widened to the mean of more of the middle where it is one rare value or one person's."""
    order = np.argsort(z, axis=0, kind="stable")
    values = np.take_along_axis(z, order, axis=0).astype(np.float64)
    whose, seldom = persons[order], np.take_along_axis(rare, order, axis=0)
    low, high = (len(z) - 1) // 2, len(z) // 2
    out: NDArray[np.float64] = values[low : high + 1].mean(axis=0)
    telling = np.ones(z.shape[1], dtype=np.bool_)
    while True:
        one_value = (values[low] == values[high]) & seldom[low]
        one_person = (values[low] != values[high]) & (whose[low : high + 1] == whose[low]).all(axis=0)
        telling &= one_value | one_person
        if low == 0 or not telling.any():
            return out
        low, high = low - 1, high + 1
        out[telling] = values[low : high + 1, telling].mean(axis=0)


@dataclass(frozen=True)
class Spread:
    """The mean of each group, moved away from the overall mean so that every column has its spread again.

    Averaging shrinks. This is one linear function for all groups, set by each column's standard deviation over all rows
    before and after averaging, so the members of a group still come out the same. ``most`` limits how far it stretches.

    Examples
    --------
    >>> import numpy as np
    >>> z, labels = np.array([[0.0], [2.0], [4.0], [6.0]]), np.array([0, 0, 1, 1])
    >>> Spread().unify(z, labels)[labels].std() == z.std()
    np.True_
    """

    most: float = 3.0

    def unify(self, z: NDArray[Any], labels: Labels, weights: Weights = None) -> NDArray[Any]:
        """Group means (groups, d), stretched from the overall mean."""
        means = Mean().unify(z.astype(np.float64), labels, weights)
        share = np.bincount(labels, weights) / np.bincount(labels, weights).sum()
        middle = share @ means
        after = np.sqrt(share @ (means - middle) ** 2)
        before = z.std(axis=0, dtype=np.float64)
        stretch = np.minimum(np.divide(before, after, out=np.ones_like(after), where=after > 1e-12 * before), self.most)
        spread: NDArray[Any] = middle + (means - middle) * np.maximum(stretch, 1.0)
        return spread.astype(z.dtype)
