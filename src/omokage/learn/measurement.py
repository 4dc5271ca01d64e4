"""What audits and attacks share: a lower bound on ε, measured at a confidence in runs of two worlds."""

from __future__ import annotations

from dataclasses import dataclass

from omokage.errors import InputError
from omokage.learn.settings import check_count

LEAST_RUNS = 20


@dataclass(frozen=True)
class Measurement:
    """A lower bound on a learner's ε at ``delta``: no mechanism with a smaller one behaves so, up to the ``confidence``.

    approach : the learner's. runs : in each of the two worlds, which differ in one row.
    """

    approach: str
    runs: int
    confidence: float
    delta: float
    epsilon_measured: float


def check_runs(runs: int, confidence: float) -> None:
    """Refuse so few runs, or such a confidence, that nothing could be measured."""
    check_count("runs", runs)
    if runs < LEAST_RUNS:
        raise InputError(f"{runs} runs are too few to measure anything: give at least {LEAST_RUNS}")
    if not 0.5 < confidence < 1.0:
        raise InputError(f"confidence is {confidence!r}: give a number between 0.5 and 1")
