"""LearningFirst (section 4-2, second approach): train as usual, then make every parameter noisy.

Parameters are kept in public ranges ``[w_min, w_max]`` and ``[b_min, b_max]`` while training; afterwards each
becomes ``clamp(w + Lap((w_max − w_min)/ε))``. A range is all that is assumed about how a record moves a
parameter, so theorem 3 holds: each parameter *on its own* is ε-DP. A model shows all ``P`` of them, and its
guarantee is what ``P`` such releases compose to.

Decided where the paper is silent: parameters are clamped after every update of the training, so that the
noise meets the network that was trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from omokage.learn.classifier import Floats, Integers, PrivateClassifier
from omokage.learn.network import Network, initial_network, parameter_count, train, weight_mask
from omokage.learn.noise import NoiseSource, release_integers
from omokage.learn.parts import LaplacePart, Part
from omokage.learn.settings import check_count, check_descent, check_positive, check_range
from omokage.learn.steps import LaplaceSteps, Step

_UNITS = 2**20  # grid steps in a parameter's range
_AUDITED = 64  # parameters in a release that is audited; OpenDP takes 10 µs for each


@dataclass(eq=False, repr=False, kw_only=True)
class LearningFirst(PrivateClassifier):
    """An ordinary network whose parameters are made noisy at the end.

    Parameters
    ----------
    epsilon : float
        The paper's ε, for each parameter on its own; ``privacy_`` tells the whole model's.
    delta : float, optional
        Where the PLD bound in ``privacy_`` is read off, as for ``DPSGD``; no noise depends on it, and 0 asks for
        the sum of all ε alone.
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

    approach: ClassVar[str] = "learning-first"
    uses_opendp: ClassVar[bool] = True

    weight_range: tuple[float, float] = (-0.2, 0.2)
    bias_range: tuple[float, float] = (-0.2, 0.2)
    epochs: int = 20
    batch_size: int = 50
    learning_rate: float = 0.05
    decay: float = 0.001

    def _check_settings(self) -> None:
        check_count("epochs", self.epochs)
        check_count("batch_size", self.batch_size)
        check_positive("learning_rate", self.learning_rate)
        check_descent(decay=self.decay)
        for name in ("weight_range", "bias_range"):
            check_range(name, getattr(self, name))

    def _noise_name(self) -> str:
        return "discrete Laplace, OpenDP"

    def _per_parameter(self) -> tuple[float, bool] | None:
        return self.epsilon, True

    def _mechanism(self, sizes: tuple[int, ...]) -> ParameterNoise:
        weight = weight_mask(sizes) > 0
        low = np.where(weight, self.weight_range[0], self.bias_range[0])
        high = np.where(weight, self.weight_range[1], self.bias_range[1])
        return ParameterNoise(low, high, self.epsilon)

    def _claim(self, parameters: int) -> LaplaceSteps:
        return LaplaceSteps(_UNITS, _UNITS / self.epsilon, parameters)

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step]]:
        network = initial_network(self._sizes(inputs.shape[1]), rng)
        mechanism = self._mechanism(network.sizes)
        trained = train(
            network,
            inputs,
            labels,
            rng,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            decay=self.decay,
            low=mechanism.low,
            high=mechanism.high,
        )
        return Network(network.sizes, mechanism.release(trained.theta, source)), [self._claim(network.theta.size)]

    def _parts(self, rows: int) -> list[Part]:
        sizes = self._sizes(len(self.schema_.features))
        mechanism = self._mechanism(sizes)
        size = parameter_count(sizes)
        extremes = [np.full(size, v) for v in (-np.inf, -1.0, 0.0, 1.0, np.inf, np.nan)]

        def moved() -> float:
            exact = [mechanism.exact(theta) for theta in extremes]
            return float(max(np.abs(a - b).max() for a in exact for b in exact))

        return [LaplacePart("parameters", self._claim(size), _UNITS, min(size, _AUDITED), mechanism.noisy, moved)]


@dataclass(frozen=True)
class ParameterNoise:
    """``clamp(w + Lap((high − low)/ε))`` for every parameter, on a grid of 2²⁰ steps between its bounds."""

    low: Floats
    high: Floats
    epsilon: float

    def exact(self, theta: Floats) -> Integers:
        """Grid steps above the lower bound, from 0 to 2²⁰ whatever ``theta`` is."""
        inside = np.clip(np.nan_to_num(theta, nan=0.0), self.low, self.high)
        return np.floor((inside - self.low) / ((self.high - self.low) / _UNITS) + 0.5).astype(np.int64)

    def noisy(self, exact: Integers, source: NoiseSource) -> Integers:
        return release_integers(exact, _UNITS, self.epsilon, source)

    def release(self, theta: Floats, source: NoiseSource) -> Floats:
        noisy = np.clip(self.noisy(self.exact(theta), source), 0, _UNITS)
        return np.asarray(self.low + noisy * ((self.high - self.low) / _UNITS))
