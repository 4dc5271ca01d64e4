"""Seeds: arguments, never a generator that modules share."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ..errors import InputError


def seed_from(random_state: int | None) -> int:
    """A 64-bit seed; ``None`` draws one from the operating system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InputError(f"random_state must be None or a whole number from 0, but it is {random_state!r}")
    return int(random_state) & 0xFFFFFFFFFFFFFFFF
