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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from omokage.errors import InputError
from omokage.learn.classifier import Integers
from omokage.learn.descent import fixed_batches, norm_grid, steady_epochs, steady_rate
from omokage.learn.mechanisms import ClippedSum, CoordinateSum, Plan, Sum
from omokage.learn.noise import SAMPLE_DISTANCE, NoiseSource
from omokage.learn.noisy_descent import NoisyDescent
from omokage.learn.settings import check_clip, check_count, check_descent
from omokage.learn.steps import LaplaceSteps

SENSITIVITIES = ("l1", "element", "interval")
_LARGEST_RATE = 2.0
_CLIPS = {"l1": 5.0, "element": 1.0, "interval": 1.0}  # an error signal is at most 1, and so is an input


@dataclass(eq=False, repr=False, kw_only=True)
class AnonymizedLearning(NoisyDescent):
    """A network trained with Laplace noise in every step.

    Parameters
    ----------
    epsilon : float
        With ``sensitivity="l1"`` the whole model's pure ε; otherwise the paper's ε for each parameter, and
        ``privacy_`` tells the whole model's.
    delta : float, optional
        Where the PLD bound in ``privacy_`` is read off, as for ``DPSGD``; no noise depends on it, and 0 asks for
        the pure ε alone.
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

    approach: ClassVar[str] = "anonymized-learning"

    sensitivity: str = "l1"
    clip: float | None = None
    epochs: int | None = None

    def _check_settings(self) -> None:
        if self.sensitivity not in SENSITIVITIES:
            raise InputError(f"there is no sensitivity {self.sensitivity!r}: choose {', '.join(SENSITIVITIES)}")
        if self.epochs is not None:
            check_count("epochs", self.epochs)
        if self.clip is not None:
            check_clip(self.clip)
        check_descent(self.batch_size, self.learning_rate, self.momentum, self.decay)

    def _noise_name(self) -> str:
        return "discrete Laplace on a grid, OpenSSL's random bits"

    def _per_parameter(self) -> tuple[float, bool] | None:
        if self.sensitivity == "l1":
            return None
        return self.epsilon, self.settings_["epochs"] == 1 and self.batch_size is None

    def _plan(self, rows: int, parameters: int) -> Plan:
        batch = rows if self.batch_size is None else min(self.batch_size, rows)
        clip = _CLIPS[self.sensitivity] if self.clip is None else float(self.clip)
        one_epoch = math.sqrt(2.0) * 2.0 * clip / (self.epsilon * batch)
        epochs = self.epochs or steady_epochs(one_epoch, self.momentum, _LARGEST_RATE)
        steps = epochs * math.ceil(rows / batch)
        rate = self.learning_rate or steady_rate(one_epoch * epochs, steps, self.momentum, _LARGEST_RATE)
        mechanism = self._mechanism(clip, epochs, rows, parameters)
        # A record is in one batch an epoch; the steps of the others are the same for both neighbours.
        if self.sensitivity == "l1":
            claim = LaplaceSteps(mechanism.bound, mechanism.scale, epochs, parameters * SAMPLE_DISTANCE)
        else:
            claim = LaplaceSteps(mechanism.bound, mechanism.scale, epochs * parameters, SAMPLE_DISTANCE)
        return Plan(mechanism, claim, batch, epochs, steps, rate)

    def _mechanism(self, clip: float, epochs: int, rows: int, parameters: int) -> Sum:
        if self.sensitivity == "l1":
            silent = ClippedSum(1, clip, norm_grid(clip, parameters, 1, rows), 0.0)
            return replace(silent, scale=silent.bound * epochs / self.epsilon)
        return CoordinateSum(clip, self.sensitivity == "interval", CoordinateSum.bound * epochs / self.epsilon)

    def _batches(self, plan: Plan, rows: int, rng: np.random.Generator, source: NoiseSource) -> Iterable[Integers]:
        return fixed_batches(rows, plan.batch, plan.epochs, rng)
