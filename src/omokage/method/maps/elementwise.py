"""Maps that look at each value on its own: identity, standard units, logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from .checks import as_floats


class Identity(TransformerMixin, BaseEstimator):
    """The data as they are (DIRECT in MIKU)."""

    def fit(self, X: Any, y: Any = None) -> Identity:
        """Nothing is learned."""
        self.n_features_in_ = as_floats(X, "identity").shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        return as_floats(X, "identity")

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        return as_floats(Z, "identity")


class Standardize(TransformerMixin, BaseEstimator):
    """Columns of mean 0 and standard deviation 1, so that units do not decide; constant columns stay at 0.

    Examples
    --------
    >>> import numpy as np
    >>> Standardize().fit_transform(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    def fit(self, X: Any, y: Any = None) -> Standardize:
        x = as_floats(X, "std")
        self.n_features_in_ = x.shape[1]
        self.mean_ = x.mean(axis=0, dtype=np.float64)
        deviation = x.std(axis=0, dtype=np.float64)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        x = as_floats(X, "std")
        return ((x - self.mean_) / self.scale_).astype(x.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = as_floats(Z, "std")
        return (z * self.scale_ + self.mean_).astype(z.dtype)


class Log(TransformerMixin, BaseEstimator):
    """sign(x) · log(1 + |x|): counts and amounts with long tails become comparable.

    Examples
    --------
    >>> import numpy as np
    >>> Log().fit_transform(np.array([[0.0, 1.0, -1.0]])).round(2)
    array([[ 0.  ,  0.69, -0.69]])
    """

    def fit(self, X: Any, y: Any = None) -> Log:
        """Nothing is learned."""
        self.n_features_in_ = as_floats(X, "log").shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        x = as_floats(X, "log")
        return np.sign(x) * np.log1p(np.abs(x))

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = as_floats(Z, "log")
        return np.sign(z) * np.expm1(np.abs(z))
