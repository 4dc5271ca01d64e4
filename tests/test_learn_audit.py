"""Audits: false claims are found out, true ones stand, and the paper's theorem 4 falls."""

from __future__ import annotations

import numpy as np
import pytest

from omokage.errors import InputError
from omokage.learn import DPSGD, AnonymizedLearning, AnonymizingFirst, LearningFirst, Numeric, Schema, audit
from omokage.learn.auditing import lower_bound, refute_theorem_4
from omokage.learn.noise import NoiseSource

ONE = Schema((Numeric("x", 0, 1),))
LEARNERS = [
    AnonymizingFirst(1.0, schema=ONE),
    AnonymizingFirst(1.0, schema=ONE, marginals="label"),
    LearningFirst(1.0, schema=ONE, learning_rate=50.0, epochs=3),
    AnonymizedLearning(1.0, schema=ONE, epochs=1, clip=1.0),
    AnonymizedLearning(1.0, schema=ONE, epochs=4),
    AnonymizedLearning(1.0, schema=ONE, epochs=2, sensitivity="element", batch_size=7),
    AnonymizedLearning(1.0, schema=ONE, epochs=2, sensitivity="interval", hidden=(2,)),
    DPSGD(1.0, schema=ONE, epochs=1),
    DPSGD(1.0, schema=ONE, epochs=3, batch_size=7),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: f"{m.approach}-{getattr(m, 'sensitivity', '')}")
@pytest.mark.parametrize("seed", [None, 0], ids=["secret", "seeded"])
def test_no_whole_model_claim_is_refuted(learner, seed):
    result = audit(learner, runs=600, confidence=0.999, noise_seed=seed)
    assert result.holds
    assert result.epsilon_whole_model <= result.epsilon_naive * (1 + 1e-9)


def test_theorem_4_fails():
    """One visible bias, ε = 1 claimed for it, far more measured; the whole model's ε is not touched."""
    result = refute_theorem_4(epsilon=1.0, runs=1500, noise_seed=0)
    assert result.epsilon_per_parameter == 1.0
    assert result.refutes_per_parameter
    assert result.epsilon_measured > 3.0
    assert result.holds


def test_theorem_3_stands():
    """LearningFirst's promise for one parameter survives the same attacker."""
    learner = LearningFirst(1.0, schema=ONE, learning_rate=50.0, epochs=3)
    result = audit(learner, visible="bias", runs=2000, confidence=0.999, noise_seed=0)
    assert result.epsilon_measured <= 1.0
    assert not result.refutes_per_parameter


@pytest.mark.parametrize(
    ("learner", "sampler"),
    [
        (AnonymizedLearning(1.0, schema=ONE, epochs=1, clip=1.0), "laplace"),
        (DPSGD(4.0, 1e-2, schema=ONE, epochs=1), "gaussian"),
    ],
    ids=["laplace", "gaussian"],
)
def test_a_quarter_of_the_noise_is_found_out(learner, sampler, monkeypatch):
    assert audit(learner, runs=2000, noise_seed=0).holds
    honest = getattr(NoiseSource, sampler)
    monkeypatch.setattr(NoiseSource, sampler, lambda self, size, scale: honest(self, size, scale / 4))
    assert not audit(learner, runs=2000, noise_seed=0).holds


def test_half_of_the_noise_is_found_out(monkeypatch):
    learner = AnonymizedLearning(1.0, schema=ONE, epochs=1, clip=1.0)
    honest = NoiseSource.laplace
    monkeypatch.setattr(NoiseSource, "laplace", lambda self, size, scale: honest(self, size, scale / 2))
    assert not audit(learner, runs=4000, noise_seed=0).holds


def test_unclipped_records_are_found_out(monkeypatch):
    from omokage.learn.network import Network

    learner = AnonymizedLearning(1.0, schema=ONE, epochs=1, clip=0.2)
    honest = Network.gradient
    monkeypatch.setattr(Network, "gradient", lambda self, X, y, rows, norm, clip: honest(self, X, y, rows, 0, clip))
    assert not audit(learner, runs=2000, noise_seed=0).holds


def test_bound_is_valid_and_not_idle():
    rng = np.random.default_rng(0)
    tight = [lower_bound(rng.laplace(0, 1, (3000, 1)), rng.laplace(2, 1, (3000, 1)), 0.95, 1e-9)[0] for _ in range(6)]
    assert max(tight) <= 2.0 * 1.02
    assert np.mean(tight) > 1.4
    same = [lower_bound(rng.normal(size=(400, 3)), rng.normal(size=(400, 3)), 0.95, 1e-9)[0] for _ in range(10)]
    assert np.mean(np.array(same) > 0) <= 0.2


def test_bad_questions():
    with pytest.raises(InputError, match="visible"):
        audit(DPSGD(schema=ONE), visible="all")
    with pytest.raises(InputError, match="table"):
        audit(AnonymizingFirst(schema=ONE), visible="bias")
    with pytest.raises(InputError, match="columns"):
        audit(DPSGD())
    with pytest.raises(InputError, match="runs"):
        audit(DPSGD(schema=ONE), runs=3)


def test_a_fitted_learner_is_attacked_with_the_settings_it_settled_on():
    rng = np.random.default_rng(0)
    X = rng.random((3000, 1))
    fitted = AnonymizedLearning(1.0).fit(X, (X[:, 0] > 0.5).astype(int))
    assert fitted.settings_["epochs"] != 5
    result = audit(fitted, runs=20)
    assert result.epsilon_whole_model == pytest.approx(fitted.privacy_.epsilon)
