"""Accounting: against closed forms, against dp-accounting, and in the right order of size."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_checks import check_delta_pays_for_the_sampler
from scipy.special import ndtr, ndtri

from omokage.errors import InputError, MissingExtra
from omokage.learn.accounting import delta_left, dp_accounting, gaussian_delta, gaussian_epsilon, gaussian_multiplier, pld_epsilon
from omokage.learn.privacy import Privacy
from omokage.learn.renyi import rdp_epsilon
from omokage.learn.steps import GaussianSteps, LaplaceSteps, PureSteps, naive_delta, naive_epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_one_laplace_step_matches_its_closed_form(epsilon):
    # δ(ε') = 1 − exp((ε' − ε)/2) for the Laplace mechanism
    delta = 0.01
    exact = epsilon + 2 * math.log1p(-delta)
    found = pld_epsilon((LaplaceSteps(2**17, 2**17 / epsilon),), delta)
    assert exact - 1e-9 <= found <= exact + 1e-3 * epsilon + 1e-4


def test_discrete_law_is_accounted_as_discrete():
    # counts: sensitivity 2, scale 2 → ε = 1; δ(ε') by summing the two laws
    q, k = math.exp(-0.5), np.arange(-400, 401)
    p = (1 - q) / (1 + q) * q ** np.abs(k)
    moved = (1 - q) / (1 + q) * q ** np.abs(k - 2)
    found = pld_epsilon((LaplaceSteps(2, 2.0),), 0.05)
    achieved = np.maximum(p - math.exp(found) * moved, 0).sum()
    assert achieved <= 0.05 + 1e-9
    assert np.maximum(p - math.exp(found - 0.01) * moved, 0).sum() > 0.05 - 1e-3


@pytest.mark.parametrize(("multiplier", "count"), [(20.0, 25), (3.0, 1), (150.0, 400)])
def test_full_batches_are_one_gaussian_mechanism(multiplier, count):
    theirs = pld.from_gaussian_mechanism(multiplier, neighboring_relation=NeighboringRelation.REPLACE_ONE)
    expected = theirs.self_compose(count).get_epsilon_for_delta(1e-5)
    assert gaussian_epsilon([GaussianSteps(multiplier, count)], 1e-5) == pytest.approx(expected, rel=2e-3)


def test_replace_one_is_add_or_remove_at_half_the_noise():
    ours = pld_epsilon((GaussianSteps(10.0, 30),), 1e-5)
    theirs = pld.from_gaussian_mechanism(5.0).self_compose(30).get_epsilon_for_delta(1e-5)
    assert ours == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize("sampling", [0.01, 0.2, 0.7])
def test_sampled_gaussian_matches_the_dominating_pair(sampling):
    """δ(ε) = sup over a of (1−q)(1−e^ε)a + q(Φ(Φ⁻¹(a)+1/σ) − e^ε Φ(Φ⁻¹(a)−1/σ)), as derived in the module."""
    sigma, epsilon = 1.3, 0.3
    a = ndtr(np.linspace(-12, 12, 200_001))
    with np.errstate(invalid="ignore"):
        z = ndtri(a)
    power = ndtr(z + 1 / sigma) - math.exp(epsilon) * ndtr(z - 1 / sigma)
    expected = np.nanmax((1 - sampling) * (1 - math.exp(epsilon)) * a + sampling * power)
    if expected <= 0:
        pytest.skip("nothing to compare")
    found = pld_epsilon((GaussianSteps(sigma, 1, sampling),), float(expected))
    assert found == pytest.approx(epsilon, rel=5e-3)


def test_no_replaced_record_beats_the_dominating_pair():
    """Random directions in the plane never give more than opposite ends of a line."""
    rng = np.random.default_rng(0)
    q, sigma, epsilon = 0.3, 1.0, 0.5
    grid = np.linspace(-7, 7, 281)
    x, y = np.meshgrid(grid, grid)
    cell = (grid[1] - grid[0]) ** 2

    def law(point):
        density = np.exp(-((x - point[0]) ** 2 + (y - point[1]) ** 2) / 2) / (2 * np.pi)
        centre = np.exp(-(x**2 + y**2) / 2) / (2 * np.pi)
        return (1 - q) * centre + q * density

    def divergence(one, other):
        return np.maximum(law(one) - math.exp(epsilon) * law(other), 0).sum() * cell

    worst = divergence((1.0, 0.0), (-1.0, 0.0))
    for _ in range(40):
        points = rng.standard_normal((2, 2))
        points *= rng.random((2, 1)) ** 0.3 / np.linalg.norm(points, axis=1, keepdims=True)
        assert divergence(*points) <= worst + 1e-6
    assert pld_epsilon((GaussianSteps(sigma, 1, q),), float(worst)) == pytest.approx(epsilon, abs=5e-3)


def test_l1_vectors_are_dominated_by_one_coordinate():
    """Two coordinates that move by 1/2 each leak no more than one that moves by 1, at every ε."""
    k = np.arange(-60, 61)
    scale, units = 4.0, 4
    base = np.exp(-np.abs(k) / scale)
    base /= base.sum()
    moved = {d: np.exp(-np.abs(k - d) / scale) for d in (units // 2, units)}
    moved = {d: m / m.sum() for d, m in moved.items()}
    for epsilon in np.linspace(0.0, 1.0, 11):
        one = np.maximum(base - math.exp(epsilon) * moved[units], 0).sum()
        half = moved[units // 2]
        two = np.maximum(np.outer(base, base) - math.exp(epsilon) * np.outer(half, half), 0).sum()
        assert two <= one + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 2.0), st.integers(1, 200), st.sampled_from([1e-3, 1e-6]))
def test_bounds_are_in_order(epsilon, count, delta):
    steps = (LaplaceSteps(2**17, 2**17 / epsilon, count), PureSteps(0.1, 3))
    tight = pld_epsilon(steps, delta)
    assert 0 <= tight <= rdp_epsilon(steps, delta) * (1 + 1e-6) + 1e-3
    assert tight <= naive_epsilon(steps)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.05, 10.0), st.integers(1, 300))
def test_multiplier_spends_exactly_what_was_asked(epsilon, count):
    steps = (GaussianSteps(gaussian_multiplier(epsilon, 1e-5, count), count),)
    assert pld_epsilon(steps, 1e-5) == pytest.approx(epsilon, rel=1e-6)
    assert rdp_epsilon(steps, 1e-5) >= epsilon * (1 - 1e-9)


def test_sampled_multiplier_stays_within_budget():
    multiplier = gaussian_multiplier(1.0, 1e-5, 400, 0.05)
    spent = pld_epsilon((GaussianSteps(multiplier, 400, 0.05),), 1e-5)
    assert 0.99 < spent <= 1.0
    assert 1.0 < rdp_epsilon([GaussianSteps(multiplier, 400, 0.05)], 1e-5) < 1.3


def test_large_models_are_accounted_for():
    spent = pld_epsilon((LaplaceSteps(2**16, 2**16 / 0.2, 5 * 6626),), 1e-5)
    assert spent < naive_epsilon([LaplaceSteps(2**16, 2**16 / 0.2, 5 * 6626)])
    assert spent == pytest.approx(rdp_epsilon([LaplaceSteps(2**16, 2**16 / 0.2, 5 * 6626)], 1e-5), rel=0.05)


def test_delta_of_a_gaussian_never_rises():
    values = [gaussian_delta(e, 0.7) for e in np.linspace(0, 8, 50)]
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("delta", [1.0, -1e-5, float("nan"), "0", True, None, 10**400])
def test_bad_delta(delta):
    with pytest.raises(InputError, match="delta"):
        pld_epsilon((PureSteps(1.0),), delta)


def test_delta_pays_for_the_sampler():
    check_delta_pays_for_the_sampler()


def test_the_sampler_costs_what_the_proof_says():
    """Two laws moved by a distance d each: the worst event gains δ' + (1 + e^ε) d, and no more."""
    rng = np.random.default_rng(0)
    epsilon, d = 0.8, 0.02
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(5), 2)
        ideal = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        drawn = []
        for law in (p, q):
            moved = rng.standard_normal(5)
            moved -= moved.mean()
            moved *= d / np.maximum(moved, 0).sum()
            drawn.append(law + moved)
        assert np.maximum(drawn[0] - math.exp(epsilon) * drawn[1], 0).sum() <= ideal + (1 + math.exp(epsilon)) * d + 1e-12


def test_a_delta_below_the_samplers_distance_is_refused():
    """The attack: δ = 1e-12 was printed beside a distance of 1e-11."""
    assert delta_left(1e-12, 1.0, 1e-11) == 0.0
    with pytest.raises(InputError, match="too small"):
        gaussian_multiplier(1.0, 1e-12, 100, 1.0, 1e-13)
    with pytest.raises(InputError, match="too small"):
        pld_epsilon((GaussianSteps(20.0, 100, 1.0, 1e-13),), 1e-12)
    with pytest.raises(InputError, match="too small"):
        pld_epsilon((LaplaceSteps(2**17, 2**17, 100, 1e-13),), 1e-12)


def test_pure_steps_add_up_with_the_samplers_delta():
    steps = (LaplaceSteps(2**17, 2**17 / 0.02, 50, 218 * 2.0**-100),)
    assert naive_epsilon(steps) == pytest.approx(1.0)
    assert naive_delta(steps) == pytest.approx(50 * 218 * (1 + math.exp(0.02)) * 2.0**-100)
    assert pld_epsilon(steps, 0.0) == naive_epsilon(steps)
    # where e^ε times the distance is more than δ, the sum still holds
    many = (LaplaceSteps(2**17, 2**17 / 1.0, 100, 2.0**-100),)
    assert pld_epsilon(many, 1e-5) == naive_epsilon(many)


def statement(**changes):
    values = {
        "approach": "anonymized-learning", "private": True, "epsilon": 42.0, "delta": 1e-5, "epsilon_naive": math.inf,
        "delta_naive": 0.0,
        "epsilon_rdp": 50.0, "epsilon_per_parameter": 1.0, "per_parameter_holds": False, "parameters": 10,
        "records": 100, "steps": 5, "public": ("epochs=5",), "tuned": "nothing", "noise": "x", "sampler_distance": 0.0,
    }  # fmt: skip
    return Privacy(**{**values, **changes})


def test_both_figures_are_printed_and_named():
    paper, whole, _ = statement().lines()
    assert "each parameter on its own" in paper
    assert "not a guarantee for the model" in paper
    assert "ε = 1" in paper
    assert "whole model, replace-one: ε = 42 at δ = 1e-05" in whole
    assert "∞" in whole


def test_zero_is_said_only_where_it_is_meant():
    pure = {"epsilon_naive": 1.0, "delta_naive": 4e-26}
    assert statement(**pure).lines()[1].endswith("ε = 1 at δ < 1e-25")
    assert statement(**pure, delta=0.0).lines()[1] == "whole model, replace-one: ε = 1 at δ < 1e-25"
    assert statement(epsilon_naive=1.0).lines()[1].endswith("ε = 1 at δ = 0")


def test_a_large_epsilon_is_explained():
    assert "protects hardly anybody" in statement(epsilon=10.5).lines()[2]
    assert "by a factor of 10^18" in statement().lines()[2]
    assert len(statement(epsilon=10.0).lines()) == 2


def test_a_leak_is_said_before_any_number():
    paper, whole = statement(private=False, caveats=("the bounds were taken from the data",)).lines()
    assert whole.startswith("whole model: NOT PRIVATE")
    assert "42" not in whole
    assert "ε" not in paper


def test_statement_survives_json():
    privacy = statement()
    assert Privacy.from_json(json.loads(json.dumps(privacy.to_json()))) == privacy
    with pytest.raises(InputError, match="fields"):
        Privacy.from_json({"approach": "dp-sgd"})
    wrong = {
        "epsilon": ("1", -1.0, None), "delta": (math.nan,), "records": (0,), "public": ("x",), "private": (1,), "steps": (2.5,),
        "caveats": ([1],), "parameters": (10**30,),
    }  # fmt: skip
    for field, value in ((field, value) for field, values in wrong.items() for value in values):
        with pytest.raises(InputError, match="privacy statement"):
            Privacy.from_json({**privacy.to_json(), field: value})


def test_missing_accountant_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.common", None)
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        dp_accounting("pld.common")
