"""MORPH: shape and texture averaged each in its own space, then put together: a sharp face without a generator.

A plain average of photos lays noses on cheeks. Here every portrait is bent so that its landmarks, its hairline and its
outline fall on one reference shape; what is averaged is, part by part, the colour of the pixels that show this part (skin
with skin, hair with hair), how many members show the part there, and the shape. The background is left out. Decoding lets
each pixel go to the part that most members show there, and bends the result to the mean shape.

Both steps are linear up to decoding, so a group's mean is the arithmetic mean of its members' vectors, and nothing but that
mean is decoded.

A mark of one member keeps at most 2/k of its contrast
------------------------------------------------------
Change one member's pixels by at most c, and no value of the released face changes by more than 2c/k, plus one step of rounding:
any mark, in any part, however many members show that part. The member's weight in the mean is w ≤ 1/k. In what follows, a
colour "has weight u" if it changes by at most u·w·c; averages of weights stay averages.

1. *There.* Bending is bilinear, and a fill (a member's own colours of a part, spread over the crop) is a weighted mean of that
   member's pixels: both have weight 1.
2. *Part by part.* Let S be the share of members that show a part at a pixel. Its colour is a·(sum of those who show it) +
   (1 − a·S)·(mean of all members' fills), with a = 1/max(S, 1 − S). That has weight W ≤ a + (1 − a·S) = 1 + a·(1 − S), which is
   1/S where at least half show the part, and 2 where fewer do: there the part fades into the fill.
3. *Together.* The votes between parts, the outline and the bending back depend on shapes and parts, not on colours, and are
   weighted means: W is averaged along with the colours, and stays at most 2.
4. *Texture.* Detail (brightness less its Gaussian blur G) is added with a strength t·(2 − W)/(W + G∗W), so that the
   whole has weight W + (2 − W) = 2 at most.

What marks do to landmarks and parts is not bounded by this: the shape is a mean, too, but whether the group wears a hat is
a vote. Lossy file formats (JPEG, WebP) add errors of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ...errors import MapError
from ..align import Points
from ..image import Picture
from ..portrait import PARTS, Portrait, decided
from .base import SynthesisMap
from .ground import GROUND, ground
from .mesh import Mesh, face_edge, mesh_points, outline

_CELLS = 32  # side of the fills
_NEAR, _FAR = 1.5, 6.0  # how far a fill looks for its part, in cells
_DETAIL = 3.0  # what is narrower than this, in 256ths of the side, is strengthened
_RIM = 0.03  # width of the plain rim of a face that is laid into a photo, in sides
_SHARP = 3.0  # how strongly a pixel goes to the part that most members show


class Morph(SynthesisMap):
    """The MORPH synthesis map.

    Parameters
    ----------
    size : int
        Side of the pictures.
    texture : float
        How much of the fine contrast that averaging takes away is given back, 0 … 1. It strengthens the average's own
        detail, by half at most: no member's detail is copied, and no mark keeps more than 2/k of its contrast.

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

    def fit(self, portraits: Sequence[Portrait], y: Any = None) -> Morph:
        """Take the mean shape of these portraits for the reference."""
        return self.fit_shapes(mesh_points(portrait) for portrait in portraits)

    def fit_shapes(self, shapes: Iterable[Points]) -> Morph:
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
        """Shape, how much each part is shown, its colours, and its fill: a portrait as one vector."""
        shape = mesh_points(portrait)
        bent = self._mesh.bend(portrait.crop.astype(np.float32), shape)
        shown = decided(self._mesh.bend(_glasses_whole(portrait.parts), shape))
        coloured = bent[:, :, None, :] * shown[..., None]  # (size, size, parts, 3)
        fills = _fills(coloured, shown)
        clothes = PARTS.index("clothes")  # patterns are smoothed away
        coloured[:, :, clothes] = self._enlarged(fills[:, :, clothes]) * shown[..., clothes, None]
        return np.concatenate([shape.ravel(), shown.ravel(), coloured.ravel(), fills.ravel()], dtype=np.float32)

    def _enlarged(self, fills: NDArray[Any]) -> NDArray[np.float32]:
        whole = cv2.resize(fills.reshape(_CELLS, _CELLS, -1), (self.size, self.size), interpolation=cv2.INTER_LINEAR)
        return np.asarray(whole).reshape(self.size, self.size, *fills.shape[2:])

    # ------------------------------------------------------------------ and back

    def _split(self, vector: NDArray[Any]) -> tuple[Points, NDArray[Any], NDArray[Any], NDArray[Any]]:
        pixels, parts = self.size * self.size, len(PARTS)
        ends = np.cumsum([self.reference_.size, pixels * parts, pixels * parts * 3])
        if len(vector) != ends[-1] + _CELLS**2 * parts * 3:
            raise MapError(f"MORPH at {self.size} pixels cannot decode a vector of {len(vector)} numbers")
        shape, shown, coloured, fills = np.split(vector, ends)
        plane = (self.size, self.size, parts)
        return (
            shape.reshape(-1, 2).astype(np.float64),
            shown.reshape(plane),
            coloured.reshape(*plane, 3),
            fills.reshape(_CELLS, _CELLS, parts, 3),
        )

    def decode(self, vector: NDArray[Any], shape: Points | None = None) -> Picture:
        """The picture of a vector, in its own shape or in another one."""
        own, shown, coloured, fills = self._split(vector)
        colours, weights = _faded(shown, coloured, self._enlarged(fills))
        votes = _votes(shown, self.size / 256)
        person = _silhouette(shown.sum(-1), self.reference_, self.size / 256)
        layers = [(votes[..., None] * colours).sum(2), (votes * weights).sum(2), person]
        picture, weight, person = self._bent(layers, own if shape is None else shape)
        out = self._detailed(picture, weight) * person[..., None] + ground(self.size) * (1 - person[..., None])
        return np.round(np.clip(out, 0, 255)).astype(np.uint8)

    def decode_skin(self, vector: NDArray[Any], shape: Points) -> Picture:
        """The face alone, in a given shape, to be laid into a photo: no hair or glasses, plain skin at its edge and beyond."""
        _, shown, coloured, fills = self._split(vector)
        face, fill = PARTS.index("face"), self._enlarged(fills)
        colours, weights = _faded(shown[..., face], coloured[:, :, face], fill[:, :, face])
        inside = _inside(face_edge(shape), self.size)
        picture, weight, *plain = self._bent([colours, weights, fill[:, :, face]], shape)
        picture = inside[..., None] * picture + (1 - inside[..., None]) * np.dstack(plain)
        weight = inside * weight + (1 - inside)
        return np.round(np.clip(self._detailed(picture, weight), 0, 255)).astype(np.uint8)

    def shape_of(self, vector: NDArray[Any]) -> Points:
        """The shape that a vector holds."""
        return self._split(vector)[0]

    def _bent(self, layers: list[NDArray[Any]], shape: Points) -> list[NDArray[np.float32]]:
        """A picture and planes, bent from the reference to a shape; bilinear, so that no weight grows."""
        bent = Mesh.over(shape, self.size).bend(np.dstack(layers).astype(np.float32), self.reference_)
        return [bent[..., :3], *np.moveaxis(bent[..., 3:], -1, 0)]

    def _detailed(self, picture: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
        """The picture with its own fine contrast strengthened, by as much as its weight leaves room for below 2."""
        width = _DETAIL * self.size / 256
        light = picture @ np.array([0.299, 0.587, 0.114], np.float32)
        detail = light - cv2.GaussianBlur(light, (0, 0), width)
        strength = np.maximum(2 - weight, 0) / (weight + cv2.GaussianBlur(weight, (0, 0), width))
        return picture + (self.texture * strength * detail)[..., None]


def _fills(coloured: NDArray[np.float32], shown: NDArray[np.float32]) -> NDArray[np.float32]:
    """The colours of each part spread over the whole crop (cells, cells, parts, 3): near ones first, then those farther away.

    Of a part that a portrait does not show, what it shows instead. Weighted means of the portrait's own pixels, all of them.
    """
    both = np.concatenate([coloured, shown[..., None]], axis=-1)
    both = np.concatenate([both, both.sum(2, keepdims=True)], axis=2)  # (size, size, parts + any of them, 4)
    small = cv2.resize(both.reshape(*shown.shape[:2], -1), (_CELLS, _CELLS), interpolation=cv2.INTER_AREA)
    near, far = (cv2.GaussianBlur(small, (0, 0), width) for width in (_NEAR, _FAR))
    wide = (near + 1e-3 * far + 1e-6 * small.mean((0, 1))).reshape(_CELLS, _CELLS, -1, 4)
    anything = (wide[:, :, -1:, :3] + 1e-9 * GROUND[0]) / (wide[:, :, -1:, 3:] + 1e-9)
    return np.asarray((wide[:, :, :-1, :3] + 1e-8 * anything) / (wide[:, :, :-1, 3:] + 1e-8), np.float32)


def _faded(shown: NDArray[Any], coloured: NDArray[Any], fill: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The colour of parts at every pixel, and its weight: where less than half of the members show one, it fades."""
    share = np.clip(shown, 0, 1)
    strength = 1 / np.maximum(share, 1 - share)
    colours = strength[..., None] * coloured + (1 - strength * share)[..., None] * fill
    return colours, 1 + strength * (1 - share)


def _votes(shown: NDArray[Any], unit: float) -> NDArray[np.float32]:
    """Every pixel to the part that most members show there: shares that sum to 1."""
    votes = np.clip(cv2.GaussianBlur(shown, (0, 0), 1.5 * unit), 1e-4, 1) ** _SHARP  # no frayed borders
    return np.asarray(votes / votes.sum(-1, keepdims=True))


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


def _inside(edge: Points, size: int) -> NDArray[np.float32]:
    """1 within a closed line, falling to 0 towards it."""
    mask = cv2.fillPoly(np.zeros((size, size), np.uint8), [np.round((edge * size - 0.5) * 16).astype(np.int32)], 1, shift=4)
    depth = cv2.distanceTransform(np.pad(mask, 1), cv2.DIST_L2, 5)[1:-1, 1:-1]
    ramp = np.clip(depth / (_RIM * size) - 0.5, 0, 1)
    return np.asarray(ramp * ramp * (3 - 2 * ramp), np.float32)


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
