"""Which way a head looks: three numbers from its landmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .align import Points
from .find import five_points, turn_of


def pose_of(points: Points) -> NDArray[np.float64]:
    """Turn (left or right), nod (up or down), and how open the mouth is, each in eye or nose distances.

    They do not change when the photo is moved, turned or made larger.
    """
    five = five_points(points)
    across = five[1] - five[0]
    length = max(float(np.hypot(*across)), 1e-9)
    down = np.array([-across[1], across[0]]) / length
    eyes, mouth = (five[0] + five[1]) / 2, (five[3] + five[4]) / 2
    nod = float((five[2] - eyes) @ down / max(float((mouth - eyes) @ down), 1e-9))
    gape = float(np.hypot(*(points[66] - points[62]))) / length
    return np.array([turn_of(five), nod, gape])
