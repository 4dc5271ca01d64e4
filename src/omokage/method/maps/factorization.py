"""PCA and NMF, by scikit-learn, with this package's errors."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning

from ...base.parameters import SEED, Rules, real, whole
from ...errors import MapError
from .checks import Map, check_components


class PCA(Map):
    """Principal components: the directions of largest variance; back by the transposed matrix.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> pca = PCA(1).fit(x)
    >>> pca.inverse_transform(pca.transform(x)).round(6)
    array([[0., 0.],
           [1., 1.],
           [2., 2.]])
    """

    name: ClassVar[str] = "PCA"
    parameters: ClassVar[Rules] = {"n_components": whole(1), "random_state": SEED}

    def __init__(self, n_components: int, *, random_state: int | None = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PCA:
        x = self._first(X)
        count = check_components(self.n_components, min(x.shape), "PCA")
        with np.errstate(invalid="ignore"):  # of rows that are all alike, shares of variance are 0 / 0
            self.pca_ = decomposition.PCA(count, random_state=self.random_state).fit(x)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        z: NDArray[Any] = self.pca_.transform(self._more(X))
        return z

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        x: NDArray[Any] = self.pca_.inverse_transform(self._mapped(Z))
        return x


class NMF(Map):
    """Non-negative matrix factorization X ≈ W H, W mapped, H the way back; for data without negative values.

    Examples
    --------
    >>> import numpy as np
    >>> NMF(1).fit(np.array([[1.0, -2.0]]))
    Traceback (most recent call last):
        ...
    omokage.errors.MapError: Negative values in data passed to NMF: 1 of 2 columns hold negative values: use pca, or shift
    """

    name: ClassVar[str] = "NMF"
    parameters: ClassVar[Rules] = {"n_components": whole(1), "max_iter": whole(1), "tol": real(0), "random_state": SEED}

    def __init__(self, n_components: int, *, max_iter: int = 200, tol: float = 1e-4, random_state: int | None = 0) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> NMF:
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        x = self._non_negative(self._first(X))
        count = check_components(self.n_components, min(x.shape), "NMF")
        self.nmf_ = decomposition.NMF(count, init="nndsvda", max_iter=self.max_iter, tol=self.tol, random_state=self.random_state)
        with warnings.catch_warnings():  # the factors are usable before they have settled; n_iter_ tells
            warnings.simplefilter("ignore", ConvergenceWarning)
            z: NDArray[Any] = self.nmf_.fit_transform(x)
        self.n_iter_ = int(self.nmf_.n_iter_)
        return z

    def transform(self, X: Any) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            z: NDArray[Any] = self.nmf_.transform(self._non_negative(self._more(X)))
        return z

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        """Z H; coordinates that noise has made negative are taken as they are."""
        x: NDArray[Any] = self._mapped(Z) @ self.nmf_.components_
        return x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _non_negative(self, x: NDArray[Any]) -> NDArray[Any]:
        bad = int((x.min(axis=0) < 0).sum()) if len(x) else 0
        if bad:
            raise MapError(
                f"Negative values in data passed to NMF: {bad} of {x.shape[1]} columns hold negative values: use pca, or shift"
            )
        return x
