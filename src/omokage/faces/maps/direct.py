"""DIRECT: pixels as they are. Groups and synthesizes; an average of pixels lays noses on cheeks."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..image import Picture
from ..portrait import Portrait
from .base import SynthesisMap, Vector
from .ground import ground


class Direct(SynthesisMap):
    """The DIRECT map: pixels as they are, before a plain ground.

    Parameters
    ----------
    size : int
        Side of the pictures.
    """

    def __init__(self, size: int = 256) -> None:
        self.size = size

    def encode(self, portrait: Portrait) -> Vector:
        whole = portrait.on(ground(portrait.size))
        if portrait.size != self.size:
            whole = cv2.resize(whole, (self.size, self.size), interpolation=cv2.INTER_AREA)
        return np.asarray(whole, np.float32).ravel()

    def decode(self, vector: NDArray[Any]) -> Picture:
        return np.round(np.clip(vector.reshape(self.size, self.size, 3), 0, 255)).astype(np.uint8)
