"""DP-SGD (Abadi et al., CCS 2016): gradients clipped in L2, Gaussian noise, the state of the art to compare with.

By default every step uses all records: no sampling, the guarantee is that of one Gaussian mechanism, exactly,
and for a table of some ten thousand rows it is also what predicts best. With ``batch_size`` a step draws a
Poisson sample from the secret source, which is what is then accounted for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from omokage.errors import InputError
from omokage.learn.accounting import gaussian_multiplier
from omokage.learn.classifier import Integers
from omokage.learn.descent import norm_grid, steady_rate
from omokage.learn.mechanisms import ClippedSum, Plan
from omokage.learn.noise import SAMPLE_DISTANCE, NoiseSource
from omokage.learn.noisy_descent import NoisyDescent
from omokage.learn.parts import Part, SamplePart
from omokage.learn.settings import check_clip, check_count, check_descent
from omokage.learn.steps import GaussianSteps

_LARGEST_RATE = 4.0


@dataclass(eq=False, repr=False, kw_only=True)
class DPSGD(NoisyDescent):
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
    clip: float = 1.0

    def _check_settings(self) -> None:
        check_count("epochs", self.epochs)
        check_clip(self.clip)
        check_descent(self.batch_size, self.learning_rate, self.momentum, self.decay)
        if self.delta == 0.0:
            raise InputError("delta=0 has no meaning for Gaussian noise: choose a delta above 0, or another approach")

    def _noise_name(self) -> str:
        return "discrete Gaussian on a grid, OpenSSL's random bits"

    def _plan(self, rows: int, parameters: int) -> Plan:
        batch = rows if self.batch_size is None else min(self.batch_size, rows)
        steps = max(1, round(self.epochs * rows / batch))
        distance = parameters * SAMPLE_DISTANCE
        multiplier = gaussian_multiplier(self.epsilon, self._delta(rows), steps, batch / rows, distance)
        grid = norm_grid(self.clip, parameters, 2, rows)
        mechanism = ClippedSum(2, self.clip, grid, multiplier * (grid.units + grid.slack))
        rate = self.learning_rate or steady_rate(mechanism.scale * grid.step / batch, steps, self.momentum, _LARGEST_RATE)
        claim = GaussianSteps(multiplier, steps, batch / rows, distance)
        return Plan(mechanism, claim, batch, self.epochs, steps, rate)

    def _batches(self, plan: Plan, rows: int, rng: np.random.Generator, source: NoiseSource) -> Iterable[Integers]:
        return (source.poisson_subset(rows, plan.batch / rows) for _ in range(plan.steps))

    def _parts(self, rows: int) -> list[Part]:
        plan = self._plan(rows, self._any_network().theta.size)
        sampled = [SamplePart("Poisson samples", plan.batch / rows)] if plan.batch < rows else []
        return [*super()._parts(rows), *sampled]
