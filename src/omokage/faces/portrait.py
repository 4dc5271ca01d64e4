"""A portrait: one face, cut out and turned upright, with its landmarks and its parts. What all face maps work on."""

from __future__ import annotations

import io
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
    """A square crop, 68 landmarks in its pixels, and how much of each pixel shows each part (h, w, 6), 0 … 255."""

    crop: Picture
    points: Points
    parts: NDArray[np.uint8]

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

    def to_bytes(self) -> bytes:
        """Everything in one file: pixels without loss, parts at half the size."""
        half = (self.size // 2, self.size // 2)
        packed = np.ascontiguousarray(cv2.resize(self.parts, half, interpolation=cv2.INTER_AREA))
        sink = io.BytesIO()
        flat = packed.reshape(half[1], -1)
        np.savez(
            sink,
            crop=cv2.imencode(".png", self.crop[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])[1],
            points=self.points.astype(np.float32),
            parts=cv2.imencode(".png", flat, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1],
        )
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Portrait:
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                crop = np.asarray(cv2.imdecode(stored["crop"], cv2.IMREAD_COLOR))[..., ::-1]
                flat: Any = cv2.imdecode(stored["parts"], cv2.IMREAD_GRAYSCALE)
                points = stored["points"].astype(np.float64)
            parts = cv2.resize(flat.reshape(flat.shape[0], -1, len(PARTS)), crop.shape[:2], interpolation=cv2.INTER_LINEAR)
        except Exception as error:  # noqa: BLE001  a file cut short can fail anywhere
            raise PhotoError(f"a stored portrait is damaged ({type(error).__name__})") from None
        return cls(np.ascontiguousarray(crop), points, parts)
