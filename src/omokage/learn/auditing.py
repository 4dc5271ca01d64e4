"""An audit: is the noise in every step as large as claimed, and does a row move no more than it covers?

Each kind of noisy step of a learner is run many times on a worst-case pair of inputs (``parts``). What is
measured is turned into an ε of the whole model by the same accounting that made the claim, so that both can be
compared. A claim that a step refutes is false, up to the confidence; a claim that stands has noise that is right
to within what so many runs can see: with 1,000, two thirds of the noise are told from all of it (docs/learn.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from omokage.base.progress import Progress, silent
from omokage.learn.accounting import pld_epsilon
from omokage.learn.classifier import PrivateClassifier
from omokage.learn.measurement import Measurement, check_runs
from omokage.learn.noise import NoiseSource
from omokage.learn.parts import Finding, SamplePart
from omokage.learn.steps import GaussianSteps, LaplaceSteps, Step, naive_epsilon

_RECORDS = 1000  # rows that are assumed of a learner that was not fitted


@dataclass(frozen=True)
class Audit(Measurement):
    """What was measured of every kind of step, and what follows for the whole model's ε.

    ``epsilon_measured`` is the whole model's ε if every step has the noise that was measured. ``epsilon_claimed``
    follows from the settings; ``epsilon_stated`` is what the model says of itself, if it was fitted.
    """

    records: int
    epsilon_claimed: float
    epsilon_stated: float | None
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether no step refutes its claim, and the model's own statement follows from the claims."""
        return self.statement_follows and all(f.holds for f in self.findings)

    @property
    def statement_follows(self) -> bool:
        return self.epsilon_stated is None or self.epsilon_claimed <= self.epsilon_stated * (1.0 + 1e-6)


def audit(
    model: PrivateClassifier,
    *,
    runs: int = 1000,
    rows: int | None = None,
    confidence: float = 0.999,
    noise_seed: int | None = None,
    progress: Progress = silent,
) -> Audit:
    """Measure the noise of every step that a learner takes.

    Parameters
    ----------
    model : learner
        With a schema, or fitted, or loaded. Its settings are audited, not its weights.
    runs : int
        Releases of each step in each of two worlds.
    rows : int, optional
        Rows of the training whose steps are audited; a fitted model's own number unless given.
    confidence : float
        A true claim is refuted with a probability of at most 1 − ``confidence``.
    noise_seed : int, optional
        Makes the audit repeatable; without it the noise is secret, as in a release.
    progress : called with each kind of step and how many kinds are done

    Examples
    --------
    >>> from omokage.learn import DPSGD, Numeric, Schema
    >>> result = audit(DPSGD(epsilon=1.0, schema=Schema((Numeric("x", 0, 1),))), noise_seed=0)
    >>> result.holds, bool(0.5 < result.epsilon_measured <= result.epsilon_claimed)
    (True, True)
    """
    check_runs(runs, confidence)
    learner = model._settled()
    privacy = getattr(model, "privacy_", None)
    records = rows or (_RECORDS if privacy is None else privacy.records)
    delta = learner._delta(records)
    parts = learner._parts(records)
    source = NoiseSource(noise_seed)
    measured = []
    for number, part in enumerate(parts):
        progress(f"measuring {part.name}", number, len(parts))
        measured.append(part.measure(runs, (1.0 - confidence) / len(parts), source))
    findings = tuple(measured)
    claims: tuple[Step, ...] = tuple(part.claim for part in parts if not isinstance(part, SamplePart))
    return Audit(
        approach=learner.approach,
        runs=runs,
        confidence=confidence,
        records=records,
        delta=delta,
        epsilon_measured=_epsilon(findings, delta),
        epsilon_claimed=pld_epsilon(claims, delta),
        epsilon_stated=privacy.epsilon if privacy is not None and rows is None and privacy.private else None,
        findings=findings,
    )


def _epsilon(findings: tuple[Finding, ...], delta: float) -> float:
    """The whole model's ε if every step is as it was measured."""
    if any(math.isinf(f.moved) for f in findings):
        return math.inf
    rates = [f.measured for f in findings if f.measure == "rate"]
    steps = tuple(_stretched(f.step, max(1.0, f.moved), rates) for f in findings if f.step is not None)
    if not steps:
        return 0.0
    return min(naive_epsilon(steps), pld_epsilon(steps, delta))


def _stretched(step: Step, times: float, rates: list[float]) -> Step:
    """A step that a row moves so many times further than claimed, at the measured rate if it is sampled."""
    if isinstance(step, GaussianSteps):
        return replace(step, multiplier=step.multiplier / times, sampling=min([step.sampling, *rates][-1], 1.0))
    if isinstance(step, LaplaceSteps):
        return replace(step, scale=step.scale / times)
    return replace(step, epsilon=step.epsilon * times)
