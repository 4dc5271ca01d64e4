"""What the two learners share that put noise into every step of a descent: a plan, batches, noisy sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from omokage.learn.classifier import Floats, Integers, PrivateClassifier
from omokage.learn.descent import descend
from omokage.learn.mechanisms import Plan
from omokage.learn.network import Network, initial_network
from omokage.learn.noise import NoiseSource
from omokage.learn.parts import Part, sum_part
from omokage.learn.steps import Step


@dataclass(eq=False, repr=False, kw_only=True)
class NoisyDescent(PrivateClassifier):
    """A network trained with noise in every step; subclasses say how much, and on which records a step looks."""

    batch_size: int | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    decay: float = 0.0
    average: bool = True

    def _plan(self, rows: int, parameters: int) -> Plan:
        """All that follows from public values: the number of rows, the size of the network and the settings."""
        raise NotImplementedError

    def _batches(self, plan: Plan, rows: int, rng: np.random.Generator, source: NoiseSource) -> Iterable[Integers]:
        """The records of each step."""
        raise NotImplementedError

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step]]:
        network = initial_network(self._sizes(inputs.shape[1]), rng)
        plan = self._plan(len(inputs), network.theta.size)
        self.settings_ |= {"clip": plan.mechanism.clip, "epochs": plan.epochs, "learning_rate": plan.rate}
        trained = descend(
            network,
            self._batches(plan, len(inputs), rng, source),
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
        return [sum_part(plan.mechanism, plan.claim, network)]
