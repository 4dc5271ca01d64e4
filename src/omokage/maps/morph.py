"""MORPH: shape and texture averaged each in its own space, then put together: a sharp face without a generator.

A plain average of photos lays noses on cheeks. Here every portrait is bent so that its landmarks, its hairline and its
outline fall on one reference shape; what is averaged is, part by part, the colour of the pixels that show this part (skin
with skin, hair with hair), how many members show the part there, and the shape. The background is left out. Decoding lets
each pixel go to the part that most members show there, and bends the result to the mean shape.

Both steps are linear up to decoding, so a group's mean is the arithmetic mean of its members' vectors, and nothing but that
mean is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ..errors import MapError
from ..faces.align import Points
from ..faces.image import Picture
from ..faces.portrait import PARTS, Portrait, decided
from .mesh import Mesh, mesh_points, outline

GROUND = (226.0, 204.0)  # the calm ground: grey, lighter at the top
_BANDS = (1.0, 2.0, 4.0)  # widths, in 256ths of the side, between which fine contrast is measured
_MOST = (2.0, 1.8, 1.5)  # how much each band may be strengthened: one of k members weighs at most twice 1/k in it
_ENERGY = 32  # side of the maps of fine contrast
_SHARP = 3.0  # how strongly a pixel goes to the part that most members show


def ground(size: int) -> NDArray[np.float32]:
    """The calm ground that takes the background's place."""
    column = np.linspace(*GROUND, size, dtype=np.float32)
    return np.broadcast_to(column[:, None, None], (size, size, 3))


class Morph:
    """The MORPH synthesis map.

    Parameters
    ----------
    size : int
        Side of the pictures.
    texture : float
        How much of the fine contrast that averaging takes away is given back, 0 … 1. It strengthens the average's own
        detail, up to the members' mean contrast: no member's detail is copied.

    Attributes
    ----------
    reference_ : (p, 2) points
        The mean shape of the portraits seen by :meth:`fit`.
    """

    def __init__(self, size: int = 256, texture: float = 1.0) -> None:
        if not 0 <= texture <= 1:
            raise MapError(f"texture must lie between 0 and 1, but it is {texture}")
        self.size = size
        self.texture = texture

    def fit(self, shapes: Iterable[Points]) -> Morph:
        """Take the mean of these shapes (see ``mesh_points``) for the reference."""
        total, number = None, 0
        for shape in shapes:
            total = shape.copy() if total is None else total + shape
            number += 1
        if total is None:
            raise MapError("MORPH needs at least one portrait to take its reference shape from")
        self.reference_ = total / number
        self._mesh = Mesh.over(self.reference_, self.size)
        return self

    # ------------------------------------------------------------------ there

    def encode(self, portrait: Portrait) -> NDArray[np.float32]:
        """Shape, part-wise texture and fine contrast of a portrait as one vector."""
        shape = mesh_points(portrait)
        bent = self._mesh.bend(portrait.crop, shape).astype(np.float32)
        shown = decided(self._mesh.bend(_glasses_whole(portrait.parts), shape))
        coloured = bent[:, :, None, :] * shown[..., None]  # (size, size, parts, 3)
        energy = self._energies(bent, shown.sum(-1))
        return np.concatenate([shape.ravel(), shown.ravel(), coloured.ravel(), energy.ravel()], dtype=np.float32)

    def _bands(self, picture: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Differences of ever wider blurs of the brightness."""
        light = picture @ np.array([0.299, 0.587, 0.114], np.float32)
        out, finer = [], light
        for width in _BANDS:
            coarser = cv2.GaussianBlur(light, (0, 0), width * self.size / 256)
            out.append(finer - coarser)
            finer = coarser
        return out

    def _energies(self, picture: NDArray[Any], shown: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean square of each band around each place, over the pixels that are shown."""
        small = (_ENERGY, _ENERGY)
        weight = cv2.resize(shown, small, interpolation=cv2.INTER_AREA)
        return np.stack(
            [
                cv2.resize(np.square(band) * shown, small, interpolation=cv2.INTER_AREA) / (weight + 0.05)
                for band in self._bands(picture)
            ]
        )

    # ------------------------------------------------------------------ and back

    def _split(self, vector: NDArray[Any]) -> tuple[Points, NDArray[Any], NDArray[Any], NDArray[Any]]:
        pixels, parts = self.size * self.size, len(PARTS)
        ends = np.cumsum([self.reference_.size, pixels * parts, pixels * parts * 3])
        if len(vector) != ends[-1] + len(_BANDS) * _ENERGY**2:
            raise MapError(f"MORPH at {self.size} pixels cannot decode a vector of {len(vector)} numbers")
        shape, shown, coloured, energy = np.split(vector, ends)
        plane = (self.size, self.size, parts)
        return (
            shape.reshape(-1, 2).astype(np.float64),
            shown.reshape(plane),
            coloured.reshape(*plane, 3),
            energy.reshape(len(_BANDS), _ENERGY, _ENERGY),
        )

    def decode(self, vector: NDArray[Any], shape: Points | None = None) -> Picture:
        """The picture of a vector, in its own shape or in another one."""
        own, shown, coloured, energy = self._split(vector)
        picture, vote = self._compose(shown, coloured)
        if self.texture:
            picture = self._retexture(picture, vote, energy)
        layered = np.concatenate([picture, vote[..., None]], -1)
        bent = Mesh.over(own if shape is None else shape, self.size).bend(layered, self.reference_, cv2.INTER_CUBIC)
        person = np.clip(bent[..., 3:], 0, 1)
        out = bent[..., :3] * person + ground(self.size) * (1 - person)
        return np.round(np.clip(out, 0, 255)).astype(np.uint8)

    def decode_skin(self, vector: NDArray[Any], shape: Points) -> Picture:
        """The face alone, in a given shape: no hair, hat or glasses, and skin on beyond its edge; to be laid into a photo."""
        _, shown, coloured, energy = self._split(vector)
        face = PARTS.index("face")
        unit = self.size / 256
        skin = _coloured(coloured[:, :, face], shown[..., face], 0.0, 6 * unit)
        if self.texture:
            skin = self._retexture(skin, np.clip(shown[..., face] * 2, 0, 1), energy)
        bent = Mesh.over(shape, self.size).bend(skin, self.reference_, cv2.INTER_CUBIC)
        return np.round(np.clip(bent, 0, 255)).astype(np.uint8)

    def shape_of(self, vector: NDArray[Any]) -> Points:
        """The shape that a vector holds."""
        return self._split(vector)[0]

    def _compose(self, shown: NDArray[Any], coloured: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Every pixel to the part that most members show there: colours, and how much is person rather than ground."""
        unit = self.size / 256
        votes = np.clip(cv2.GaussianBlur(shown, (0, 0), 1.5 * unit), 1e-4, 1) ** _SHARP  # no frayed borders
        votes /= votes.sum(-1, keepdims=True)
        out = np.zeros((self.size, self.size, 3), np.float32)
        for number, part in enumerate(PARTS):
            calm = 14 * unit if part == "clothes" else 0.0
            out += votes[..., number, None] * _coloured(coloured[:, :, number], shown[..., number], calm, 6 * unit)
        return out, _silhouette(shown.sum(-1), self.reference_, unit)

    def _retexture(self, picture: NDArray[Any], vote: NDArray[Any], energy: NDArray[Any]) -> NDArray[np.float32]:
        """Strengthen each band where it is weaker than the members' own, up to the members' mean contrast."""
        now = self._energies(picture, vote)
        out = picture.copy()
        for band, wanted, have, most in zip(self._bands(picture), energy, now, _MOST, strict=True):
            gain = np.clip(np.sqrt(wanted / (have + 0.5)), 1, most)
            gain = cv2.GaussianBlur(gain.astype(np.float32), (0, 0), 1.0)
            gain = cv2.resize(gain, (self.size, self.size), interpolation=cv2.INTER_CUBIC)
            out += (self.texture * (gain - 1) * band * vote)[..., None]
        return out


def _glasses_whole(parts: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The parts with glasses grown by their rim, so that none of it is averaged into skin."""
    at = PARTS.index("glasses")
    if parts[..., at].max() < 128:
        return parts
    reach = max(3, parts.shape[0] // 32) | 1
    grown = cv2.dilate(parts[..., at], np.ones((reach, reach), np.uint8))
    out = np.minimum(parts, 255 - grown[..., None])
    out[..., at] = grown
    return out


def _silhouette(person: NDArray[Any], reference: Points, unit: float) -> NDArray[np.float32]:
    """Where most members show the person: one connected shape around the face, with a smooth border."""
    side = len(person)
    inside = (cv2.GaussianBlur(person, (0, 0), 4 * unit) > 0.5).astype(np.uint8)
    # hair that the frame cuts off in some members must not stand up from the others' heads
    around = np.concatenate([1.02 * (outline(reference) - 0.5) + 0.5, [(1.1, 1.1), (-0.1, 1.1)]])
    within = cv2.fillPoly(np.zeros_like(inside), [np.round(around * side * 16).astype(np.int32)], 1, shift=4)
    inside &= within
    _, islands = cv2.connectedComponents(inside)
    x, y = np.round(reference[27:31].mean(0) * side).astype(int)  # the bridge of the nose
    if islands[y, x]:
        inside = (islands == islands[y, x]).astype(np.uint8)
    inside = np.pad(inside, 1, mode="edge")
    beyond = cv2.distanceTransform(inside, cv2.DIST_L2, 5) - cv2.distanceTransform(1 - inside, cv2.DIST_L2, 5)
    edge = np.clip(beyond[1:-1, 1:-1] / (5 * unit) + 0.5, 0, 1)
    return cv2.GaussianBlur(edge, (0, 0), unit)


def _coloured(coloured: NDArray[Any], shown: NDArray[Any], calm: float, spread: float) -> NDArray[np.float32]:
    """Mean colour of a part at every pixel; where few members show it, that of the surroundings."""
    wide = calm or spread
    far = cv2.GaussianBlur(coloured, (0, 0), wide) + 1e-4 * coloured.mean((0, 1))
    weight = cv2.GaussianBlur(shown, (0, 0), wide) + 1e-4 * shown.mean()
    around = far / np.maximum(weight, 1e-9)[..., None]
    if calm:
        return np.asarray(around, np.float32)
    trust = np.clip(shown / 0.3, 0, 1)[..., None]
    here = coloured / np.maximum(shown, 1e-3)[..., None]
    return np.asarray(here * trust + around * (1 - trust), np.float32)


class Direct:
    """The DIRECT map: pixels as they are, before the calm ground. Groups and synthesizes."""

    def __init__(self, size: int = 256) -> None:
        self.size = size

    def fit(self, shapes: Iterable[Points]) -> Direct:
        """Nothing to learn."""
        return self

    def encode(self, portrait: Portrait) -> NDArray[np.float32]:
        whole = portrait.on(ground(portrait.size))
        if portrait.size != self.size:
            whole = cv2.resize(whole, (self.size, self.size), interpolation=cv2.INTER_AREA)
        return np.asarray(whole, np.float32).ravel()

    def decode(self, vector: NDArray[Any]) -> Picture:
        return np.round(np.clip(vector.reshape(self.size, self.size, 3), 0, 255)).astype(np.uint8)
