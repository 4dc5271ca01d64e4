"""A portrait: one face, cut out and turned upright, with its landmarks and its parts. What all face maps work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import PhotoError
from .align import Points
from .image import Picture

PARTS = ("face", "glasses", "hair", "hat", "neck", "clothes")  # face: with ears, without glasses; the rest is background


def decided(shown: NDArray[Any]) -> NDArray[np.float32]:
    """From chances 0 … 255 to shares 0 … 1 that are mostly one or the other, with a soft edge between."""
    return np.clip((shown.astype(np.float32) - 80) / 100, 0, 1)


@dataclass(frozen=True)
class Portrait:
    """A square crop, 68 landmarks in its pixels, and how much of each pixel shows each part (h, w, 6), 0 … 255.

    embedding : what the recognizer says of the face in the photo, where it was asked; the photo may show more than the crop.
    """

    crop: Picture
    points: Points
    parts: NDArray[np.uint8]
    embedding: NDArray[np.float32] | None = None

    @property
    def size(self) -> int:
        return int(self.crop.shape[0])

    def part(self, *names: str) -> NDArray[np.float32]:
        """How much of each pixel shows these parts together, 0 … 1."""
        shown: NDArray[np.float32] = self.parts[..., [PARTS.index(name) for name in names]].sum(-1, dtype=np.float32) / 255
        return np.minimum(shown, 1)

    @property
    def person(self) -> NDArray[np.float32]:
        """All but the background. Doubtful pixels are decided, so that nothing of the background shines through."""
        return decided(self.parts.sum(-1, dtype=np.float32))

    def on(self, ground: NDArray[np.float32]) -> NDArray[np.float32]:
        """The person before another ground."""
        shown = self.person[..., None]
        return self.crop * shown + ground * (1 - shown)

    def at(self, size: int) -> Portrait:
        """The portrait at another size."""
        if self.size == size:
            return self
        how, factor = cv2.INTER_AREA if self.size > size else cv2.INTER_CUBIC, size / self.size
        crop, parts = (cv2.resize(layer, (size, size), interpolation=how) for layer in (self.crop, self.parts))
        return Portrait(np.asarray(crop), (self.points + 0.5) * factor - 0.5, np.asarray(parts), self.embedding)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays to be stored: pixels without loss, parts at half the size."""
        half = (self.size // 2, self.size // 2)
        flat = np.ascontiguousarray(cv2.resize(self.parts, half, interpolation=cv2.INTER_AREA)).reshape(half[1], -1)
        stored: dict[str, NDArray[Any]] = {
            "crop": cv2.imencode(".png", self.crop[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])[1],
            "points": self.points.astype(np.float32),
            "parts": cv2.imencode(".png", flat, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1],
        }
        return stored if self.embedding is None else stored | {"embedding": self.embedding}

    @classmethod
    def of_arrays(cls, stored: Mapping[str, NDArray[Any]]) -> Portrait:
        """The portrait that :meth:`arrays` gave."""
        try:
            crop = np.asarray(cv2.imdecode(stored["crop"], cv2.IMREAD_COLOR))[..., ::-1]
            flat: Any = cv2.imdecode(stored["parts"], cv2.IMREAD_GRAYSCALE)
            parts = cv2.resize(flat.reshape(flat.shape[0], -1, len(PARTS)), crop.shape[:2], interpolation=cv2.INTER_LINEAR)
            points = stored["points"].astype(np.float64)
        except Exception as error:  # noqa: BLE001  a file cut short can fail anywhere
            raise PhotoError(f"a stored portrait is damaged ({type(error).__name__})") from None
        return cls(np.ascontiguousarray(crop), points, parts, stored.get("embedding"))
