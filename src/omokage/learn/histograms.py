"""A table as noisy two-way histograms, and a synthetic table drawn from them.

Counts of a table with ``n`` rows move by 2 in L1 when one row is replaced: one cell loses it, another gains
it. So a histogram with noise ``Lap(2/ε)`` is ε-DP, and what is drawn from it costs nothing more.

**Choosing edges.** Two columns are joined if they are far from independent: the score is ``½ Σ |h_ab − h_a
h_b / n|``, in rows (the score R of PrivBayes, Zhang et al., 2017). Replace a row: ``h_ab`` moves by at most 2
in L1; with ``h_a' = h_a + u``, ``h_b' = h_b + v`` where ``|u|₁, |v|₁ ≤ 2``, the product moves by ``u⊗h_b +
h_a'⊗v``, at most ``2n + 2n``. So the sum moves by at most ``2 + 4`` and the score by at most 3, the bound
that is used.

**Labels.** Columns are drawn along the edges without looking at the label. The label then follows the
distribution of maximum entropy whose attribute × label counts are the noisy ones, which is a softmax
regression fitted to moments instead of rows. Unlike drawing each column given the label, this does not count
what two related columns say about the label twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from omokage.learn.noise import NoiseSource, choose, release_integers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HISTOGRAM_SENSITIVITY = 2
SCORE_SENSITIVITY = 3.0
SHRINK = 1.5


@dataclass(frozen=True)
class Edge:
    """Column ``child`` is drawn given column ``parent``, by the counts ``(parent values, child values)``."""

    parent: int
    child: int
    counts: Floats


@dataclass(frozen=True)
class Histograms:
    """What was released: a label histogram for each column ``(values, classes)``, the edges in drawing order, and the
    scale of the noise in the label histograms."""

    by_label: tuple[Floats, ...]
    edges: tuple[Edge, ...]
    label_noise: float


def pair_counts(first: Integers, second: Integers, shape: tuple[int, int]) -> Integers:
    """Cross-tabulation of two columns of codes.

    >>> pair_counts(np.array([0, 0, 1]), np.array([1, 1, 0]), (2, 2))
    array([[0, 2],
           [1, 0]])
    """
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def dependence(counts: Integers) -> float:
    """``½ Σ |h_ab − h_a h_b / n|``: how many rows would have to move to make two columns independent, at most.

    >>> dependence(np.array([[2, 0], [0, 2]])), dependence(np.array([[1, 1], [1, 1]]))
    (2.0, 0.0)
    """
    n = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    return float(0.5 * np.abs(counts - expected).sum())


def to_simplex(noisy: NDArray[np.generic], total: float) -> Floats:
    """The nearest counts that are not negative and add up to ``total``.

    >>> to_simplex(np.array([5, -3, 1]), 4.0)
    array([4., 0., 0.])
    """
    values = np.asarray(noisy, np.float64)
    ordered = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(values - shift, 0.0))


def choose_forest(codes: Integers, sizes: tuple[int, ...], count: int, pick: Callable[[Floats], int]) -> list[tuple[int, int]]:
    """``count`` edges between columns, no cycle among them, each chosen by ``pick`` from the scores of those that are left.

    Returned as (parent, child) in an order in which the columns can be drawn.
    """
    pairs = [(a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))] if count else []
    scores = {(a, b): dependence(pair_counts(codes[:, a], codes[:, b], (sizes[a], sizes[b]))) for a, b in pairs}
    component = list(range(len(sizes)))
    edges: list[tuple[int, int]] = []
    for _ in range(count):
        pairs = [(a, b) for a, b in pairs if component[a] != component[b]]
        values = np.array([scores[pair] for pair in pairs])
        a, b = pairs[pick(values)]
        edges.append((a, b))
        component = [component[a] if c == component[b] else c for c in component]
    return _rooted(edges, len(sizes))


def _rooted(edges: list[tuple[int, int]], columns: int) -> list[tuple[int, int]]:
    """The same edges, each from the column nearer to its tree's first column, parents before children."""
    near: list[list[int]] = [[] for _ in range(columns)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    seen: set[int] = set()
    out: list[tuple[int, int]] = []
    for root in range(columns):
        waiting = [] if root in seen else [root]
        seen.add(root)
        while waiting:
            parent = waiting.pop(0)
            for child in near[parent]:
                if child not in seen:
                    seen.add(child)
                    out.append((parent, child))
                    waiting.append(child)
    return out


def pick_score(scores: Floats, epsilon: float, source: NoiseSource) -> int:
    """Index of a large score, by the exponential mechanism."""
    return choose(scores, SCORE_SENSITIVITY, epsilon, source)


def release_counts(counts: Integers, epsilon: float, source: NoiseSource) -> Floats:
    """A noisy histogram, made possible again: not negative, with the (public) number of rows."""
    noisy = release_integers(counts, HISTOGRAM_SENSITIVITY, epsilon, source)
    return to_simplex(noisy, float(counts.sum()))


def draw_columns(histograms: Histograms, rows: int, rng: np.random.Generator) -> Integers:
    """Codes ``(rows, columns)`` from the tree; columns without a parent come from their own counts."""
    codes = np.empty((rows, len(histograms.by_label)), np.int64)
    parents = {edge.child: edge for edge in histograms.edges}
    for column, counts in enumerate(histograms.by_label):
        if column not in parents:
            codes[:, column] = rng.choice(len(counts), rows, p=_normalized(counts.sum(axis=1)))
    for edge in histograms.edges:
        own = _normalized(histograms.by_label[edge.child].sum(axis=1))
        cumulative = np.cumsum([_normalized(row) if row.sum() > 0 else own for row in edge.counts], axis=1)
        uniform = rng.random(rows)
        picked = (uniform[:, None] > cumulative[codes[:, edge.parent]]).sum(axis=1)
        codes[:, edge.child] = np.minimum(picked, edge.counts.shape[1] - 1)
    return codes


def draw_given_label(histograms: Histograms, rows: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Labels first, then every column given the label alone (attribute × label histograms and nothing else)."""
    classes = np.mean([h.sum(axis=0) for h in histograms.by_label], axis=0)
    labels = rng.choice(len(classes), rows, p=_normalized(classes))
    codes = np.empty((rows, len(histograms.by_label)), np.int64)
    for column, counts in enumerate(histograms.by_label):
        own = _normalized(counts.sum(axis=1))
        for label in range(len(classes)):
            of_label = counts[:, label]
            chances = _normalized(of_label) if of_label.sum() > 0 else own
            codes[labels == label, column] = rng.choice(len(counts), (labels == label).sum(), p=chances)
    return codes, labels


def draw_labels(histograms: Histograms, codes: Integers, rng: np.random.Generator) -> Integers:
    """Labels of maximum entropy given the attribute × label counts."""
    classes = histograms.by_label[0].shape[1]
    offsets = np.cumsum([0, *(len(h) for h in histograms.by_label)])
    active = codes + offsets[:-1]  # (rows, columns): the one-hot positions
    shares = np.vstack([_class_shares(h, histograms.label_noise) for h in histograms.by_label])  # (values, classes)
    present = np.bincount(active.ravel(), minlength=offsets[-1])
    wanted = shares * present[:, None]

    def objective(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(offsets[-1], classes)
        logits = weights[active].sum(axis=1)  # (rows, classes)
        normal = logsumexp(logits, axis=1)
        chances = np.exp(logits - normal[:, None])
        expected = np.stack([_scatter(active, chances[:, k], offsets[-1]) for k in range(classes)], axis=1)
        loss = (normal.sum() - (weights * wanted).sum()) / len(codes) + 1e-4 * (weights**2).sum()
        return float(loss), ((expected - wanted) / len(codes) + 2e-4 * weights).ravel()

    found = minimize(objective, np.zeros(offsets[-1] * classes), jac=True, method="L-BFGS-B", options={"maxiter": 60})
    chances = softmax(found.x.reshape(-1, classes)[active].sum(axis=1), axis=1)
    return np.asarray((rng.random(len(codes))[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1))


def _scatter(active: Integers, values: Floats, size: int) -> Floats:
    repeated = np.broadcast_to(values[:, None], active.shape)
    return np.bincount(active.ravel(), weights=repeated.ravel(), minlength=size).astype(np.float64)


def _class_shares(counts: Floats, noise: float) -> Floats:
    """P(class | value), drawn towards the overall shares by as many rows as the noise may have made up."""
    overall = _normalized(counts.sum(axis=0))
    prior = 1.0 + SHRINK * noise
    return np.asarray((counts + prior * overall) / (counts.sum(axis=1, keepdims=True) + prior))


def _normalized(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum())
