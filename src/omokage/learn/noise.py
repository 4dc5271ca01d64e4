"""Noise that keeps its promise in a computer.

Every mechanism of this package works on whole numbers. What is to be released is first put on a grid whose
step is public; the noise is a whole number of steps, drawn from random bits without a floating-point
logarithm. So the set of possible outputs does not depend on the data, which is what a textbook sampler in
doubles gets wrong (Mironov, CCS 2012: the lowest bits of ``f(D) + Lap(b)`` tell ``f(D)``).

Two samplers give the same laws:

* OpenDP, for what is released once (histograms, choices, the parameters of a trained network). It is exact.
* our own (``noise_kernels``), for every step of a training, where OpenDP is too slow: ours takes less than a
  hundredth of its time (``benchmarks/learn.py``). Each sample is within a statistical distance of 2⁻¹⁰⁰ of its
  law: a Laplace sample is at most 64 coins whose bias is cut off after 128 binary digits, and a cut-off tail
  of 2⁻¹²⁷, together below 2⁻¹²⁰ with the sign; a Gaussian one is accepted from such with a probability of
  at least 0.4, by a comparison that is exact to 2⁻¹⁹⁰. The accounting adds the distances up and takes them
  off δ.

Random bits come from OpenSSL's generator, seeded by the operating system. A ``seed`` replaces it by known
bits: for tests and for repeatable studies, and the result is then marked as not private.
"""

from __future__ import annotations

import decimal
import importlib
import math
import ssl
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omokage.errors import InputError, MissingExtra
from omokage.learn import noise_kernels as kernels

Integers = NDArray[np.int64]

SAMPLE_DISTANCE = 2.0**-100  # of one number that our own sampler draws from its law
_LARGEST_SCALE = 2.0**50
_BUFFER = 2**15  # words of random bits fetched at a time
_MARGIN = 2.0**-48  # relative error of a chance in doubles, for r = 0; eight times what the operations can add up to


@lru_cache(maxsize=256)
def bit_biases(scale: float) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The probability of a one for each bit of a geometric sample, as 128 binary digits in two words.

    Bits beyond the last are one with a probability below 2⁻¹²⁸ and are left out.

    >>> high, low = bit_biases(1.0)
    >>> round(int(high[0]) / 2**64, 6), len(high)  # 1 / (1 + e)
    (0.268941, 7)
    """
    if not 0.0 < scale <= _LARGEST_SCALE:
        raise InputError(f"the noise scale is {scale!r} grid steps: choose settings that give one above 0, at most 2**50")
    high, low = [], []
    with decimal.localcontext() as context:
        context.prec = 80
        exact = decimal.Decimal(scale)
        k = 0
        while True:
            rate = decimal.Decimal(2**k) / exact
            if rate > 89 and k > 0:  # exp(-89) < 2**-128
                break
            bias = int((decimal.Decimal(2) ** 128) / (1 + rate.exp()))
            high.append(bias >> 64)
            low.append(bias & (2**64 - 1))
            k += 1
    return np.array(high, np.uint64), np.array(low, np.uint64)


class NoiseSource:
    """Random bits and the integer noise made from them.

    Parameters
    ----------
    seed : int, optional
        Only for tests and studies: known bits instead of secret ones.

    Examples
    --------
    >>> source = NoiseSource(seed=1)
    >>> noise = source.laplace(100_000, scale=50.0)
    >>> noise.dtype, bool(abs(abs(noise).mean() / 50 - 1) < 0.02)
    (dtype('int64'), True)
    """

    def __init__(self, seed: int | None = None) -> None:
        self.secure = seed is None
        self._bytes = ssl.RAND_bytes if seed is None else np.random.Generator(np.random.Philox(seed)).bytes
        self._buffer = np.empty(0, np.uint64)
        self._cursor = np.zeros(1, np.int64)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Fresh words of 64 bits."""
        return np.frombuffer(self._bytes(8 * count), np.uint64)

    def laplace(self, size: int, scale: float) -> Integers:
        """Whole numbers with ``P(k) ∝ exp(-|k| / scale)``."""
        high, low = bit_biases(float(scale))
        out, filled = np.empty(size, np.int64), 0
        while filled < size:
            self._refill(high.size)
            filled = kernels.laplace(self._buffer, self._cursor, high, low, out, filled)
        return out

    def gaussian(self, size: int, sigma: float) -> Integers:
        """Whole numbers with ``P(k) ∝ exp(-k² / 2 sigma²)``."""
        if not 0.0 < sigma < _LARGEST_SCALE:
            raise InputError(f"sigma is {sigma!r} grid steps: choose settings that give one above 0, below 2**50")
        proposal = float(math.floor(sigma) + 1)
        high, low = bit_biases(proposal)
        out, filled = np.empty(size, np.int64), 0
        doubts = np.empty((kernels.GROUP, 2), np.uint64)
        while filled < size:
            self._refill(high.size)
            filled, doubtful = kernels.gaussian(
                self._buffer, self._cursor, high, low, out, filled, float(sigma), proposal, _MARGIN, doubts
            )
            for place, word in reversed(doubts[:doubtful].tolist()):  # about one sample in 2⁴⁵
                if not self._accepts(int(out[place]), word, float(sigma), proposal):
                    out[place : filled - 1] = out[place + 1 : filled]
                    filled -= 1
        return out

    def _accepts(self, candidate: int, word: int, sigma: float, proposal: float) -> bool:
        """Whether a random number that begins with ``word`` falls below a candidate's chance, to 192 binary digits."""
        more = self.words(2).tolist()
        with decimal.localcontext() as context:
            context.prec = 120
            variance = decimal.Decimal(sigma) ** 2
            gap = abs(candidate) - variance / decimal.Decimal(proposal)
            chance = (-gap * gap / (2 * variance)).exp()
            return decimal.Decimal((word << 128) + (more[0] << 64) + more[1]) < chance * decimal.Decimal(2) ** 192

    def poisson_subset(self, count: int, probability: float) -> Integers:
        """Indices of a Poisson sample: every record on its own with this probability, rounded down to 64 bits."""
        if probability >= 1.0:
            return np.arange(count)
        return np.flatnonzero(self.words(count) < np.uint64(int(probability * 2.0**64)))

    def _refill(self, bits: int) -> None:
        """Keep what was not used and add fresh words, if a group might not find enough."""
        left = self._buffer[self._cursor[0] :]
        if left.size < kernels.most_words(bits):
            self._buffer = np.concatenate([left, self.words(_BUFFER - left.size)])
            self._cursor[0] = 0


def release_integers(values: Integers, sensitivity: int, epsilon: float, source: NoiseSource) -> Integers:
    """Laplace mechanism on whole numbers, once: ``values + Lap(sensitivity / epsilon)``.

    ``sensitivity`` is the largest L1 distance between the values of two neighbouring tables, or one value's
    own range when the promise is for that value alone.
    """
    scale = sensitivity / epsilon
    if not source.secure:
        return values + source.laplace(values.size, scale).reshape(values.shape)
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    noisy = dp.m.make_laplace(*space, scale=scale)(values.ravel().tolist())
    return np.array(noisy, np.int64).reshape(values.shape)


def choose(scores: NDArray[np.float64], sensitivity: float, epsilon: float, source: NoiseSource) -> int:
    """Index of a large score, by the exponential mechanism.

    OpenDP adds exponential noise of scale ``2 sensitivity / epsilon`` and takes the largest, which is
    permute-and-flip and never worse than the exponential mechanism; the seeded stand-in does the same on a
    fine grid.
    """
    scale = 2.0 * sensitivity / epsilon
    if not source.secure:
        return int(np.argmax(np.rint(scores * 1024) + np.abs(source.laplace(len(scores), scale * 1024))))
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    mechanism = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
    return int(mechanism([float(s) for s in scores]))


def opendp() -> Any:
    """OpenDP's prelude, with the mechanisms that are proven but still called contributed."""
    try:
        dp = importlib.import_module("opendp.prelude")
    except ImportError as error:
        raise MissingExtra("secure noise (OpenDP)", "dp") from error
    dp.enable_features("contrib")
    return dp
