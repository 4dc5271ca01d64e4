"""What all maps share: how they look at their input, and what scikit-learn asks of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ...base.matrix import as_rows
from ...base.parameters import Rules, check_parameters
from ...errors import MapError


class Map(TransformerMixin, BaseEstimator):
    """A base of the built-in maps; your own needs only ``fit``, ``transform`` and, for a way back, ``inverse_transform``."""

    name: ClassVar[str]  # what messages call it
    parameters: ClassVar[Rules] = {}
    n_features_in_: int

    def _first(self, X: Any) -> NDArray[Any]:
        """The rows to fit, after a look at the parameters."""
        check_parameters(self, MapError)
        x = as_floats(X, self.name)
        self.n_features_in_ = x.shape[1]
        return x

    def _more(self, X: Any) -> NDArray[Any]:
        """Rows to transform: as many columns as were fitted."""
        check_is_fitted(self)
        x = as_floats(X, self.name)
        if x.shape[1] != self.n_features_in_:
            raise MapError(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input: "
                "give the columns that were fitted"
            )
        return x

    def _mapped(self, Z: Any) -> NDArray[Any]:
        """Rows of the mapped space, to be brought back."""
        check_is_fitted(self)
        return as_floats(Z, self.name)


def as_floats(data: Any, who: str) -> NDArray[Any]:
    """An (n, d) array of finite float32 or float64."""
    x = as_rows(data, who, MapError)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if not np.isfinite(x).all():
        rows = int((~np.isfinite(x)).any(axis=1).sum())
        raise MapError(f"{who} cannot use NaN or infinity, found in {rows} rows: fill them in or leave those rows out")
    return x


def check_components(count: int, most: int, who: str) -> int:
    """The number of components, if these data allow so many."""
    if count > most:
        raise MapError(f"{who} can have 1 to {most} components with these data, but {count} were asked for")
    return int(count)
