"""The plain ground that takes the background's place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GROUND = (226.0, 204.0)  # grey, lighter at the top


def ground(size: int) -> NDArray[np.float32]:
    """The ground of a picture of this side."""
    column = np.linspace(*GROUND, size, dtype=np.float32)
    return np.broadcast_to(column[:, None, None], (size, size, 3))
