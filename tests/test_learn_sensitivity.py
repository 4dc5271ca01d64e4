"""The promise, step by step: what one record can move, beside the noise that is added.

Each learner is run with a source that adds nothing and writes down the scale it was asked for. Two
neighbouring tables then show the distance of the exact releases in grid steps, and ``distance / scale`` is
the ε really spent. Half the noise, or a sum that is clipped instead of its records, fails here.
"""

from __future__ import annotations

import numpy as np
import pytest
from learn_checks import LEARNERS, SMALL, Silent, check_noise_asked_for, check_reach

from omokage.errors import InputError
from omokage.learn import DPSGD, AnonymizedLearning, AnonymizingFirst, LearningFirst, Numeric, Schema, dp_sgd, noisy_descent
from omokage.learn.accounting import gaussian_multiplier, pld_epsilon
from omokage.learn.descent import norm_grid, to_grid
from omokage.learn.mechanisms import ClippedSum
from omokage.learn.network import Network, parameter_count
from omokage.learn.noise import SAMPLE_DISTANCE, NoiseSource
from omokage.learn.steps import GaussianSteps, naive_epsilon

COLUMNS = 3


def neighbours(seed, rows=40):
    """Two tables that differ in one row, as different as inputs allow."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, COLUMNS))
    y = rng.integers(0, 2, rows)
    X2, y2 = X.copy(), y.copy()
    X[0], y[0] = np.ones(COLUMNS), 0
    X2[0], y2[0] = np.ones(COLUMNS) if seed % 2 else np.zeros(COLUMNS), 1
    return (X, y), (X2, y2)


def exact_releases(learner, X, y, monkeypatch):
    """The integers of every step before noise, and the scales asked for."""
    released = []

    def descend(network, batches, release, **settings):
        for rows in batches:
            released.append(release(network, rows))
        return network

    monkeypatch.setattr(noisy_descent, "descend", descend)
    source = Silent()
    learner.schema_ = Schema(tuple(Numeric(f"x{j}", 0, 1) for j in range(COLUMNS)))
    learner.settings_ = {}
    _, steps = learner._learn(None, X, y, np.random.default_rng(0), source)
    return np.array(released), source.scales, steps


@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("batch_size", [None, 10])
@pytest.mark.parametrize("sensitivity", ["l1", "element", "interval"])
def test_anonymized_learning_spends_what_it_says(sensitivity, batch_size, hidden, monkeypatch):
    clip = 0.05
    worst = 0.0
    for seed in range(6):
        learner = AnonymizedLearning(0.8, sensitivity=sensitivity, clip=clip, epochs=2, hidden=hidden, batch_size=batch_size)
        (X, y), (X2, y2) = neighbours(seed)
        one, scales, steps = exact_releases(learner, X, y, monkeypatch)
        other, _, _ = exact_releases(learner, X2, y2, monkeypatch)
        (claimed,) = steps
        assert set(scales) == {claimed.scale}
        moved = np.abs(one - other)
        touched = moved.sum(axis=1) > 0
        assert touched.sum() == 2  # the record is in one batch of each of the two epochs
        if sensitivity == "l1":
            spent = moved.sum(axis=1).sum() / (2 * clip) * claimed.sensitivity / claimed.scale
        elif sensitivity == "element":
            spent = moved.max(axis=1).sum() / (2 * clip) * claimed.sensitivity / claimed.scale
        else:
            continue  # its grid differs by coordinate: the interval tests of the network cover the range
        assert spent <= 0.8 * (1 + 1e-3)
        worst = max(worst, spent)
    if sensitivity != "interval":
        assert worst > 0.5 * 0.8  # the bound is used, not slack


def test_coordinate_releases_are_clamped_to_what_a_batch_can_reach():
    rng = np.random.default_rng(0)
    X, y = rng.random((30, COLUMNS)), rng.integers(0, 2, 30)
    learner = AnonymizedLearning(1e-3, sensitivity="element", epochs=1, clip=0.5, learning_rate=1.0, momentum=0.0)
    learner.fit(X, y)
    assert np.abs(learner.network_.theta).max() <= 0.5


def test_element_and_interval_count_every_parameter():
    for sensitivity in ("element", "interval"):
        rng = np.random.default_rng(0)
        X, y = rng.random((60, COLUMNS)), rng.integers(0, 2, 60)
        privacy = AnonymizedLearning(0.5, sensitivity=sensitivity, epochs=4, hidden=(3,)).fit(X, y).privacy_
        assert privacy.epsilon_naive == pytest.approx(0.5 * privacy.parameters)
        assert privacy.epsilon_per_parameter == 0.5
        assert privacy.per_parameter_holds is False
        assert privacy.epsilon > 0.5


def test_one_single_step_is_the_case_where_the_papers_figure_holds():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, COLUMNS)), rng.integers(0, 2, 60)
    assert AnonymizedLearning(0.5, sensitivity="element", epochs=1).fit(X, y).privacy_.per_parameter_holds is True


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_dp_sgd_adds_the_noise_it_accounts_for(hidden, monkeypatch):
    clip, worst = 0.3, 0.0
    for seed in range(6):
        learner = DPSGD(0.8, 1e-6, clip=clip, epochs=3, hidden=hidden)
        (X, y), (X2, y2) = neighbours(seed)
        one, scales, steps = exact_releases(learner, X, y, monkeypatch)
        other, _, _ = exact_releases(learner, X2, y2, monkeypatch)
        (claimed,) = steps
        distance = one.shape[1] * SAMPLE_DISTANCE
        assert claimed == GaussianSteps(gaussian_multiplier(0.8, 1e-6, 3, 1.0, distance), 3, 1.0, distance)
        grid = dp_sgd.norm_grid(clip, one.shape[1], 2, len(X))
        deviation = scales[0] * grid.step
        distances = np.linalg.norm(one - other, axis=1)
        assert (distances <= 2 * clip * (1 + 1e-3)).all()
        # the distances really seen, at the noise really added, never cost more than the ε asked for
        spent = pld_epsilon(tuple(GaussianSteps(2 * deviation / d) for d in distances), 1e-6)
        assert spent <= 0.8 * (1 + 1e-9)
        worst = max(worst, spent)
    assert worst > 0.5 * 0.8


def test_poisson_sampling_is_drawn_and_accounted(monkeypatch):
    sizes = []
    original = NoiseSource.poisson_subset

    def watched(self, count, probability):
        chosen = original(self, count, probability)
        sizes.append((len(chosen), probability))
        return chosen

    monkeypatch.setattr(NoiseSource, "poisson_subset", watched)
    rng = np.random.default_rng(0)
    X, y = rng.random((1000, COLUMNS)), rng.integers(0, 2, 1000)
    privacy = DPSGD(2.0, batch_size=50, epochs=3).fit(X, y).privacy_
    assert len(sizes) == 60 == privacy.steps
    assert {p for _, p in sizes} == {0.05}
    assert np.std([n for n, _ in sizes]) > 2
    assert privacy.epsilon <= 2.0
    distance = privacy.parameters * SAMPLE_DISTANCE
    assert privacy.sampler_distance == 60 * distance
    expected = gaussian_multiplier(2.0, 1e-5, 60, 0.05, distance)
    assert privacy.epsilon == pytest.approx(pld_epsilon((GaussianSteps(expected, 60, 0.05),), 1e-5))


def test_learning_first_covers_a_parameters_whole_range():
    source = Silent()
    learner = LearningFirst(0.5, weight_range=(-0.3, 0.3), learning_rate=50.0, hidden=())
    learner.schema_ = Schema(tuple(Numeric(f"x{j}", 0, 1) for j in range(COLUMNS)))
    thetas = []
    for labels in (np.arange(21) % 2, 1 - np.arange(21) % 2):
        network, steps = learner._learn(None, np.ones((21, COLUMNS)), labels, np.random.default_rng(0), source)
        thetas.append(network.theta)
    (claimed,) = steps
    assert set(source.scales) == {claimed.scale}
    assert claimed.count == network.theta.size
    units = np.abs(thetas[0] - thetas[1]) / (0.6 / claimed.sensitivity)
    assert (units <= claimed.sensitivity * (1 + 1e-9)).all()
    assert claimed.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=list(LEARNERS))
def test_a_whole_training_asks_for_the_noise_that_it_claims(learner):
    check_noise_asked_for(learner)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=list(LEARNERS))
def test_no_hostile_row_moves_a_step_further_than_its_noise_covers(learner):
    check_reach(learner)


def test_anonymizing_first_spends_its_epsilon_once():
    for marginals, parts in (("label", 1), ("tree", 3)):
        budget = AnonymizingFirst(0.9, marginals=marginals, schema=SMALL)._settled()._budget(45_222)
        assert naive_epsilon(budget.steps()) == pytest.approx(0.9)
        assert len(budget.steps()) == parts
        assert budget.columns == 3
        assert budget.edges == (0 if marginals == "label" else 2)


def test_rounding_slack_covers_the_sums():
    """Sums of clipped records on the grid are as near to exact sums as the slack says, for both norms."""
    rng = np.random.default_rng(0)
    network = Network((9, 6, 2), rng.standard_normal(parameter_count((9, 6, 2))))
    X, y = rng.random((700, 9)), rng.integers(0, 2, 700)
    for norm in (1, 2):
        grid = norm_grid(0.5, network.theta.size, norm, 700)
        total = network.gradient(X, y, np.arange(700), norm, 0.5)
        apart = to_grid(total, grid.step) - total / grid.step
        assert np.linalg.norm(apart, norm) <= grid.slack / 2
        assert grid.slack < 0.005 * grid.units
    with pytest.raises(InputError, match="too many"):
        norm_grid(1.0, 10, 2, 10**9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_the_grid_refuses_what_is_not_finite(value):
    with pytest.raises(InputError, match="not finite"):
        to_grid(np.array([0.0, value]), 2.0**-16)


def test_sums_do_not_depend_on_the_order_by_more_than_the_slack():
    """Poisson sampling puts the same records elsewhere; what that changes is in the record's bound."""
    rng = np.random.default_rng(0)
    network = Network((9, 6, 2), rng.standard_normal(parameter_count((9, 6, 2))))
    X, y = rng.random((900, 9)), rng.integers(0, 2, 900)
    for norm in (1, 2):
        mechanism = ClippedSum(norm, 0.5, norm_grid(0.5, network.theta.size, norm, 900), 1.0)
        others = mechanism.exact(network, X, y, np.arange(1, 900))
        for place in (0, 100, 256, 899):
            among = np.insert(np.arange(1, 900), min(place, 899), 0)
            moved = np.linalg.norm(mechanism.exact(network, X, y, among) - others, norm)
            assert moved <= mechanism.grid.units + mechanism.grid.slack
