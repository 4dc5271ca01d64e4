"""AnonymizingFirst (section 4-2, first approach): make the table private, then learn from it as usual.

The table is published as noisy two-way histograms, a synthetic table is drawn from them, and any learner may
be trained on that: all that follows is post-processing, so ε is for everything that is ever made from the
synthetic table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from omokage.errors import InputError
from omokage.learn.accounting import LaplaceSteps, PureSteps, Step
from omokage.learn.classifier import NOT_STATED, Floats, Integers, PrivateClassifier, check_count, check_positive
from omokage.learn.histograms import (
    HISTOGRAM_SENSITIVITY,
    Edge,
    Histograms,
    choose_forest,
    draw_columns,
    draw_given_label,
    draw_labels,
    pair_counts,
    release_counts,
)
from omokage.learn.network import Network, initial_network, train
from omokage.learn.noise import NoiseSource
from omokage.learn.schema import Numeric, Schema

MARGINALS = ("tree", "label")
_SPLIT = {"choice": 0.1, "tree": 0.3, "label": 0.6}  # what matters most for prediction gets most
_ROWS_PER_EDGE = 2000.0  # rows × ε that an edge needs to be worth its noise: fewer edges, and better ones, when ε is small


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

    approach = "anonymizing-first"
    synthetic_: pl.DataFrame
    histograms_: Histograms

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        marginals: str = "tree",
        bins: int = 8,
        rows: int | None = None,
        bounds: Any = (0.0, 1.0),
        schema: Schema | None = None,
        classes: Any = None,
        hidden: Sequence[int] = (),
        epochs: int = 20,
        batch_size: int = 50,
        learning_rate: float = 0.05,
        decay: float = 0.001,
        tuned: str = NOT_STATED,
        random_state: int | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.marginals = marginals
        self.bins = bins
        self.rows = rows
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.tuned = tuned
        self.random_state = random_state
        self.noise_seed = noise_seed

    def _check_settings(self) -> None:
        if self.marginals not in MARGINALS:
            raise InputError(f"marginals must be one of {MARGINALS}, got {self.marginals!r}")
        for name in ("bins", "epochs", "batch_size"):
            check_count(name, getattr(self, name))
        if self.rows is not None:
            check_count("rows", self.rows)
        check_positive("learning_rate", self.learning_rate)

    def _noise_name(self) -> str:
        return "discrete Laplace and noisy maximum, OpenDP"

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step], float]:
        binned = self._binned()
        self.histograms_, steps = self._publish(binned.codes(frame), labels, binned.sizes, source)
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
            initial_network(self._sizes(inputs, self.hidden), rng),
            self.schema_.encode(table),
            drawn,
            rng,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            decay=self.decay,
        )
        return trained, steps, 0.0

    def _release(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Floats, list[Step]]:
        """The label histograms: nothing else that is released could show a label."""
        binned = self._binned()
        histograms, steps = self._publish(binned.codes(frame), labels, binned.sizes, source)
        return np.concatenate([h.ravel() for h in histograms.by_label]), steps

    def _binned(self) -> Schema:
        """The schema with bins for every numeric column."""
        columns = [
            replace(c, cuts=tuple(np.linspace(c.low, c.high, self.bins + 1)[1:-1].tolist()))
            if isinstance(c, Numeric) and not c.cuts
            else c
            for c in self.schema_.columns
        ]
        return Schema(tuple(columns), self.schema_.target, self.schema_.classes)

    def _publish(
        self, codes: Integers, labels: Integers, sizes: tuple[int, ...], source: NoiseSource
    ) -> tuple[Histograms, list[Step]]:
        columns, classes = len(sizes), len(self.schema_.classes)
        tree = self.marginals == "tree" and columns > 1
        each = self.epsilon * (_SPLIT["label"] if tree else 1.0) / columns
        by_label = tuple(
            release_counts(pair_counts(codes[:, j], labels, (sizes[j], classes)), each, source) for j in range(columns)
        )
        steps: list[Step] = [LaplaceSteps(HISTOGRAM_SENSITIVITY, HISTOGRAM_SENSITIVITY / each, columns)]
        if not tree:
            return Histograms(by_label, (), HISTOGRAM_SENSITIVITY / each), steps
        count = min(columns - 1, max(1, int(len(codes) * self.epsilon / _ROWS_PER_EDGE)))
        edge_epsilon = self.epsilon * _SPLIT["tree"] / count
        choice_epsilon = self.epsilon * _SPLIT["choice"]
        edges = []
        for parent, child in choose_forest(codes, sizes, count, choice_epsilon, source):
            counts = pair_counts(codes[:, parent], codes[:, child], (sizes[parent], sizes[child]))
            edges.append(Edge(parent, child, release_counts(counts, edge_epsilon, source)))
        steps.append(LaplaceSteps(HISTOGRAM_SENSITIVITY, HISTOGRAM_SENSITIVITY / edge_epsilon, count))
        steps.append(PureSteps(choice_epsilon / count, count))
        return Histograms(by_label, tuple(edges), HISTOGRAM_SENSITIVITY / each), steps
