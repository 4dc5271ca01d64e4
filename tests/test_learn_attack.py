"""Attackers who see finished models: true claims stand, the paper's theorem 4 falls, and overflow no longer leaks."""

from __future__ import annotations

import numpy as np
import pytest

from omokage.errors import InputError
from omokage.learn import DPSGD, AnonymizedLearning, AnonymizingFirst, LearningFirst, Numeric, Schema, attack
from omokage.learn.attacking import lower_bound, refute_theorem_4
from omokage.learn.noise import NoiseSource

ONE = Schema((Numeric("x", 0, 1),))
TWO = Schema((Numeric("x", 0, 1), Numeric("z", 0, 1)))
LEARNERS = [
    AnonymizingFirst(1.0, schema=TWO),
    AnonymizingFirst(1.0, schema=ONE, marginals="label"),
    LearningFirst(1.0, schema=ONE, learning_rate=50.0, epochs=3),
    AnonymizedLearning(1.0, schema=ONE, epochs=1, clip=1.0),
    AnonymizedLearning(1.0, schema=ONE, epochs=4),
    AnonymizedLearning(1.0, schema=ONE, epochs=2, sensitivity="element", batch_size=7),
    AnonymizedLearning(1.0, schema=ONE, epochs=2, sensitivity="interval", hidden=(2,)),
    DPSGD(1.0, schema=ONE, epochs=1),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: f"{m.approach}-{getattr(m, 'sensitivity', '')}")
def test_no_whole_model_claim_is_refuted(learner):
    result = attack(learner, runs=400, noise_seed=0)
    assert result.holds
    assert result.epsilon_whole_model <= result.epsilon_naive * (1 + 1e-9)


def test_theorem_4_fails():
    """One visible bias, ε = 1 claimed for it, far more measured; the whole model's ε is not touched."""
    result = refute_theorem_4(epsilon=1.0, runs=800, noise_seed=0)
    assert result.epsilon_per_parameter == 1.0
    assert result.refutes_per_parameter
    assert result.epsilon_measured > 2.5
    assert result.holds


def test_theorem_3_stands():
    """LearningFirst's promise for one parameter survives the same attacker."""
    learner = LearningFirst(1.0, schema=ONE, learning_rate=50.0, epochs=3)
    result = attack(learner, visible="bias", runs=1000, confidence=0.999, noise_seed=0)
    assert result.epsilon_measured <= 1.0
    assert not result.refutes_per_parameter


def test_a_quarter_of_the_noise_is_found_out_even_so(monkeypatch):
    learner = AnonymizedLearning(1.0, schema=ONE, epochs=1, clip=1.0)
    honest = NoiseSource.laplace
    monkeypatch.setattr(NoiseSource, "laplace", lambda self, size, scale: honest(self, size, scale / 4))
    assert not attack(learner, runs=1000, noise_seed=0).holds


@pytest.mark.parametrize(("kind", "rate"), [(DPSGD, 1e153), (AnonymizedLearning, 5e152)], ids=["dp-sgd", "anonymized-learning"])
def test_overflow_tells_nothing(kind, rate):
    """The attack: 2,000 inputs of one row are all one or all zero, and the first step's noise makes weights of 1e153.

    In the second step that row's output overflows if it is all one. Its NaN became −2⁶³ on the grid, beside
    which no noise is seen: ε ≥ 1.64 and ≥ 1.33 were measured at a claimed 0.5 with these 60 runs, ≥ 2.91 and
    ≥ 2.82 with 200.
    """
    inputs, runs = 2000, 60
    schema = Schema(tuple(Numeric(f"x{j}", 0, 1) for j in range(inputs)))
    learner = kind(0.5, schema=schema, hidden=(16,), epochs=2, learning_rate=rate, average=False)._settled()
    labels = np.arange(6) % 2
    seen = []
    for world in (0, 1):
        rows = np.zeros((6, inputs))
        rows[0] = world
        largest = []
        for run in range(runs):
            learner.settings_ = {}
            network, _ = learner._learn(None, rows, labels, np.random.default_rng(0), NoiseSource(2 * run + world))
            largest.append([np.log(np.abs(network.theta).max())])
        seen.append(np.array(largest))
    assert lower_bound(seen[0], seen[1], 0.99, 1e-5)[0] < 0.5


def test_bound_is_valid_and_not_idle():
    rng = np.random.default_rng(0)
    tight = [lower_bound(rng.laplace(0, 1, (3000, 1)), rng.laplace(2, 1, (3000, 1)), 0.95, 1e-9)[0] for _ in range(3)]
    assert max(tight) <= 2.0 * 1.02
    assert np.mean(tight) > 1.4
    same = [lower_bound(rng.normal(size=(400, 3)), rng.normal(size=(400, 3)), 0.95, 1e-9)[0] for _ in range(6)]
    assert np.mean(np.array(same) > 0) <= 0.2


def test_bad_questions():
    with pytest.raises(InputError, match="visible"):
        attack(DPSGD(schema=ONE), visible="all")
    with pytest.raises(InputError, match="table"):
        attack(AnonymizingFirst(schema=ONE), visible="bias")
    with pytest.raises(InputError, match="columns"):
        attack(DPSGD())
    with pytest.raises(InputError, match="runs"):
        attack(DPSGD(schema=ONE), runs=3)
