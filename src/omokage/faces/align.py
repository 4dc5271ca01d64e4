"""The FFHQ crop: a square around the face, upright, eyes and mouth at fixed places; and its exact way back.

The square is set by the eyes and the mouth alone (Karras et al. 2018, appendix C; the papers' preprocessing): its axis is
that of the eyes, corrected by the line from eyes to mouth; its half side is twice the distance of the eyes or 1.8 times
that from eyes to mouth, whichever is more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra

try:
    import cv2
except ImportError:
    raise MissingExtra("photo support", "faces") from None

from .image import Picture

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Alignment:
    """An affine map from a photo's pixels to those of a square crop, and back."""

    matrix: NDArray[np.float64]  # 2 × 3, photo → crop
    size: int

    def forward(self, points: Points) -> Points:
        """Points of the photo in the crop."""
        return points @ self.matrix[:, :2].T + self.matrix[:, 2]

    def back(self, points: Points) -> Points:
        """Points of the crop in the photo."""
        return np.asarray(np.linalg.solve(self.matrix[:, :2], (points - self.matrix[:, 2]).T).T, np.float64)

    @property
    def scale(self) -> float:
        """Crop pixels for one of the photo."""
        return float(np.sqrt(abs(np.linalg.det(self.matrix[:, :2]))))

    def resized(self, size: int) -> Alignment:
        """The same square at another size. Pixel centres stand at whole numbers, so half a pixel moves with it."""
        factor = size / self.size
        matrix = self.matrix * factor
        matrix[:, 2] += (factor - 1) / 2
        return Alignment(matrix, size)

    def crop(self, photo: Picture) -> Picture:
        """The square, cut out of the photo. Beyond the photo's edge it is mirrored and blurred, so that no line shows."""
        source, matrix = _shrunk(photo, self.matrix, self.scale)
        size = (self.size, self.size)
        crop = cv2.warpAffine(source, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        if self._inside(photo):
            return np.asarray(crop)
        there = cv2.warpAffine(np.full(source.shape[:2], 255, np.uint8), matrix, size, flags=cv2.INTER_NEAREST)
        distance = cv2.distanceTransform(255 - there, cv2.DIST_L2, 3)  # 0 inside the photo
        fade = np.clip(distance / (0.1 * self.size), 0, 1)[..., None].astype(np.float32)
        soft = cv2.GaussianBlur(crop, (0, 0), 0.04 * self.size, borderType=cv2.BORDER_REFLECT_101)
        return np.round(crop * (1 - fade) + soft * fade).astype(np.uint8)

    def _inside(self, photo: Picture) -> bool:
        end = float(self.size - 1)
        corners = self.back(np.array([[0.0, 0], [end, 0], [0, end], [end, end]]))
        height, width = photo.shape[:2]
        return bool((corners >= 0).all() and (corners <= (width - 1, height - 1)).all())

    def paste(self, photo: Picture, crop: Picture, mask: NDArray[np.float32]) -> Picture:
        """The photo with the crop laid over it where ``mask`` (of the crop's size, 0 … 1) says; a new array."""
        height, width = photo.shape[:2]
        low = np.floor(self._outline().min(0)).astype(int).clip(0, (width, height))
        high = (np.ceil(self._outline().max(0)).astype(int) + 2).clip(0, (width, height))
        out = photo.copy()
        if (high <= low).any():
            return out
        window = tuple((high - low).tolist())
        back = cv2.invertAffineTransform(self.matrix)
        back[:, 2] -= low
        source, matrix = _shrunk(crop, back, 1 / self.scale)
        laid = cv2.warpAffine(source, matrix, window, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        weight = cv2.warpAffine(mask.astype(np.float32), back, window, flags=cv2.INTER_LINEAR, borderValue=0)[..., None]
        part = out[low[1] : high[1], low[0] : high[0]]
        part[:] = np.round(part * (1 - weight) + laid * weight).astype(np.uint8)
        return out

    def _outline(self) -> Points:
        end = float(self.size - 1)
        return self.back(np.array([[0.0, 0], [end, 0], [0, end], [end, end]]))


def _shrunk(picture: Picture, matrix: NDArray[np.float64], scale: float) -> tuple[Picture, NDArray[np.float64]]:
    """Average over whole pixels first where the map makes the picture much smaller, so that nothing is left out."""
    factor = int(1 / scale) if scale < 0.6 else 1
    if factor < 2:
        return picture, matrix
    height, width = (max(1, round(side / factor)) for side in picture.shape[:2])
    small = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    sx, sy = picture.shape[1] / width, picture.shape[0] / height
    widen = np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2], [0, 0, 1]])
    return np.asarray(small), matrix @ widen


def ffhq_alignment(points: Points, size: int) -> Alignment:
    """The FFHQ crop of a face with these 68 landmarks."""
    left, right = points[36:42].mean(0), points[42:48].mean(0)
    eyes, across = (left + right) / 2, right - left
    down = (points[48] + points[54]) / 2 - eyes
    x = across + np.array([down[1], -down[0]])
    x *= max(2.0 * np.hypot(*across), 1.8 * np.hypot(*down)) / np.hypot(*x)
    y = np.array([-x[1], x[0]])
    centre = eyes + 0.1 * down
    corners = np.stack([centre - x - y, centre - x + y, centre + x + y]).astype(np.float32)
    edge = size - 0.5  # pixel centres stand at whole numbers: the square reaches from −1/2 to size − 1/2
    matrix = cv2.getAffineTransform(corners, np.array([[-0.5, -0.5], [-0.5, edge], [edge, edge]], np.float32))
    return Alignment(np.asarray(matrix, np.float64), size)
