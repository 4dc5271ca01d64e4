"""Maps that look at each value on its own: identity, standard units, logarithm."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .checks import Map


class Identity(Map):
    """The data as they are (DIRECT in MIKU)."""

    name: ClassVar[str] = "identity"

    def fit(self, X: Any, y: Any = None) -> Identity:
        """Nothing is learned."""
        self._first(X)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        return self._more(X)

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        return self._mapped(Z)


class Standardize(Map):
    """Columns of mean 0 and standard deviation 1, so that units do not decide; constant columns stay at 0.

    Examples
    --------
    >>> import numpy as np
    >>> Standardize().fit_transform(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    name: ClassVar[str] = "std"

    def fit(self, X: Any, y: Any = None) -> Standardize:
        x = self._first(X)
        self.mean_ = x.mean(axis=0, dtype=np.float64)
        deviation = x.std(axis=0, dtype=np.float64)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        x = self._more(X)
        return ((x - self.mean_) / self.scale_).astype(x.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = self._mapped(Z)
        return (z * self.scale_ + self.mean_).astype(z.dtype)


class Log(Map):
    """sign(x) · log(1 + |x|): counts and amounts with long tails become comparable.

    Examples
    --------
    >>> import numpy as np
    >>> Log().fit_transform(np.array([[0.0, 1.0, -1.0]])).round(2)
    array([[ 0.  ,  0.69, -0.69]])
    """

    name: ClassVar[str] = "log"

    def fit(self, X: Any, y: Any = None) -> Log:
        """Nothing is learned."""
        self._first(X)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        x = self._more(X)
        return np.sign(x) * np.log1p(np.abs(x))

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = self._mapped(Z)
        return np.sign(z) * np.expm1(np.abs(z))
