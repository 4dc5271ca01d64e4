"""AnonymizingFirst (section 4-2, first approach): make the table private, then learn from it as usual.

The table is published as noisy two-way histograms, a synthetic table is drawn from them, and any learner may
be trained on that: all that follows is post-processing, so ε is for everything that is ever made from the
synthetic table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import polars as pl

from omokage.errors import InputError
from omokage.learn.classifier import Floats, Integers, PrivateClassifier
from omokage.learn.histograms import (
    HISTOGRAM_SENSITIVITY,
    SCORE_SENSITIVITY,
    Edge,
    Histograms,
    choose_forest,
    dependence,
    draw_columns,
    draw_given_label,
    draw_labels,
    pair_counts,
    pick_score,
    release_counts,
)
from omokage.learn.network import Network, initial_network, train
from omokage.learn.noise import NoiseSource
from omokage.learn.parts import ChoicePart, LaplacePart, Part
from omokage.learn.schema import Numeric, Schema
from omokage.learn.settings import check_count, check_descent, check_positive
from omokage.learn.steps import LaplaceSteps, PureSteps, Step

MARGINALS = ("tree", "label")
_SPLIT = {"choice": 0.1, "tree": 0.3, "label": 0.6}  # what matters most for prediction gets most
_ROWS_PER_EDGE = 2000.0  # rows × ε that an edge needs to be worth its noise: fewer edges, and better ones, when ε is small
_AUDITED_CELLS = 64


@dataclass(eq=False, repr=False, kw_only=True)
class AnonymizingFirst(PrivateClassifier):
    """A private synthetic table, and a network trained on it.

    Parameters
    ----------
    epsilon : float
        Pure ε of the synthetic table and of all that is made from it, replace-one neighbours.
    marginals : {"tree", "label"}
        "label": attribute × label histograms. "tree": also a tree of two-way histograms between attributes,
        chosen privately.
    bins : int
        Bins for numeric columns whose schema has no cuts.
    rows : int, optional
        Size of the synthetic table; as many as there were, unless given.
    delta, bounds, schema, classes, hidden, epochs, batch_size, learning_rate, decay, tuned, random_state,
    noise_seed
        As for ``DPSGD``.

    Attributes
    ----------
    synthetic_ : polars.DataFrame
        The table that may be given away, label included.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 3)); y = (X[:, 0] > 0.5).astype(int)
    >>> model = AnonymizingFirst(epsilon=2.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), round(model.privacy_.epsilon_naive, 3), model.synthetic_.shape
    (True, 2.0, (2000, 4))
    """

    approach: ClassVar[str] = "anonymizing-first"
    uses_opendp: ClassVar[bool] = True

    marginals: str = "tree"
    bins: int = 8
    rows: int | None = None
    epochs: int = 20
    batch_size: int = 50
    learning_rate: float = 0.05
    decay: float = 0.001
    synthetic_: pl.DataFrame = field(init=False)
    histograms_: Histograms = field(init=False)

    def _check_settings(self) -> None:
        if self.marginals not in MARGINALS:
            raise InputError(f"there are no marginals {self.marginals!r}: choose {', '.join(MARGINALS)}")
        for name in ("bins", "epochs", "batch_size"):
            check_count(name, getattr(self, name))
        if self.rows is not None:
            check_count("rows", self.rows)
        check_positive("learning_rate", self.learning_rate)
        check_descent(decay=self.decay)

    def _noise_name(self) -> str:
        return "discrete Laplace and noisy maximum, OpenDP"

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step]]:
        binned = self._binned()
        budget = self._budget(len(inputs))
        self.histograms_ = self._publish(binned.codes(frame), labels, binned.sizes, budget, source)
        rows = self.rows or len(inputs)
        if self.marginals == "label":
            codes, drawn = draw_given_label(self.histograms_, rows, rng)
        else:
            codes = draw_columns(self.histograms_, rows, rng)
            drawn = draw_labels(self.histograms_, codes, rng)
        table = binned.draw(codes, rng)
        target = pl.Series(self.schema_.target, [self.schema_.classes[k] for k in drawn])
        self.synthetic_ = table.with_columns(target)
        trained = train(
            initial_network(self._sizes(inputs.shape[1]), rng),
            self.schema_.encode(table),
            drawn,
            rng,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            decay=self.decay,
        )
        return trained, budget.steps()

    def _release(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Floats, list[Step]]:
        """The label histograms: nothing else that is released could show a label."""
        binned = self._binned()
        budget = self._budget(len(inputs))
        histograms = self._publish(binned.codes(frame), labels, binned.sizes, budget, source)
        return np.concatenate([h.ravel() for h in histograms.by_label]), budget.steps()

    def _binned(self) -> Schema:
        """The schema with bins for every numeric column."""
        columns = [
            replace(c, cuts=tuple(np.linspace(c.low, c.high, self.bins + 1)[1:-1].tolist()))
            if isinstance(c, Numeric) and not c.cuts
            else c
            for c in self.schema_.columns
        ]
        return Schema(tuple(columns), self.schema_.target, self.schema_.classes)

    def _budget(self, records: int) -> Budget:
        """How ε is shared, from public values alone."""
        columns = len(self.schema_.columns)
        if self.marginals == "label" or columns == 1:
            return Budget(columns, self.epsilon / columns)
        edges = min(columns - 1, max(1, int(records * self.epsilon / _ROWS_PER_EDGE)))
        return Budget(
            columns,
            self.epsilon * _SPLIT["label"] / columns,
            edges,
            self.epsilon * _SPLIT["tree"] / edges,
            self.epsilon * _SPLIT["choice"] / edges,
        )

    def _publish(
        self, codes: Integers, labels: Integers, sizes: tuple[int, ...], budget: Budget, source: NoiseSource
    ) -> Histograms:
        classes = len(self.schema_.classes)
        by_label = tuple(
            budget.release_label(pair_counts(codes[:, j], labels, (size, classes)), source) for j, size in enumerate(sizes)
        )
        forest = (
            choose_forest(codes, sizes, budget.edges, lambda scores: budget.pick_edge(scores, source)) if budget.edges else []
        )
        edges = []
        for parent, child in forest:
            counts = pair_counts(codes[:, parent], codes[:, child], (sizes[parent], sizes[child]))
            edges.append(Edge(parent, child, budget.release_edge(counts, source)))
        return Histograms(by_label, tuple(edges), HISTOGRAM_SENSITIVITY / budget.label)

    def _parts(self, rows: int) -> list[Part]:
        budget = self._budget(rows)
        parts: list[Part] = [_histogram_part("label histograms", budget.label_claim, budget.release_label)]
        if budget.edges:
            parts.append(_histogram_part("pair histograms", budget.edge_claim, budget.release_edge))
            parts.append(ChoicePart("choices of pairs", budget.choice_claim, SCORE_SENSITIVITY, budget.pick_edge, _moved_score))
        return parts


@dataclass(frozen=True)
class Budget:
    """ε of each column's label histogram, of each of ``edges`` pair histograms, and of each choice of a pair."""

    columns: int
    label: float
    edges: int = 0
    edge: float = 0.0
    choice: float = 0.0

    def release_label(self, counts: Integers, source: NoiseSource) -> Floats:
        return release_counts(counts, self.label, source)

    def release_edge(self, counts: Integers, source: NoiseSource) -> Floats:
        return release_counts(counts, self.edge, source)

    def pick_edge(self, scores: Floats, source: NoiseSource) -> int:
        return pick_score(scores, self.choice, source)

    @property
    def label_claim(self) -> LaplaceSteps:
        return LaplaceSteps(HISTOGRAM_SENSITIVITY, HISTOGRAM_SENSITIVITY / self.label, self.columns)

    @property
    def edge_claim(self) -> LaplaceSteps:
        return LaplaceSteps(HISTOGRAM_SENSITIVITY, HISTOGRAM_SENSITIVITY / self.edge, self.edges)

    @property
    def choice_claim(self) -> PureSteps:
        return PureSteps(self.choice, self.edges)

    def steps(self) -> list[Step]:
        """What all releases claim together."""
        return [self.label_claim, self.edge_claim, self.choice_claim] if self.edges else [self.label_claim]


def _histogram_part(name: str, claim: LaplaceSteps, release: Callable[[Integers, NoiseSource], Floats]) -> LaplacePart:
    return LaplacePart(name, claim, HISTOGRAM_SENSITIVITY, _AUDITED_CELLS, release, _moved_counts, histogram=True)


def _moved_counts() -> float:
    """The largest distance of the histograms of two neighbours, among some."""
    counts = [pair_counts(np.array([0, 1, *row]), np.array([1, 0, *row]), (3, 3)) for row in ([0], [1], [2])]
    return float(max(np.abs(a - b).sum() for a in counts for b in counts))


def _moved_score() -> float:
    """The largest distance of the scores of neighbours, among some random tables."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(50):
        first, second = rng.integers(0, 3, (2, int(rng.integers(2, 30))))
        scores = []
        for a, b in np.ndindex(3, 3):
            first[0], second[0] = a, b
            scores.append(dependence(pair_counts(first, second, (3, 3))))
        worst = max(worst, max(scores) - min(scores))
    return worst
