"""A new face laid over the old one in a photo: how far it reaches, and the light it stands in.

Nothing of the old face stays within its edge: the new one covers it whole, and fades out beyond, over neck and ears. Of the old
face's colours only its light is taken over, three numbers for each colour, and how sharp it is: a mark moves these by little, as
pixels far from the common light count no more than near ones. The light never strengthens the new face's contrast, so that what
MORPH leaves of one member's mark (at most 2/k) is not raised again.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from .align import Points
from .image import Picture
from .maps.mesh import face_edge, mesh_points
from .portrait import Portrait

_OVER_SKIN, _ELSEWHERE = 0.04, 0.008  # how far the new face fades out beyond its edge, in sides of the crop
_APART = 32.0  # how far a pixel may lie from the light and still count in full
_ROUNDS = 4  # in which the light is found
_WIDTHS = (0.0, 0.004, 0.008, 0.012, 0.016, 0.024, 0.032)  # of blurs to be as soft as the photo, in sides


def face_mask(portrait: Portrait, shape: Points) -> NDArray[np.float32]:
    """Where the new face lies over the photo, 0 … 1: all over the old face and its own, behind hair and hat, softly beyond."""
    size = portrait.size
    mask = np.zeros((size, size), np.uint8)
    for edge in (face_edge(shape), face_edge(mesh_points(portrait))):
        cv2.fillPoly(mask, [np.round((edge * size - 0.5) * 16).astype(np.int32)], 255, shift=4)
    beyond = cv2.distanceTransform(255 - mask, cv2.DIST_L2, 5)
    skin = cv2.GaussianBlur(portrait.part("face", "neck"), (0, 0), 0.01 * size)
    ramp = np.clip(1 - beyond / (size * (_OVER_SKIN * skin + _ELSEWHERE * (1 - skin))), 0, 1)
    before = cv2.GaussianBlur(portrait.part("hair", "hat"), (0, 0), 0.008 * size)
    return np.asarray(ramp * ramp * (3 - 2 * ramp) * (1 - before), np.float32)


def lit(skin: Picture, portrait: Portrait, mask: NDArray[np.float32]) -> Picture:
    """The new face in the old one's light, and no sharper than it."""
    weight = mask * portrait.part("face") + 1e-3 * mask
    there, here = (np.clip(_light(picture, weight), 8, 250) for picture in (portrait.crop, skin))
    out = np.clip(there + (skin - here) * np.clip(there / here, 0.25, 1), 0, 255).astype(np.float32)
    wanted = _sharpness(portrait.crop.astype(np.float32), mask)
    for width in _WIDTHS:
        softer = cv2.GaussianBlur(out, (0, 0), width * portrait.size) if width else out
        if _sharpness(softer, mask) <= 1.3 * wanted:
            break
    return np.round(softer).astype(np.uint8)


def _light(picture: Picture, weight: NDArray[np.float32]) -> NDArray[np.float64]:
    """The plane nearest to each colour over the weighted pixels; those far from it count no more than near ones."""
    size = picture.shape[0]
    y, x = np.mgrid[0:size, 0:size] / size - 0.5
    w = weight.astype(np.float64) / max(float(weight.sum()), 1e-9)
    slopes = np.stack([x - (w * x).sum(), y - (w * y).sum()])
    spread = np.einsum("ij,aij,bij->ab", w, slopes, slopes) + 0.01 * np.eye(2)
    near = picture.astype(np.float64)
    for _ in range(_ROUNDS):
        mean = np.einsum("ij,ijc->c", w, near)
        tilt = np.linalg.solve(spread, np.einsum("ij,aij,ijc->ac", w, slopes, near - mean))
        plane = mean + np.einsum("aij,ac->ijc", slopes, np.clip(tilt, -2 * mean, 2 * mean))
        near = np.clip(picture, plane - _APART, plane + _APART)
    return plane


def _sharpness(picture: NDArray[np.float32], mask: NDArray[np.float32]) -> float:
    """Usual strength of the finest detail under the mask."""
    light = picture.mean(-1)
    fine = np.abs(light - cv2.GaussianBlur(light, (0, 0), 0.008 * len(light)))
    return float(np.median(fine[mask > 0.5])) if (mask > 0.5).any() else 0.0
