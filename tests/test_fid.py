"""FID and KID: against the formulas with a rooted matrix, on both routes, and what weights and floors mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from omokage.errors import InputError
from omokage.evaluate.faces import fid as module
from omokage.evaluate.faces.fid import fid, fid_floor, kid


def cloud(n, d, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + shift


def rooted(a, b):
    """The textbook: sample moments and a matrix square root."""
    first, second = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    mean = ((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum()
    return mean, np.trace(first + second - 2 * np.real(sqrtm(first @ second)))


@given(st.integers(8, 40), st.integers(8, 40), st.integers(2, 7), st.integers(0, 99))
def test_agrees_with_the_rooted_matrix(n, m, d, seed):
    a, b = cloud(n, d, seed), cloud(m, d, seed + 1, shift=0.5)
    mean, covariance = rooted(a, b)
    found = fid(a, b)
    assert found.mean_part == pytest.approx(mean)
    assert found.covariance_part == pytest.approx(covariance, rel=1e-6, abs=1e-6)
    assert found.value == found.mean_part + found.covariance_part
    assert (found.n_a, found.n_b, found.dimensions) == (n, m, d)


@pytest.mark.parametrize(("n", "m"), [(5, 40), (40, 5), (5, 6), (40, 50)])
def test_few_and_many_pictures_give_the_same(n, m):
    """Fewer rows than features, more, and the same as with columns of zeros, which make many into few."""
    a, b = cloud(n, 12, 0), cloud(m, 12, 1, shift=1.0)
    wide = [np.hstack([x, np.zeros((len(x), 100))]) for x in (a, b)]
    assert fid(a, b).value == pytest.approx(fid(*wide).value)
    assert fid(a, b).value == pytest.approx(fid(b, a).value)
    root = sqrtm(np.cov(a, rowvar=False) + 1e-14 * np.eye(12)).real  # (Σ_A^½ Σ_B Σ_A^½)^½ has the same trace, and is symmetric
    middle = np.linalg.eigvalsh(root @ np.cov(b, rowvar=False) @ root)
    expected = np.cov(a, rowvar=False).trace() + np.cov(b, rowvar=False).trace() - 2 * np.sqrt(np.clip(middle, 0, None)).sum()
    assert fid(a, b).covariance_part == pytest.approx(expected, rel=1e-4)


def test_blocks_change_nothing(monkeypatch):
    a, b = cloud(300, 6, 0), cloud(100, 6, 1)
    whole = fid(a, b, np.arange(1, 301))
    monkeypatch.setattr(module, "_BLOCK", 7)
    assert fid(a, b, np.arange(1, 301)).value == pytest.approx(whole.value)


def test_gaussians_by_hand():
    """One feature: (μ_A − μ_B)² + (σ_A − σ_B)²."""
    a, b = np.array([[0.0], [2.0]]), np.array([[7.0], [15.0]])
    found = fid(a, b)
    assert found.mean_part == pytest.approx(100)
    assert found.covariance_part == pytest.approx((np.sqrt(2) - np.sqrt(32)) ** 2)


def test_weights_are_repetitions():
    a, b = cloud(30, 8, 0), cloud(5, 8, 1)
    times = np.array([1, 4, 2, 7, 16])
    found, repeated = fid(a, b, None, times), fid(a, np.repeat(b, times, axis=0))
    assert found.value == pytest.approx(repeated.value)
    assert found.mean_part == pytest.approx(repeated.mean_part)
    assert (found.n_b, found.distinct_b, repeated.distinct_b) == (30, 5, 30)


@pytest.mark.parametrize("n", [6, 60])
def test_equal_sets_have_no_distance(n):
    a = cloud(n, 20, 0, shift=3.0).astype(np.float32)
    assert fid(a, a.copy()).value == pytest.approx(0, abs=1e-9)
    assert fid(a, a[::-1]).value >= 0


def test_the_note_says_when_pictures_are_few():
    assert "full rank" in fid(cloud(5, 8, 0), cloud(30, 8, 1)).note
    assert "comparable" in fid(cloud(50, 8, 0), cloud(30, 8, 1)).note
    assert fid(cloud(10_000, 3, 0), cloud(10_000, 3, 1)).note is None


def test_the_floor_falls_to_zero_with_all_faces():
    features = cloud(60, 10, 0)
    floors = [fid_floor(features, distinct, seed=1, repeats=4) for distinct in (1, 5, 20, 60)]
    assert [f.value for f in floors] == sorted((f.value for f in floors), reverse=True)
    assert floors[-1].value == pytest.approx(0, abs=1e-9)
    assert floors[1].standard_deviation > 0
    assert floors[1] == fid_floor(features, 5, seed=1, repeats=4)
    variance = features.var(axis=0, ddof=1).sum()  # of one face: all the variance, and its distance from the mean
    assert floors[0].value >= variance


def test_kid_is_unbiased_and_finds_a_difference():
    rng = np.random.default_rng(0)
    values = [kid(rng.standard_normal((60, 4)), rng.standard_normal((60, 4)), subsets=20, size=25, seed=i) for i in range(40)]
    mean = np.mean([v.value for v in values])
    spread = np.std([v.value for v in values])
    assert abs(mean) < 3 * spread / np.sqrt(40)
    assert any(v.value < 0 for v in values)
    assert np.mean([v.standard_error for v in values]) > 0.7 * spread  # says no less than the truth
    other = kid(rng.standard_normal((60, 4)), rng.standard_normal((60, 4)) + 1, subsets=20, size=25)
    assert other.value > 3 * other.standard_error
    assert kid(np.eye(9), np.eye(9) + 1, size=500).size == 4


def test_bad_input_is_refused():
    a = cloud(6, 3, 0)
    nan = a.copy()
    nan[0, 0] = np.nan
    for bad in (a[0], a[:0], nan, a.astype(str)):
        with pytest.raises(InputError, match="features are"):
            fid(a, bad)
        with pytest.raises(InputError, match="features are"):
            kid(a, bad)
    for weights in (np.ones(5), np.zeros(6), -np.ones(6), np.full(6, np.inf), np.full(6, 0.1)):
        with pytest.raises(InputError, match="weights"):
            fid(a, a, None, weights)
    with pytest.raises(InputError, match="weights"):
        fid(a, a[:1])
    for measure in (fid, kid):
        with pytest.raises(InputError, match="same features"):
            measure(a, cloud(6, 4, 0))
    with pytest.raises(InputError, match="KID needs"):
        kid(a[:3], a)
    for distinct in (0, 7):
        with pytest.raises(InputError, match="floor"):
            fid_floor(a, distinct)
