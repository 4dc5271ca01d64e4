"""Compiled samplers: integer noise from a buffer of random words.

The geometric law has independent binary digits: if ``P(G = g) = (1 - q) q**g`` with ``q = exp(-1/s)``, then
bit ``k`` of ``G`` is one with probability ``1 / (1 + exp(2**k / s))`` and all bits are independent. So a
sample needs no logarithm and no floating-point number: each bit is a biased coin whose bias is given as 128
binary digits, and a coin is thrown by comparing random bits with those digits until the first difference.
Sixty-four samples are made at once, one per bit of a machine word, which takes about seven random words per
coin instead of sixty-four.

A kernel makes groups of sixty-four as long as the buffer surely suffices for a whole group, and returns; the
caller refills. A group is never begun and given up, because that would favour samples that need few bits.
"""

from __future__ import annotations

import numpy as np

from ..base.compiling import kernel

_entry, _inner = kernel(), kernel(cached=False)

GROUP = 64


@_entry
def most_words(bits):
    """What a group of samples with so many bits can use at most: every coin to its last digit, signs, accept steps."""
    return bits * 128 + 1 + GROUP


@_inner
def _next(words, cursor):
    word = words[cursor[0]]
    cursor[0] += 1
    return word


@_inner
def _coins(words, cursor, high, low):
    """Sixty-four coins, each one with probability ``(high·2**64 + low) / 2**128``."""
    undecided = ~np.uint64(0)
    ones = np.uint64(0)
    for part in range(2):
        digits = high if part == 0 else low
        for place in range(63, -1, -1):
            r = _next(words, cursor)
            if (digits >> np.uint64(place)) & np.uint64(1):
                ones |= undecided & ~r  # the random number fell below the bias here
                undecided &= r
            else:
                undecided &= ~r
            if undecided == 0:
                return ones
    return ones


@_inner
def _signed(words, cursor, high, low, out):
    """Up to sixty-four discrete Laplace samples: geometric with a sign, where minus zero is left out.

    Kept, it would make zero twice as likely.
    """
    out[:] = 0
    for k in range(high.size):
        ones = _coins(words, cursor, high[k], low[k])
        for i in range(GROUP):
            out[i] |= np.int64((ones >> np.uint64(i)) & np.uint64(1)) << k
    signs = _next(words, cursor)
    kept = 0
    for i in range(GROUP):
        negative = (signs >> np.uint64(i)) & np.uint64(1)
        if not (negative and out[i] == 0):
            out[kept] = -out[i] if negative else out[i]
            kept += 1
    return kept


@_entry
def laplace(words, cursor, high, low, out, filled):
    """Fill ``out`` from ``filled`` on, as far as the words go; returns how far it is filled."""
    group = np.empty(GROUP, np.int64)
    while filled < out.size and words.size - cursor[0] >= most_words(high.size):
        kept = _signed(words, cursor, high, low, group)
        for i in range(min(kept, out.size - filled)):
            out[filled] = group[i]
            filled += 1
    return filled


@_entry
def gaussian(words, cursor, high, low, out, filled, sigma, proposal, margin, doubts):
    """The same for the discrete Gaussian, by rejection from a discrete Laplace of scale ``proposal``.

    Canonne, Kamath and Steinke (2020), algorithm 3. A candidate is accepted if a random number falls below a
    chance; the first 64 bits of the one are compared with a double of the other. A double's chance is off by
    less than ``margin · (1 + r²)`` of itself, where ``r = |k|/σ + 1``. Where that or the missing bits could
    decide, the candidate is kept for now, with its place and its bits in ``doubts``, and the caller decides
    exactly. Returns how far ``out`` is filled and how many doubts there are; a group with doubts is the last.
    """
    group = np.empty(GROUP, np.int64)
    centre = sigma * sigma / proposal
    doubtful = 0
    while doubtful == 0 and filled < out.size and words.size - cursor[0] >= most_words(high.size):
        kept = _signed(words, cursor, high, low, group)
        for i in range(kept):
            size = abs(np.float64(group[i]))
            gap = size - centre
            chance = np.exp(-gap * gap / (2.0 * sigma * sigma)) * 18446744073709551616.0
            unsure = chance * margin * (1.0 + (size / sigma + 1.0) ** 2)
            word = _next(words, cursor)
            drawn = np.float64(word)
            if drawn <= chance + unsure + 1.0 and filled < out.size:
                if drawn + 1.0 > chance - unsure:
                    doubts[doubtful, 0] = np.uint64(filled)
                    doubts[doubtful, 1] = word
                    doubtful += 1
                out[filled] = group[i]
                filled += 1
    return filled, doubtful
