"""Noise: the right law, from secret bits, without a trace of the value in the lowest digits."""

from __future__ import annotations

import decimal
import sys

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from omokage.errors import InputError, MissingExtra
from omokage.learn import noise
from omokage.learn.noise import NoiseSource, choose, opendp, release_integers
from omokage.learn.noise_kernels import _coins

ONCE_IN_A_BILLION = 1e-9  # how often a test of secret noise may fail though all is well


def test_coins_have_their_bias_to_the_last_digit():
    """A bias of exactly one half but for its last digit: only random digits that agree with all others see it."""
    words = np.zeros(200, np.uint64)
    words[0] = np.uint64(2**64 - 1)  # first digit one, then zeros for all lanes: exactly one half so far
    cursor = np.zeros(1, np.int64)
    assert _coins(words, cursor, np.uint64(2**63), np.uint64(0)) == 0  # one half is not below one half
    cursor[0] = 0
    assert _coins(words, cursor, np.uint64(2**63), np.uint64(1)) == 2**64 - 1  # but below a little more
    assert cursor[0] == 128


def test_refilling_neither_loses_nor_repeats_words():
    whole, pieces = NoiseSource(seed=11), NoiseSource(seed=11)
    fetched = []
    original = pieces.words
    pieces.words = lambda count: fetched.append(original(count)) or fetched[-1]
    drawn = np.concatenate([pieces.laplace(64, 1e9) for _ in range(200)])
    assert len(fetched) > 1
    assert (whole.laplace(64 * 200, 1e9) == drawn).all()  # at this scale no minus zero is dropped


def probabilities(law, scale, reach):
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / scale) if law == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    return k, weights / weights.sum()


def follows(drawn, law, scale):
    """A chi-square test on the common values, all others in one."""
    k, p = probabilities(law, scale, 2000)
    common = p * len(drawn) > 20
    counted = np.array([(drawn == value).sum() for value in k[common]], float)
    expected = p[common] * len(drawn)
    observed = np.append(counted, len(drawn) - counted.sum())
    return chisquare(observed, np.append(expected, len(drawn) - expected.sum())).pvalue > 1e-4


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7, 20.0])
def test_samples_follow_their_law(law, scale):
    assert follows(getattr(NoiseSource(seed=7), law)(200_000, scale), law, scale)


@pytest.mark.parametrize("sigma", [0.4, 3.7, 65_536.0 * 3])
def test_doubtful_gaussians_are_decided_exactly(sigma, monkeypatch):
    """With every candidate in doubt the exact decision makes them all: the law is the same, and so are most samples."""
    fast = NoiseSource(seed=7).gaussian(64, sigma)
    asked = []
    honest = NoiseSource._accepts
    monkeypatch.setattr(NoiseSource, "_accepts", lambda self, *given: asked.append(given) or honest(self, *given))
    assert (NoiseSource(seed=7).gaussian(64, sigma) == fast).all()
    assert not asked  # a double decides all but one in 2⁴⁵
    monkeypatch.setattr(noise, "_MARGIN", 1e12)
    slow = NoiseSource(seed=8).gaussian(4000, sigma)
    assert len(asked) > 4000
    assert follows(slow, "gaussian", sigma) if sigma < 100 else abs(slow.std() / sigma - 1) < 0.05


def test_an_accept_step_compares_all_digits():
    """A chance of exactly e⁻¹ᐟ² against random numbers just below and just above it."""
    source = NoiseSource(seed=1)
    candidate, sigma, proposal = 2, 1.0, 1.0  # gap = 2 − 1, chance = exp(−1/2)
    exact = decimal.Context(prec=120)
    digits = int(exact.multiply(exact.power(2, 192), exact.exp(decimal.Decimal("-0.5"))))
    word, rest = digits >> 128, digits & (2**128 - 1)
    for low, accepted in ((rest - 1, True), (rest + 1, False)):
        source.words = lambda count, low=low: np.array([low >> 64, low & (2**64 - 1)], np.uint64)
        assert source._accepts(candidate, word, sigma, proposal) is accepted


@pytest.mark.parametrize("scale", [2.0**16, 3.3e7])
def test_large_scales_are_exact_to_a_percent(scale):
    source = NoiseSource(seed=3)
    assert abs(np.abs(source.laplace(100_000, scale)).mean() / scale - 1) < 0.01
    assert abs(source.gaussian(100_000, scale).std() / scale - 1) < 0.01


def test_secret_noise_differs_and_seeded_noise_repeats():
    assert (NoiseSource().laplace(50, 1e6) != NoiseSource().laplace(50, 1e6)).any()
    assert (NoiseSource(seed=1).laplace(50, 1e6) == NoiseSource(seed=1).laplace(50, 1e6)).all()
    assert NoiseSource().secure
    assert not NoiseSource(seed=1).secure


def test_naive_doubles_tell_the_value_and_ours_do_not():
    """``1 + Lap(1)`` near zero is always a multiple of 2⁻⁵³, ``0 + Lap(1)`` hardly ever: one look and the value is known."""
    rng = np.random.default_rng(0)

    def telling(values):
        near = values[np.abs(values) < 0.125]
        return np.mean(np.mod(near * 2.0**53, 1.0) == 0.0)

    naive = [telling(value + rng.laplace(size=200_000)) for value in (0.0, 1.0)]
    assert naive[0] < 0.3
    assert naive[1] == 1.0

    source, step = NoiseSource(seed=5), 2.0**-20
    ours = [(round(value / step) + source.laplace(200_000, 1.0 / step)) * step for value in (0.0, 1.0)]
    assert telling(ours[0]) == telling(ours[1]) == 1.0
    assert all((np.mod(values / step, 1.0) == 0.0).all() for values in ours)


def test_opendp_maps_agree_with_our_scales():
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    assert dp.m.make_laplace(*space, scale=2 / 0.7).map(2) <= 0.7 * (1 + 1e-12)
    scores = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    assert dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=2 * 3.0 / 0.7).map(3.0) <= 0.7 * (1 + 1e-12)


@pytest.mark.parametrize("seed", [None, 2])
def test_one_shot_release_has_the_laplace_spread(seed):
    """Whether |noise| is above its median is a fair coin; secret noise fails this once in 10⁹ runs."""
    noisy = release_integers(np.full(4000, 17, np.int64), sensitivity=10, epsilon=0.5, source=NoiseSource(seed))
    q = np.exp(-1 / 20)
    beyond = 2 * q**14 / (1 + q)  # P(|noise| ≥ 14)
    assert binomtest(int((np.abs(noisy - 17) >= 14).sum()), 4000, beyond).pvalue > ONCE_IN_A_BILLION


@pytest.mark.parametrize("seed", [None, 4])
def test_choice_prefers_large_scores(seed):
    source = NoiseSource(seed)
    assert {choose(np.array([0.0, 0.0, 90.0]), 1.0, 1.0, source) for _ in range(50)} == {2}  # another: e⁻⁴⁵
    picks = sum(choose(np.array([0.0, 2.0]), 1.0, 1.0, source) for _ in range(400))
    expected = 1 - np.exp(-1) / 2  # exponential noise of scale 2 on both: the larger wins unless it is 2 behind
    assert binomtest(picks, 400, expected).pvalue > ONCE_IN_A_BILLION


def test_poisson_samples_have_their_rate():
    source = NoiseSource(seed=9)
    sizes = [len(source.poisson_subset(10_000, 0.05)) for _ in range(40)]
    assert abs(np.mean(sizes) - 500) < 20
    assert np.std(sizes) > 10  # a fixed size would not be Poisson sampling
    assert len(source.poisson_subset(10, 1.0)) == 10


def test_impossible_scales_are_refused():
    with pytest.raises(InputError, match="scale"):
        NoiseSource(seed=1).laplace(3, 0.0)
    with pytest.raises(InputError, match="sigma"):
        NoiseSource(seed=1).gaussian(3, float("nan"))


def test_missing_opendp_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        opendp()
