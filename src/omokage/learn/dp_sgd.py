"""DP-SGD (Abadi et al., CCS 2016): gradients clipped in L2, Gaussian noise, the state of the art to compare with.

By default every step uses all records: no sampling, the guarantee is that of one Gaussian mechanism, exactly,
and for a table of some ten thousand rows it is also what predicts best. With ``batch_size`` a step draws a
Poisson sample from the secret source, which is what is then accounted for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from omokage.errors import InputError
from omokage.learn.accounting import GaussianSteps, Step, gaussian_multiplier
from omokage.learn.classifier import NOT_STATED, Floats, Integers, PrivateClassifier, check_count, check_positive
from omokage.learn.descent import descend, norm_grid, steady_rate, to_grid
from omokage.learn.network import Network, initial_network
from omokage.learn.noise import GAUSSIAN_DISTANCE, NoiseSource
from omokage.learn.schema import Schema


class DPSGD(PrivateClassifier):
    """A network under (ε, δ)-differential privacy as a whole.

    Parameters
    ----------
    epsilon, delta : float
        The whole model's guarantee, replace-one neighbours.
    bounds : pair or list of pairs
        Public bounds of the inputs, when ``X`` is a matrix.
    schema : Schema, optional
        What is public about a table, when ``X`` is one.
    classes : list, optional
        Public labels; (0, 1) or the schema's unless given.
    hidden : list of int
        Widths of hidden layers; none is a softmax regression.
    epochs, batch_size, learning_rate, momentum, decay, clip, average
        The descent; ``batch_size=None`` takes all records at every step.
    tuned : str
        How the settings were chosen; goes into ``privacy_``.
    random_state : int, optional
        Seeds the starting point. The noise and the sampling are secret all the same.
    noise_seed : int, optional
        Makes the noise repeatable, and the result not private.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((2000, 3)); y = (X[:, 0] > 0.5).astype(int)
    >>> model = DPSGD(epsilon=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), round(model.privacy_.epsilon, 3), model.privacy_.private
    (True, 1.0, True)
    """

    approach = "dp-sgd"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = (0.0, 1.0),
        schema: Schema | None = None,
        classes: Any = None,
        hidden: Sequence[int] = (),
        epochs: int = 100,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        decay: float = 0.0,
        clip: float = 1.0,
        average: bool = True,
        tuned: str = NOT_STATED,
        random_state: int | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.decay = decay
        self.clip = clip
        self.average = average
        self.tuned = tuned
        self.random_state = random_state
        self.noise_seed = noise_seed

    def _check_settings(self) -> None:
        check_count("epochs", self.epochs)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if self.learning_rate is not None:
            check_positive("learning_rate", self.learning_rate)
        check_positive("clip", self.clip)
        if not 0.0 <= self.momentum < 1.0:
            raise InputError(f"momentum must lie in [0, 1), got {self.momentum!r}")

    def _noise_name(self) -> str:
        return "discrete Gaussian on a grid, OpenSSL's random bits"

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step], float]:
        rows = len(inputs)
        batch = rows if self.batch_size is None else min(self.batch_size, rows)
        steps = max(1, round(self.epochs * rows / batch))
        multiplier = gaussian_multiplier(self.epsilon, self.delta, steps, batch / rows)
        network = initial_network(self._sizes(inputs, self.hidden), rng)
        parameters = network.theta.size
        grid = norm_grid(self.clip, parameters, 2, rows)
        sigma = multiplier * (grid.units + grid.slack)

        rate = self.learning_rate or steady_rate(sigma * grid.step / batch, steps, self.momentum, 4.0)

        self.settings_ = {"learning_rate": rate}

        def release(current: Network, chosen: Integers) -> Floats:
            exact = to_grid(current.gradient(inputs, labels, chosen, 2, self.clip), grid.step)
            return np.asarray((exact + source.gaussian(parameters, sigma)) * grid.step, np.float64)

        def samples() -> Iterator[Integers]:
            for _ in range(steps):
                yield source.poisson_subset(rows, batch / rows)

        trained = descend(
            network,
            samples(),
            release,
            batch_size=batch,
            steps=steps,
            learning_rate=rate,
            momentum=self.momentum,
            decay=self.decay,
            average=self.average,
        )
        noisy: list[Step] = [GaussianSteps(multiplier, steps, batch / rows)]
        return trained, noisy, steps * parameters * GAUSSIAN_DISTANCE
