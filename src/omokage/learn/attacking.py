"""What an attacker measures who sees a finished model and nothing of how it was made.

The attacker knows all but one row: in one world the row is as it is, in the other its label is flipped. Each
world's learner is run many times with fresh secret noise. On the first half of the runs the attacker learns
to tell the worlds apart; on the second half the error rates are counted, and the exact (Clopper and Pearson)
bounds on them give a lower bound on ε that holds with the stated confidence: if ``P(A) ≤ e^ε P'(A) + δ`` for
all events ``A``, then ``ε ≥ ln((P(A) − δ) / P'(A))``.

A claim below the bound is refuted. A claim above it is not proven by that: an attacker may have been clumsy,
and one who sees only the end is. ``auditing`` looks at each noisy step instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from omokage.base.progress import Progress, silent
from omokage.errors import InputError
from omokage.learn.accounting import pld_epsilon
from omokage.learn.anonymized_learning import AnonymizedLearning
from omokage.learn.anonymizing_first import AnonymizingFirst
from omokage.learn.classifier import PrivateClassifier
from omokage.learn.measurement import Measurement, check_runs
from omokage.learn.network import initial_network
from omokage.learn.noise import NoiseSource
from omokage.learn.parts import highest_rate, lowest_rate
from omokage.learn.schema import Numeric, Schema
from omokage.learn.steps import Step, naive_epsilon

Floats = NDArray[np.float64]

VISIBLE = ("model", "bias")
_CUTS = 200  # thresholds tried on the first half of the runs


@dataclass(frozen=True)
class Attack(Measurement):
    """A measured lower bound on ε beside the claims.

    ``true_positive`` and ``false_positive`` are the attacker's counted rates on the second half of the runs.
    """

    visible: str
    epsilon_whole_model: float
    epsilon_naive: float
    epsilon_per_parameter: float | None
    true_positive: float
    false_positive: float

    @property
    def holds(self) -> bool:
        """Whether the whole-model claim survived."""
        return self.epsilon_measured <= self.epsilon_whole_model

    @property
    def refutes_per_parameter(self) -> bool:
        """Whether what was visible, one parameter, leaks more than the paper claims for it."""
        return (
            self.visible == "bias"
            and self.epsilon_per_parameter is not None
            and self.epsilon_measured > self.epsilon_per_parameter
        )


def attack(
    model: PrivateClassifier,
    *,
    visible: str = "model",
    runs: int = 1000,
    rows: int = 21,
    canary: int = 0,
    labels: NDArray[np.int64] | None = None,
    confidence: float = 0.99,
    random_state: int = 0,
    noise_seed: int | None = None,
    progress: Progress = silent,
) -> Attack:
    """Attack a learner with its own settings on two worst-case tables that differ in one row.

    Parameters
    ----------
    model : learner
        With a schema, or fitted. Its settings are used, not its weights; the claims in the result are those
        of the same settings on ``rows`` rows.
    visible : {"model", "bias"}
        What the attacker sees: all parameters (or all histograms), or the last bias alone.
    runs : int
        Trainings in each world.
    rows, canary : int
        Size of the tables, and which row differs.
    labels : array, optional
        Class numbers of the rows; two classes by turns unless given. The canary's is 0 in one world and 1 in
        the other.
    confidence : float
        Of the lower bound.
    random_state : int
        Fixes what is not secret: starting points and batches.
    noise_seed : int, optional
        Makes the attack repeatable; without it the noise is secret, as in a release.
    progress : called with the number of trainings that are done

    Examples
    --------
    >>> from omokage.learn import DPSGD
    >>> schema = Schema((Numeric("x", 0, 1),))
    >>> result = attack(DPSGD(epsilon=1.0, schema=schema, epochs=1), runs=200, noise_seed=0)
    >>> result.holds
    True
    """
    if visible not in VISIBLE:
        raise InputError(f"an attacker cannot see {visible!r}: choose {' or '.join(VISIBLE)} as visible")
    check_runs(runs, confidence)
    if not 0 <= canary < rows:
        raise InputError(f"canary is {canary}: give the number of a row, from 0 to {rows - 1}")
    if visible == "bias" and isinstance(model, AnonymizingFirst):
        raise InputError("anonymizing-first releases a whole table and no bias: choose model as visible")
    learner = model._settled()
    frame = _alike(learner, rows)
    base = np.arange(rows) % 2 if labels is None else np.array(labels, np.int64)
    seen = []
    for canary_label in (0, 1):
        base[canary] = canary_label
        report = _counting(progress, canary_label * runs, 2 * runs)
        values, steps = _observe(learner, frame, base, runs, random_state, noise_seed, report)
        seen.append(values[:, -1:] if visible == "bias" else values)
    delta = learner._delta(rows)
    measured, hit, alarm = lower_bound(seen[0], seen[1], confidence, delta)
    paper = learner._per_parameter()
    return Attack(
        approach=learner.approach,
        visible=visible,
        runs=runs,
        confidence=confidence,
        delta=delta,
        epsilon_measured=measured,
        epsilon_whole_model=pld_epsilon(steps, delta),
        epsilon_naive=naive_epsilon(steps),
        epsilon_per_parameter=None if paper is None else paper[0],
        true_positive=hit,
        false_positive=alarm,
    )


def refute_theorem_4(
    *, epsilon: float = 1.0, runs: int = 3000, confidence: float = 0.99, noise_seed: int | None = None
) -> Attack:
    """The paper's theorem 4 against an attacker who sees one bias of a small softmax network.

    One hundred inputs, all one; two batches, one epoch. The first batch holds the canary and leaks a little
    into each of two hundred weights; the second batch's gradient of the bias reads their sum.
    """
    inputs, rows, batch = 100, 102, 51
    learner = AnonymizedLearning(
        epsilon,
        schema=Schema(tuple(Numeric(f"x{j}", 0, 1) for j in range(inputs))),
        sensitivity="element",
        epochs=1,
        batch_size=batch,
        learning_rate=200.0,
        momentum=0.0,
        average=False,
    )
    # The partition is public: put the canary into the first batch and balance the labels of both.
    rng = np.random.default_rng(0)
    initial_network((inputs, 2), rng)
    order = rng.permutation(rows)
    labels = np.empty(rows, np.int64)
    labels[order] = np.arange(rows) % 2
    return attack(
        learner,
        visible="bias",
        runs=runs,
        rows=rows,
        canary=int(order[0]),
        labels=labels,
        confidence=confidence,
        random_state=0,
        noise_seed=noise_seed,
    )


def lower_bound(first: Floats, second: Floats, confidence: float, delta: float) -> tuple[float, float, float]:
    """The largest ε refuted by the observations ``(runs, values)`` of two worlds, with the rates that refute it.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.laplace(0, 1, (20_000, 1)), rng.laplace(1, 1, (20_000, 1))  # ε = 1 exactly
    >>> bool(0.8 < lower_bound(a, b, 0.99, 1e-9)[0] < 1.0)
    True
    """
    half = len(first) // 2
    best, event, scores = -math.inf, (0.0, 1, 1), _scores(first, second, half)
    chosen = scores[0]
    for pair in scores:
        guess, cut, sign, world = _best_event(pair[0][:half], pair[1][:half], confidence, delta)
        if guess > best:
            best, event, chosen = guess, (cut, sign, world), pair
    cut, sign, world = event
    hit = float(np.mean(sign * chosen[world][half:] >= sign * cut))
    alarm = float(np.mean(sign * chosen[1 - world][half:] >= sign * cut))
    return max(0.0, _ratio(hit, alarm, len(first) - half, confidence, delta)), hit, alarm


def _best_event(first: Floats, second: Floats, confidence: float, delta: float) -> tuple[float, float, int, int]:
    """The threshold, its side and the world it points to that promise the largest bound."""
    worlds = np.sort(first), np.sort(second)
    best = (-math.inf, 0.0, 1, 1)
    for cut in np.unique(np.quantile(np.concatenate(worlds), np.linspace(0.0, 1.0, _CUTS))):
        above = [1.0 - np.searchsorted(w, cut, "left") / len(w) for w in worlds]
        below = [np.searchsorted(w, cut, "right") / len(w) for w in worlds]
        for sign, share in ((1, above), (-1, below)):
            for world in (0, 1):
                guess = _ratio(share[world], share[1 - world], len(first), confidence, delta)
                best = max(best, (guess, float(cut), sign, world))
    return best


def _ratio(hit: float, alarm: float, runs: int, confidence: float, delta: float) -> float:
    """``ln((low(hit) − δ) / high(alarm))`` with half of the error probability on each side."""
    miss = (1.0 - confidence) / 2.0
    hits, alarms = round(hit * runs), round(alarm * runs)
    low, high = lowest_rate(hits, runs, miss), highest_rate(alarms, runs, miss)
    return math.log((low - delta) / high) if low > delta else -math.inf


def _scores(first: Floats, second: Floats, half: int) -> list[tuple[Floats, Floats]]:
    """Two ways to tell the worlds apart, learned from the first half of the runs, applied to all.

    Both weigh each coordinate by the distance of the means over the spread. The second first clips a
    coordinate to the range between the means, as the likelihood ratio of Laplace noise does.
    """
    means = first[:half].mean(axis=0), second[:half].mean(axis=0)
    spread = first[:half].var(axis=0) + second[:half].var(axis=0)
    weights = np.where(spread > 0, (means[1] - means[0]) / np.where(spread > 0, spread, 1.0), 0.0)
    low, high = np.minimum(*means), np.maximum(*means)
    return [
        (first @ weights, second @ weights),
        (np.clip(first, low, high) @ weights, np.clip(second, low, high) @ weights),
    ]


def _observe(
    learner: PrivateClassifier,
    frame: pl.DataFrame,
    labels: NDArray[np.int64],
    runs: int,
    seed: int,
    noise_seed: int | None,
    report: Callable[[int], None],
) -> tuple[Floats, tuple[Step, ...]]:
    """What leaves in ``runs`` runs; only the noise differs between them."""
    inputs = learner.schema_.encode(frame)
    seen = []
    steps: list[Step] = []
    world = int(labels.sum())  # differs between the worlds, so that their seeded noise does too
    for run in range(runs):
        source = NoiseSource() if noise_seed is None else NoiseSource((noise_seed * 1000 + world) * 10**6 + run)
        values, steps = learner._release(frame, inputs, labels, np.random.default_rng(seed), source)
        seen.append(values)
        report(run + 1)
    return np.array(seen), tuple(steps)


def _counting(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress("training", before + done, total)


def _alike(learner: PrivateClassifier, rows: int) -> pl.DataFrame:
    """Rows that are all the same, so that only the canary's label tells.

    The largest inputs move most coordinates, which is the worst case of coordinate-wise bounds; under an L1
    bound that biases alone can fill, the smallest ones leave all of it to them, where it is seen best.
    """
    low = isinstance(learner, AnonymizedLearning) and learner.sensitivity == "l1" and (learner.clip or np.inf) <= 1.0
    values = {
        c.name: [float(c.low if low else c.high) if isinstance(c, Numeric) else c.categories[-1]] * rows
        for c in learner.schema_.columns
    }
    return pl.DataFrame(values)
