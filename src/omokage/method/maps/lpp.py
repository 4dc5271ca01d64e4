"""Locality preserving projection (He & Niyogi 2003): linear, keeps neighbours together.

With the graph of nearest neighbours W (symmetric, heat or binary weights), D its row sums and L = D − W, the
directions a are those of smallest λ in XᵀLX a = λ XᵀDX a, scaled to aᵀXᵀDX a = 1. Only d × d matrices are dense. The
DR paper says neither which weights nor which way back it used: here heat weights with the mean squared neighbour
distance as temperature, and the pseudo-inverse. Its noise scales (0.001 … 0.01) fit this scaling.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.neighbors import NearestNeighbors

from ...base.matrix import are
from ...base.parameters import Rule, Rules, choice, optional, real, whole
from ...errors import MapError
from .checks import Map, check_components

NEIGHBOUR_THREADS = Rule(
    "None (one) or a whole number: how many threads, −1 for all cores",
    lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool) and value != 0),
    (0, 1.5, "all", True),
)


class LPP(Map):
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

    name: ClassVar[str] = "LPP"
    parameters: ClassVar[Rules] = {
        "n_components": whole(1),
        "n_neighbors": whole(1),
        "weights": choice("heat", "binary"),
        "temperature": optional(real(0, above=True), "the mean squared distance to the neighbours"),
        "ridge": real(0),
        "n_jobs": NEIGHBOUR_THREADS,
    }

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
        x = self._first(X)
        count = check_components(self.n_components, min(x.shape), "LPP")
        if self.n_neighbors >= len(x):
            raise MapError(
                f"LPP needs more than n_neighbors = {self.n_neighbors} rows, but there {are(len(x))}: lower n_neighbors"
            )
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
        x = self._more(X)
        return ((x - self.mean_) @ self.components_).astype(x.dtype)

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        z = self._mapped(Z)
        return (z @ self.inverse_ + self.mean_).astype(z.dtype)
