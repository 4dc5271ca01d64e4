"""The network: against torch, against slow per-record gradients, and inside its intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_checks import check_alone, check_box, check_overflow, check_tiny_clip, plain_kernels

from omokage.errors import InputError
from omokage.learn import network_kernels as kernels
from omokage.learn.network import Network, gradient_intervals, initial_network, parameter_count, train, weight_mask

SIZES = [(6, 2), (5, 4, 3), (7, 5, 4, 3, 2)]


def problem(sizes, rows, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    network = Network(sizes, rng.standard_normal(parameter_count(sizes)) * spread)
    return network, rng.random((rows, sizes[0])), rng.integers(0, sizes[-1], rows)


def torch_gradient(network, X, y):
    torch = pytest.importorskip("torch")
    leaves = [torch.tensor(a.copy(), requires_grad=True) for layer in network.layers for a in layer]
    h = torch.tensor(X)
    for at in range(0, len(leaves), 2):
        h = h @ leaves[at] + leaves[at + 1]
        h = torch.relu(h) if at < len(leaves) - 2 else h
    torch.nn.functional.cross_entropy(h, torch.tensor(y), reduction="sum").backward()
    probabilities = torch.softmax(h, 1).detach().numpy()
    return np.concatenate([leaf.grad.numpy().ravel() for leaf in leaves]), probabilities


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("rows", [1, 255, 600])
def test_gradient_and_probabilities_agree_with_torch(sizes, rows):
    network, X, y = problem(sizes, rows)
    expected, probabilities = torch_gradient(network, X, y)
    np.testing.assert_allclose(network.gradient(X, y, np.arange(rows), 0, 1.0), expected, atol=1e-9)
    np.testing.assert_allclose(network.probabilities(X), probabilities, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_closed_form_norms_are_those_of_the_gradients(sizes):
    network, X, y = problem(sizes, 40)
    each = np.array([network.gradient(X, y, np.array([r]), 0, 1.0) for r in range(40)])
    for order in (1, 2):
        norms = kernels.record_norms(network.theta, network.shape, X, y, order)
        np.testing.assert_allclose(norms, np.linalg.norm(each, order, axis=1), rtol=1e-10)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("order", [1, 2])
def test_every_record_is_clipped_before_the_sum(sizes, order):
    network, X, y = problem(sizes, 300)
    clip = 0.7
    each = np.array([network.gradient(X, y, np.array([r]), 0, 1.0) for r in range(300)])
    factors = np.minimum(1.0, clip / np.linalg.norm(each, order, axis=1))
    np.testing.assert_allclose(
        network.gradient(X, y, np.arange(300), order, clip), (each * factors[:, None]).sum(0), rtol=1e-6, atol=1e-8
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(SIZES), st.sampled_from([1, 2]), st.floats(1e-3, 10.0))
def test_no_record_exceeds_its_clip(seed, sizes, order, clip):
    network, X, y = problem(sizes, 1, seed, spread=3.0)
    gradient = network.gradient(X, y, np.array([0]), order, clip)
    assert np.linalg.norm(gradient, order) <= clip


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(SIZES), st.floats(0.1, 4.0))
def test_intervals_hold_every_gradient(seed, sizes, spread):
    network, X, y = problem(sizes, 20, seed, spread)
    low, high = gradient_intervals(network)
    assert (low <= 0).all()
    assert (high >= 0).all()
    for row in range(20):
        gradient = network.gradient(X, y, np.array([row]), 0, 1.0)
        assert (gradient >= low - 1e-9).all()
        assert (gradient <= high + 1e-9).all()


def test_equation_21_as_printed_fails():
    """With a negative bias the printed largest output of a ReLU is negative, and so would be the 'largest' gradient."""
    network = Network((1, 1, 2), np.array([0.5, -1.0, 1.0, -1.0, 0.0, 0.0]))
    weights, bias = network.layers[0]
    printed = bias + np.maximum(weights, 0.0).sum(axis=0)
    assert printed[0] < 0  # an interval turned inside out
    low, high = gradient_intervals(network)
    assert (low <= high).all()


def test_quantized_sum_is_the_sum_of_rounded_clipped_gradients():
    network, X, y = problem((7, 5, 4, 3, 2), 30)
    low, high = np.full(network.theta.size, -0.3), np.full(network.theta.size, 0.3)
    step = (high - low) / 1000
    each = np.array([network.gradient(X, y, np.array([r]), 0, 1.0) for r in range(30)])
    expected = np.floor(np.clip(each, low, high) / step + 0.5).astype(int).sum(0)
    found = kernels.quantized_sum(network.theta, network.shape, X, y, np.arange(30), low, high, step)
    assert np.abs(found - expected).max() <= 1  # a tie may fall to either side in the oracle's arithmetic
    assert (found != expected).mean() < 0.05


def test_a_record_that_overflows_adds_no_more_than_its_clip():
    check_overflow(kernels)
    check_tiny_clip(kernels)


def test_compiled_and_plain_kernels_agree():
    """The mutation tests run the kernels as plain Python; they are the same functions."""
    plain = plain_kernels()
    check_overflow(plain)
    check_tiny_clip(plain)
    network, X, y = problem((5, 4, 3), 7)
    for order in (0, 1, 2):
        arguments = (network.theta, network.shape, X, y, np.arange(7), order, 0.3)
        np.testing.assert_allclose(kernels.gradient_sum(*arguments), plain.gradient_sum(*arguments), rtol=1e-12, atol=1e-15)


def test_a_records_bits_do_not_depend_on_its_place_in_a_batch():
    """The attack: 95 of 129 placements differed when the products came from BLAS."""
    check_alone(kernels)


def test_a_nan_record_leaves_the_others_alone():
    """One record whose output overflows, among others: the sum is that of the others."""
    sizes = (3, 2, 2)
    theta = np.concatenate([np.array([1e200, 1e200, 0.1, 0.2, -0.3, 0.1]), np.zeros(2), np.full(4, 1e200), np.zeros(2)])
    X = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    y = np.array([0, 1, 0])
    network = Network(sizes, theta)
    assert np.isinf(kernels.record_norms(theta, network.shape, X, y, 2)).tolist() == [True, False, False]
    for order in (1, 2):
        whole = network.gradient(X, y, np.arange(3), order, 0.5)
        np.testing.assert_array_equal(whole, network.gradient(X, y, np.arange(1, 3), order, 0.5))


def test_an_empty_sample_adds_up_to_zero():
    network, X, y = problem((5, 4, 3), 3)
    assert not network.gradient(X, y, np.arange(0), 2, 1.0).any()


def test_training_is_equations_5_and_6():
    network, X, y = problem((5, 4, 3), 90)
    rng = np.random.default_rng(3)
    trained = train(network, X, y, rng, epochs=2, batch_size=40, learning_rate=0.3, decay=0.01)
    theta, rng = network.theta.copy(), np.random.default_rng(3)
    for _ in range(2):
        order = rng.permutation(90)
        for start in range(0, 90, 40):
            rows = order[start : start + 40]
            gradient = Network(network.sizes, theta).gradient(X, y, rows, 0, 1.0)
            theta = theta - 0.3 * (gradient + 0.01 * theta * weight_mask(network.sizes)) / len(rows)
    np.testing.assert_allclose(trained.theta, theta, rtol=1e-9, atol=1e-12)


def test_parameters_stay_in_their_box():
    check_box()


def test_divergence_is_an_error_and_not_a_majority_vote():
    network, X, y = problem((5, 4, 3), 60)
    with pytest.raises(InputError, match="diverged"):
        train(network, X, y, np.random.default_rng(0), epochs=30, batch_size=5, learning_rate=1e150, decay=1e150)
    with pytest.raises(InputError, match="NaN"):
        Network((5, 2), np.full(12, np.nan)).probabilities(X)


def test_start_is_zero_without_hidden_layers_and_not_with():
    assert not initial_network((5, 2), np.random.default_rng(0)).theta.any()
    assert initial_network((5, 4, 2), np.random.default_rng(0)).theta.any()
