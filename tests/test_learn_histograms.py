"""Histograms: exact sensitivities by trying every neighbour, and synthetic tables that follow their counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from learn_checks import check_forest

from omokage.learn.histograms import (
    HISTOGRAM_SENSITIVITY,
    SCORE_SENSITIVITY,
    Edge,
    Histograms,
    choose_forest,
    dependence,
    draw_columns,
    draw_given_label,
    draw_labels,
    pair_counts,
    pick_score,
    release_counts,
    to_simplex,
)
from omokage.learn.noise import NoiseSource


def tables(rows, shape):
    """Every table of two columns, as a list of cells."""
    return itertools.combinations_with_replacement(list(np.ndindex(*shape)), rows)


def counts_of(table, shape):
    counts = np.zeros(shape, np.int64)
    for cell in table:
        counts[cell] += 1
    return counts


def test_histogram_and_score_sensitivities_by_exhaustion():
    worst_counts, worst_score = 0, 0.0
    for shape, rows in (((2, 2), 9), ((2, 3), 5), ((3, 3), 4)):
        for table in tables(rows, shape):
            counts = counts_of(table, shape)
            score = dependence(counts)
            for old in set(table):
                for new in np.ndindex(*shape):
                    moved = counts.copy()
                    moved[old] -= 1
                    moved[new] += 1
                    worst_counts = max(worst_counts, np.abs(moved - counts).sum())
                    worst_score = max(worst_score, abs(dependence(moved) - score))
    assert worst_counts == HISTOGRAM_SENSITIVITY
    assert 1.0 < worst_score <= SCORE_SENSITIVITY


def test_score_sensitivity_on_larger_random_tables():
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(rng.integers(2, 6, 2))
        counts = rng.multinomial(rng.integers(2, 60), rng.dirichlet(np.full(shape[0] * shape[1], 0.3))).reshape(shape)
        occupied = np.argwhere(counts > 0)
        for old in occupied:
            for new in np.ndindex(*shape):
                moved = counts.copy()
                moved[tuple(old)] -= 1
                moved[new] += 1
                assert abs(dependence(moved) - dependence(counts)) <= SCORE_SENSITIVITY


def test_noisy_counts_become_a_histogram_again():
    counts = np.array([[50, 0], [3, 47]])
    noisy = release_counts(counts, 0.5, NoiseSource())
    assert noisy.min() >= 0
    assert noisy.sum() == pytest.approx(100)


def test_simplex_leaves_possible_counts_alone():
    np.testing.assert_allclose(to_simplex(np.array([[3.0, 1.0], [0.0, 6.0]]), 10.0), [[3, 1], [0, 6]], atol=1e-12)


@pytest.mark.parametrize("seed", [None, 3])
def test_forest_finds_the_dependent_columns(seed):
    """The right pair's score leads by more than 2,000 rows, 300 times the scale of the noise: it never loses."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 4000)
    codes = np.stack([first, rng.integers(0, 3, 4000), (first + (rng.random(4000) < 0.1)) % 3], axis=1)
    source = NoiseSource(seed)
    assert choose_forest(codes, (3, 3, 3), 1, lambda scores: pick_score(scores, 5.0, source)) == [(0, 2)]


def test_forest_has_no_cycle_and_can_be_drawn_in_order():
    check_forest(choose_forest)


def known():
    """A thousand rows of two related columns and a label that leans on both."""
    joint = np.array([[320.0, 80.0], [80.0, 520.0]])
    positive = 1 / (1 + np.exp(-np.array([[-2.0, 0.0], [0.0, 2.0]])))
    first = np.stack([(joint * (1 - positive)).sum(1), (joint * positive).sum(1)], axis=1)
    second = np.stack([(joint * (1 - positive)).sum(0), (joint * positive).sum(0)], axis=1)
    return Histograms((first, second), (Edge(0, 1, joint),), 1.0)


def test_columns_follow_their_edges():
    codes = draw_columns(known(), 40_000, np.random.default_rng(0))
    found = pair_counts(codes[:, 0], codes[:, 1], (2, 2)) / 40
    np.testing.assert_allclose(found, known().edges[0].counts, atol=12)


def test_labels_have_the_released_shares():
    rng = np.random.default_rng(0)
    codes = draw_columns(known(), 40_000, rng)
    labels = draw_labels(known(), codes, rng)
    for column, counts in enumerate(known().by_label):
        found = pair_counts(codes[:, column], labels, (2, 2))
        np.testing.assert_allclose(found / found.sum(1, keepdims=True), counts / counts.sum(1, keepdims=True), atol=0.03)


def test_columns_given_the_label_follow_their_histograms():
    codes, labels = draw_given_label(known(), 40_000, np.random.default_rng(0))
    found = pair_counts(codes[:, 0], labels, (2, 2)) / 40
    np.testing.assert_allclose(found, known().by_label[0], atol=25)
