"""A release's own maps as attackers: whoever reads the certificate can code photos and released pictures as the release did.

Codes of many numbers are sketched: every number is added, with a random sign, to one of 8,192 sums, which keeps distances to
about 2 %. LATENT's codes are the encoder's guess, whatever the release's steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .published import PublishedMaps

SUMS = 8192


def attacking_maps(maps: PublishedMaps) -> dict[str, Any]:
    """The release's own maps by what their codes are called, not fitted; without one that is not at hand, and each once."""
    found: dict[str, Any] = {}
    if maps.missing("group") is None:
        found["group_code"] = maps.make("group", steps=0)
    same = maps.name("group") == maps.name("synthesis") == "latent"
    if maps.missing("synthesis") is None and not same:
        found["synthesis_code"] = maps.make("synthesis", steps=0)
    return found


def sketched(code: NDArray[np.float32]) -> NDArray[np.float32]:
    """A code of at most ``SUMS`` numbers, whose distances are nearly those of the codes given.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    >>> bool(0.95 < np.linalg.norm(sketched(x + 3) - sketched(x)) / np.linalg.norm(np.full(100_000, 3)) < 1.05)
    True
    """
    if len(code) <= SUMS:
        return code
    place, sign = _hashes(len(code))
    return np.bincount(place, sign * code, SUMS).astype(np.float32)


@lru_cache(maxsize=2)
def _hashes(length: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rng = np.random.default_rng(length)
    return rng.integers(SUMS, size=length), rng.choice(np.array([-1, 1], np.float32), length)
