"""AnonymizedLearning (section 4-2, third approach): noise in every update.

The paper adds Laplace noise of scale ``(Δmax − Δmin) · E/ε`` to each coordinate of each batch's gradient; a
record is in one batch an epoch, so ``E`` epochs make ``ε`` *for that coordinate's releases*. Its theorem 4
concludes that each parameter of the model is ε-DP. That does not follow: the next gradient reads all noisy
parameters, so what one coordinate shows at the end carries what all the others leaked. What holds is the
joint guarantee, and it is what ``privacy_`` states.

Three ways to bound a record's part, each record before the sum:

* ``sensitivity="l1"`` (default): the whole gradient to ``clip`` in L1. Noise of scale ``2 clip · E/ε`` then
  makes the *whole model* ε-DP.
* ``sensitivity="element"``: each coordinate to ±``clip``. ε is the paper's, per parameter.
* ``sensitivity="interval"``: the paper's interval propagation, corrected (``network.gradient_intervals``),
  within its public thresholds ±``clip``. ε is the paper's.

Decided where the paper is silent or wrong: records are clipped one by one and not their sum; the noisy sum is
clamped to what a whole batch can reach (post-processing); ``batch_size=None`` makes one batch of all records,
which costs no more privacy and carries √batches times less noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from omokage.errors import InputError
from omokage.learn import network_kernels as kernels
from omokage.learn.accounting import LaplaceSteps, Step
from omokage.learn.classifier import NOT_STATED, Floats, Integers, PrivateClassifier, check_count, check_positive
from omokage.learn.descent import GRID, descend, fixed_batches, norm_grid, steady_epochs, steady_rate, to_grid
from omokage.learn.network import Network, gradient_intervals, initial_network
from omokage.learn.noise import LAPLACE_DISTANCE, NoiseSource
from omokage.learn.schema import Schema

SENSITIVITIES = ("l1", "element", "interval")
_LARGEST_RATE = 2.0
_CLIPS = {"l1": 5.0, "element": 1.0, "interval": 1.0}  # an error signal is at most 1, and so is an input

Release = Callable[[Network, Integers], Floats]


class AnonymizedLearning(PrivateClassifier):
    """A network trained with Laplace noise in every step.

    Parameters
    ----------
    epsilon : float
        With ``sensitivity="l1"`` the whole model's pure ε; otherwise the paper's ε for each parameter, and
        ``privacy_`` tells the whole model's.
    delta : float
        Where the PLD bound in ``privacy_`` is read off; no noise depends on it.
    sensitivity : {"l1", "element", "interval"}
        How one record's part in a gradient is bounded.
    clip : float, optional
        The bound, 5 for "l1" and 1 for the others unless given.
    epochs, learning_rate : optional
        Unless given, as many and as large as the noise allows, from the number of rows and ε alone.
    bounds, schema, classes, hidden, epochs, batch_size, learning_rate, momentum, decay, average, tuned,
    random_state, noise_seed
        As for ``DPSGD``; batches are a fixed partition, not a sample.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 3)); y = (X[:, 0] > 0.5).astype(int)
    >>> model = AnonymizedLearning(epsilon=2.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), round(model.privacy_.epsilon_naive, 3)
    (True, 2.0)
    """

    approach = "anonymized-learning"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        sensitivity: str = "l1",
        clip: float | None = None,
        bounds: Any = (0.0, 1.0),
        schema: Schema | None = None,
        classes: Any = None,
        hidden: Sequence[int] = (),
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        decay: float = 0.0,
        average: bool = True,
        tuned: str = NOT_STATED,
        random_state: int | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sensitivity = sensitivity
        self.clip = clip
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.decay = decay
        self.average = average
        self.tuned = tuned
        self.random_state = random_state
        self.noise_seed = noise_seed

    def _check_settings(self) -> None:
        if self.sensitivity not in SENSITIVITIES:
            raise InputError(f"sensitivity must be one of {SENSITIVITIES}, got {self.sensitivity!r}")
        if self.epochs is not None:
            check_count("epochs", self.epochs)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if self.learning_rate is not None:
            check_positive("learning_rate", self.learning_rate)
        if self.clip is not None:
            check_positive("clip", self.clip)
        if not 0.0 <= self.momentum < 1.0:
            raise InputError(f"momentum must lie in [0, 1), got {self.momentum!r}")

    def _noise_name(self) -> str:
        return "discrete Laplace on a grid, OpenSSL's random bits"

    def _per_parameter(self) -> tuple[float, bool] | None:
        if self.sensitivity == "l1":
            return None
        return self.epsilon, self.settings_["epochs"] == 1 and self.settings_["batch_size"] is None

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step], float]:
        rows = len(inputs)
        batch = rows if self.batch_size is None else min(self.batch_size, rows)
        # From here on only public values: the number of rows, ε and the settings.
        clip = _CLIPS[self.sensitivity] if self.clip is None else float(self.clip)
        one_epoch = math.sqrt(2.0) * 2.0 * clip / (self.epsilon * batch)
        epochs = self.epochs or steady_epochs(one_epoch, self.momentum, _LARGEST_RATE)
        steps = epochs * math.ceil(rows / batch)
        rate = self.learning_rate or steady_rate(one_epoch * epochs, steps, self.momentum, _LARGEST_RATE)
        self.settings_ = {"clip": clip, "epochs": epochs, "learning_rate": rate, "batch_size": self.batch_size}
        network = initial_network(self._sizes(inputs, self.hidden), rng)
        release, noisy = self._mechanism(inputs, labels, network.theta.size, source)
        trained = descend(
            network,
            fixed_batches(rows, batch, epochs, rng),
            release,
            batch_size=batch,
            steps=steps,
            learning_rate=rate,
            momentum=self.momentum,
            decay=self.decay,
            average=self.average,
        )
        return trained, [noisy], steps * network.theta.size * LAPLACE_DISTANCE

    def _mechanism(self, inputs: Floats, labels: Integers, parameters: int, source: NoiseSource) -> tuple[Release, LaplaceSteps]:
        """How a batch's sum is released, and what a record's presence in one batch an epoch costs."""
        clip, epochs = self.settings_["clip"], self.settings_["epochs"]
        if self.sensitivity == "l1":
            grid = norm_grid(clip, parameters, 1, len(inputs))
            distance = 2 * grid.units + grid.slack
        else:
            distance = GRID + 1  # the extra step covers rounding in the division by the grid step
        scale = distance * epochs / self.epsilon

        def release_norm(network: Network, rows: Integers) -> Floats:
            exact = to_grid(network.gradient(inputs, labels, rows, 1, clip), grid.step)
            return np.asarray((exact + source.laplace(parameters, scale)) * grid.step, np.float64)

        def release_coordinates(network: Network, rows: Integers) -> Floats:
            low, high = np.full(parameters, -clip), np.full(parameters, clip)
            if self.sensitivity == "interval":
                reached = gradient_intervals(network)
                low, high = np.maximum(low, reached[0]), np.minimum(high, reached[1])
            step = (high - low) / GRID
            exact = kernels.quantized_sum(network.theta, network.shape, inputs, labels, rows, low, high, step)
            noisy = (exact + source.laplace(parameters, scale)) * step
            return np.asarray(np.clip(noisy, low * len(rows), high * len(rows)))

        if self.sensitivity == "l1":
            return release_norm, LaplaceSteps(distance, scale, epochs)
        return release_coordinates, LaplaceSteps(distance, scale, epochs * parameters)
