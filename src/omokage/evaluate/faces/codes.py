"""A release's own maps as attackers: whoever reads the certificate can code photos and released pictures as the release did.

Codes of many numbers are sketched: every number is added, with a random sign, to one of 8,192 sums, which keeps distances to
about 2 %. LATENT's codes are the encoder's guess, whatever the release's steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faces.folder import POSE_WEIGHT
from ...faces.maps import group_map
from ...faces.portrait import Portrait
from ...faces.pose import pose_of
from .way import Way

SUMS = 8192

Coder = Callable[[Portrait, NDArray[np.float32]], NDArray[np.float32]]  # of a portrait and what ArcFace says of it


def coders(way: Way, shape: NDArray[np.float64]) -> dict[str, Coder]:
    """The release's own maps, fitted to this mean shape; without one whose networks were not given, and each once."""
    found: dict[str, Coder] = {}
    if way.missing("group") is None:
        found["group_code"] = _group_coder(way)
    if way.missing("synthesis") is None and not (way.group == way.synthesis == "latent"):
        found["synthesis_code"] = _coder(replace(way, steps=0).synthesis_map([shape]))
    return found


def _group_coder(way: Way) -> Coder:
    if way.group == "recognition":
        return lambda portrait, who: np.append(who, np.float32(POSE_WEIGHT * pose_of(portrait.points)[0]))
    if way.group == "latent":
        return _coder(replace(way, synthesis="latent", steps=0).synthesis_map([np.zeros((1, 2))]))
    return _coder(group_map(way.group, way.networks))


def _coder(made: Any) -> Coder:
    return lambda portrait, _: sketched(made.encode(portrait))


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
