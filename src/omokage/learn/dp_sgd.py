"""DP-SGD (Abadi et al., CCS 2016): gradients clipped in L2, Gaussian noise, the state of the art to compare with.

By default every step uses all records: no sampling, the guarantee is that of one Gaussian mechanism, exactly,
and for a table of some ten thousand rows it is also what predicts best. With ``batch_size`` a step draws a
Poisson sample from the secret source, which is what is then accounted for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from omokage.errors import InputError
from omokage.learn.accounting import GaussianSteps, Step, gaussian_multiplier
from omokage.learn.classifier import Floats, Integers, PrivateClassifier
from omokage.learn.descent import descend, norm_grid, steady_rate
from omokage.learn.mechanisms import ClippedSum, Plan
from omokage.learn.network import Network, initial_network
from omokage.learn.noise import SAMPLE_DISTANCE, NoiseSource
from omokage.learn.parts import Part, SamplePart, sum_part
from omokage.learn.settings import check_clip, check_count, check_descent

_LARGEST_RATE = 4.0


@dataclass(eq=False, repr=False, kw_only=True)
class DPSGD(PrivateClassifier):
    """A network under (ε, δ)-differential privacy as a whole.

    Parameters
    ----------
    epsilon : float
        The whole model's ε, replace-one neighbours.
    delta : float, optional
        The whole model's δ, above 0 and below one over the number of rows. Unless given it is 1e-5, or half
        of one over the number of rows if that is smaller.
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

    approach: ClassVar[str] = "dp-sgd"

    epochs: int = 100
    batch_size: int | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    decay: float = 0.0
    clip: float = 1.0
    average: bool = True

    def _check_settings(self) -> None:
        check_count("epochs", self.epochs)
        check_clip(self.clip)
        check_descent(self.batch_size, self.learning_rate, self.momentum, self.decay)
        if self.delta == 0.0:
            raise InputError("delta=0 has no meaning for Gaussian noise: take a delta above 0, or another approach")

    def _noise_name(self) -> str:
        return "discrete Gaussian on a grid, OpenSSL's random bits"

    def _plan(self, rows: int, parameters: int) -> Plan:
        """All that follows from public values: the number of rows, the size of the network and the settings."""
        batch = rows if self.batch_size is None else min(self.batch_size, rows)
        steps = max(1, round(self.epochs * rows / batch))
        distance = parameters * SAMPLE_DISTANCE
        multiplier = gaussian_multiplier(self.epsilon, self._delta(rows), steps, batch / rows, distance)
        grid = norm_grid(self.clip, parameters, 2, rows)
        mechanism = ClippedSum(2, self.clip, grid, multiplier * (grid.units + grid.slack))
        rate = self.learning_rate or steady_rate(mechanism.scale * grid.step / batch, steps, self.momentum, _LARGEST_RATE)
        claim = GaussianSteps(multiplier, steps, batch / rows, distance)
        return Plan(mechanism, claim, batch, self.epochs, steps, rate)

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step]]:
        network = initial_network(self._sizes(inputs.shape[1]), rng)
        plan = self._plan(len(inputs), network.theta.size)
        self.settings_["learning_rate"] = plan.rate

        def samples() -> Iterator[Integers]:
            for _ in range(plan.steps):
                yield source.poisson_subset(len(inputs), plan.batch / len(inputs))

        trained = descend(
            network,
            samples(),
            lambda current, chosen: plan.mechanism.release(current, inputs, labels, chosen, source),
            batch_size=plan.batch,
            steps=plan.steps,
            learning_rate=plan.rate,
            momentum=self.momentum,
            decay=self.decay,
            average=self.average,
        )
        return trained, [plan.claim]

    def _parts(self, rows: int) -> list[Part]:
        network = self._any_network()
        plan = self._plan(rows, network.theta.size)
        parts: list[Part] = [sum_part(plan.mechanism, plan.claim, network)]
        if plan.batch < rows:
            parts.append(SamplePart("Poisson samples", plan.batch / rows))
        return parts
