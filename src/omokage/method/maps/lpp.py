"""Locality preserving projection (He & Niyogi 2003): linear, keeps neighbours together.

With the graph of nearest neighbours W (symmetric, heat or binary weights), D its row sums and L = D − W, the
directions a are those of smallest λ in XᵀLX a = λ XᵀDX a, scaled to aᵀXᵀDX a = 1. Only d × d matrices are dense. The
DR paper says neither which weights nor which way back it used: here heat weights with the mean squared neighbour
distance as temperature, and the pseudo-inverse. Its noise scales (0.001 … 0.01) fit this scaling.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import NearestNeighbors

from ...errors import MapError
from .checks import as_floats, check_components


class LPP(TransformerMixin, BaseEstimator):
    """Linear projection under which rows that were neighbours stay neighbours.

    Parameters
    ----------
    n_components : int
        Dimensions of the mapped space.
    n_neighbors : int
        Neighbours of each row in the graph.
    weights : {"heat", "binary"}
        exp(−distance² / temperature), or 1.
    temperature : float or None
        None takes the mean squared distance to the neighbours.
    ridge : float
        Share of the mean diagonal added to XᵀDX, for columns that depend on each other.
    """

    def __init__(
        self,
        n_components: int,
        *,
        n_neighbors: int = 5,
        weights: Literal["heat", "binary"] = "heat",
        temperature: float | None = None,
        ridge: float = 1e-6,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.temperature = temperature
        self.ridge = ridge
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> LPP:
        x = as_floats(X, "LPP")
        count = check_components(self.n_components, min(x.shape), "LPP")
        if not 1 <= self.n_neighbors < len(x):
            raise MapError(
                f"LPP needs n_neighbors from 1 to the number of rows less one ({len(x) - 1}), but it is {self.n_neighbors}"
            )
        self.n_features_in_ = x.shape[1]
        self.mean_ = x.mean(axis=0, dtype=np.float64)
        z = x.astype(np.float64) - self.mean_
        w = self._graph(x)
        degree = np.asarray(w.sum(axis=1)).ravel()
        scatter = z.T @ (z * degree[:, None])  # XᵀDX (d, d)
        local = scatter - z.T @ (w @ z)  # XᵀLX
        mean = np.trace(scatter) / len(scatter)
        scatter.flat[:: len(scatter) + 1] += self.ridge * mean if mean > 0 else 1.0
        _, vectors = linalg.eigh((local + local.T) / 2, scatter, subset_by_index=[0, count - 1])
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
        self.components_ = vectors * signs  # (d, m)
        self.inverse_ = np.linalg.pinv(self.components_)  # (m, d)
        return self

    def _graph(self, x: NDArray[Any]) -> sparse.csr_array:
        """Symmetric weights: i and j are joined if one is among the other's nearest."""
        if self.weights not in ("heat", "binary"):
            raise MapError(f"LPP's weights are heat or binary, not {self.weights!r}")
        search = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=self.n_jobs).fit(x)
        distance, neighbour = search.kneighbors()
        squared = distance.astype(np.float64) ** 2
        if self.weights == "heat":
            temperature = self.temperature or float(squared.mean()) or 1.0
            weight = np.exp(-squared / temperature)
        else:
            weight = np.ones_like(squared)
        n = len(x)
        edges = (weight.ravel(), (np.repeat(np.arange(n), self.n_neighbors), neighbour.ravel()))
        graph = sparse.csr_array(edges, shape=(n, n))
        return graph.maximum(graph.T).tocsr()

    def transform(self, X: Any) -> NDArray[Any]:
        x = as_floats(X, "LPP")
        return ((x - self.mean_) @ self.components_).astype(x.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = as_floats(Z, "LPP")
        return (z @ self.inverse_ + self.mean_).astype(z.dtype)
