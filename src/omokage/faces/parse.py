"""Which pixels of a crop show the person, and which part of them: the mask that keeps the background out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import networks
from ..errors import MissingExtra
from .image import Picture
from .portrait import PARTS

try:
    import cv2

    from ..networks.bisenet import PARTS as CLASSES
    from ..networks.bisenet import BiSeNet
except ImportError:
    raise MissingExtra("face parsing", "faces") from None

_HOLDS = {
    "glasses": ("glasses",),
    "hair": ("hair",),
    "hat": ("hat",),
    "neck": ("neck", "necklace"),
    "clothes": ("clothes",),
}


class Parser:
    """Parses crops.

    Parameters
    ----------
    size : int
        Side at which the network looks. It was trained at 512; 384 gives nearly the same masks in half the time.
    """

    def __init__(self, size: int = 384) -> None:
        self.size = size
        self._net = BiSeNet.load(networks.get("bisenet"))

    def parse(self, crop: Picture) -> NDArray[np.uint8]:
        """How much of each pixel of a square crop shows each of ``PARTS`` (h, w, 6), 0 … 255."""
        side = crop.shape[0]
        how = cv2.INTER_AREA if side > self.size else cv2.INTER_CUBIC
        seen = crop if side == self.size else cv2.resize(crop, (self.size, self.size), interpolation=how)
        chances = self._net.parts(np.ascontiguousarray(seen)[None])[0]
        coarse = {name: chances[[CLASSES.index(c) for c in classes]].sum(0) for name, classes in _HOLDS.items()}
        coarse["face"] = 1 - chances[CLASSES.index("background")] - sum(coarse.values())
        stacked = np.stack([coarse[name] for name in PARTS], -1)
        fine = cv2.resize(stacked, (side, side), interpolation=cv2.INTER_CUBIC)
        return np.round(np.clip(fine, 0, 1) * 255).astype(np.uint8)
