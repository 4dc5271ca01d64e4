"""LearningFirst (section 4-2, second approach): train as usual, then make every parameter noisy.

Parameters are kept in public ranges ``[w_min, w_max]`` and ``[b_min, b_max]`` while training; afterwards each
becomes ``clamp(w + Lap((w_max − w_min)/ε))``. A range is all that is assumed about how a record moves a
parameter, so theorem 3 holds: each parameter *on its own* is ε-DP. A model shows all ``P`` of them, and its
guarantee is what ``P`` such releases compose to.

Decided where the paper is silent: parameters are clamped after every update of the training, so that the
noise meets the network that was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from omokage.errors import InputError
from omokage.learn.accounting import LaplaceSteps, Step
from omokage.learn.classifier import NOT_STATED, Floats, Integers, PrivateClassifier, check_count, check_positive
from omokage.learn.network import Network, initial_network, train, weight_mask
from omokage.learn.noise import NoiseSource, release_integers
from omokage.learn.schema import Schema

_UNITS = 2**20  # grid steps in a parameter's range


class LearningFirst(PrivateClassifier):
    """An ordinary network whose parameters are made noisy at the end.

    Parameters
    ----------
    epsilon : float
        The paper's ε, for each parameter on its own; ``privacy_`` tells the whole model's.
    delta : float
        Where the PLD bound in ``privacy_`` is read off; no noise depends on it.
    weight_range, bias_range : pair of float
        Public ranges in which parameters are kept.
    bounds, schema, classes, hidden, epochs, batch_size, learning_rate, decay, tuned, random_state, noise_seed
        As for ``DPSGD``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 3)); y = (X[:, 0] > 0.5).astype(int)
    >>> model = LearningFirst(epsilon=100.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.privacy_.epsilon_per_parameter, round(model.privacy_.epsilon_naive)
    (True, 100.0, 800)
    """

    approach = "learning-first"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        weight_range: tuple[float, float] = (-0.2, 0.2),
        bias_range: tuple[float, float] = (-0.2, 0.2),
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
        self.weight_range = weight_range
        self.bias_range = bias_range
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
        check_count("epochs", self.epochs)
        check_count("batch_size", self.batch_size)
        check_positive("learning_rate", self.learning_rate)
        for name in ("weight_range", "bias_range"):
            low, high = getattr(self, name)
            if not (np.isfinite([low, high]).all() and low < high):
                raise InputError(f"{name} must be finite with low < high, got {(low, high)}")

    def _noise_name(self) -> str:
        return "discrete Laplace, OpenDP"

    def _per_parameter(self) -> tuple[float, bool] | None:
        return self.epsilon, True

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step], float]:
        network = initial_network(self._sizes(inputs, self.hidden), rng)
        weight = weight_mask(network.sizes) > 0
        low = np.where(weight, self.weight_range[0], self.bias_range[0])
        high = np.where(weight, self.weight_range[1], self.bias_range[1])
        trained = train(
            network,
            inputs,
            labels,
            rng,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            decay=self.decay,
            low=low,
            high=high,
        )
        noisy = release_parameters(trained.theta, low, high, self.epsilon, source)
        steps: list[Step] = [LaplaceSteps(_UNITS, _UNITS / self.epsilon, noisy.size)]
        return Network(network.sizes, noisy), steps, 0.0


def release_parameters(theta: Floats, low: Floats, high: Floats, epsilon: float, source: NoiseSource) -> Floats:
    """``clamp(w + Lap((high − low)/ε))`` for every parameter, on a grid of 2²⁰ steps between its bounds."""
    step = (high - low) / _UNITS
    exact = np.clip(np.floor((theta - low) / step + 0.5), 0, _UNITS).astype(np.int64)
    noisy = release_integers(exact, _UNITS, epsilon, source)
    return low + np.clip(noisy, 0, _UNITS) * step
