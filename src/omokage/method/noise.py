"""Noise instead of groups (DR paper, section 4): Laplace noise of scale φ, variance 2φ², in the mapped space.

This hides records behind noise; it is not a proof. No differential privacy is claimed for it: the scale is not tied to a
sensitivity, and floating-point noise is not safe for such a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


@dataclass(frozen=True)
class Laplace:
    """Adds independent Laplace noise of one scale to every mapped coordinate.

    Parameters
    ----------
    scale : float
        φ of the paper; the noise has variance 2φ².
    random_state : int or None
        None draws the noise from the operating system's entropy, as a release must. A number makes it repeatable for
        experiments, and whoever knows the number can take the noise off again.

    Examples
    --------
    >>> import numpy as np
    >>> Laplace(1.5, random_state=0).add(np.zeros((1, 3))).round(2)
    array([[ 0.48, -0.93, -3.75]])
    """

    scale: float
    random_state: int | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"the scale of Laplace noise must be above 0, but it is {self.scale}")

    def add(self, z: NDArray[Any]) -> NDArray[Any]:
        """A noisy copy of ``z``."""
        generator = np.random.default_rng(self.random_state)
        noisy: NDArray[Any] = (z + generator.laplace(0.0, self.scale, z.shape)).astype(z.dtype)
        return noisy


NOISES = {"laplace": Laplace}


def parse_noise(text: str) -> Laplace:
    """``laplace:3.5`` as noise."""
    name, _, scale = text.partition(":")
    try:
        return NOISES[name.strip()](float(scale))
    except (KeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"noise is given as laplace:SCALE, for example laplace:3.5, but it is {text!r}") from None
