"""A face as a mesh: corresponding points, triangles between them, and pictures bent from one set of points to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import Delaunay

from ..align import Points
from ..portrait import Portrait

_HAIRLINE = np.deg2rad(np.linspace(-150, -30, 7))  # rays from between the eyes to the hairline …
_OUTLINE = np.deg2rad(np.linspace(-205, 25, 21))  # … and to the outline of the head; −90° points up
_FRAME = np.array([(x, y) for x in np.linspace(0, 1, 5) for y in np.linspace(0, 1, 5) if x in (0, 1) or y in (0, 1)])


def mesh_points(portrait: Portrait) -> Points:
    """68 landmarks, the hairline, the outline of the head and the frame, in units of the crop's side.

    The landmarks end at the brows and the jaw. Where hair begins and where the head ends is read off its parts, along rays
    from between the eyes: so hair meets hair when faces are averaged, and outlines meet outlines.
    """
    size = portrait.size
    marks = portrait.points / size
    centre = (marks[36:42].mean(0) + marks[42:48].mean(0)) / 2
    face = portrait.part("face", "glasses")
    head = np.maximum(face, portrait.part("face", "glasses", "hair", "hat"))
    brow = float(np.linalg.norm(marks[[19, 24]].mean(0) - centre))
    inner = _reach(face, centre, _HAIRLINE, size).clip(1.35 * brow, None)
    inner = np.maximum(inner, np.interp(np.abs(_HAIRLINE + np.pi / 2), [0, np.pi / 3], [1.35 * brow, 1.6 * brow]))
    outer = _reach(head, centre, _OUTLINE, size)
    jaw = marks[:17] - centre
    bearing = np.unwrap(np.arctan2(jaw[:, 1], jaw[:, 0]))
    least = 1.06 * np.interp(_OUTLINE, *_ascending(np.concatenate([_HAIRLINE, _wrapped(bearing)]),
                                                   np.concatenate([inner, np.hypot(*jaw.T)])))  # fmt: skip
    outer = np.maximum(_smooth(outer), least)
    rays = [centre + r[:, None] * np.column_stack([np.cos(t), np.sin(t)]) for r, t in ((inner, _HAIRLINE), (outer, _OUTLINE))]
    inside = np.concatenate([marks, *rays])
    return np.concatenate([np.clip(inside, 0.01, 0.99), _FRAME])


def face_edge(points: Points) -> Points:
    """The edge of the face: jaw and hairline, as a closed line."""
    return np.concatenate([points[:17], points[68 : 68 + len(_HAIRLINE)][::-1]])


def outline(points: Points) -> Points:
    """Those of the mesh's points that lie on the outline of the head, from one side over the top to the other."""
    return points[68 + len(_HAIRLINE) : 68 + len(_HAIRLINE) + len(_OUTLINE)]


def _wrapped(angle: NDArray[Any]) -> NDArray[Any]:
    """Angles as between −270° and 90°."""
    return (angle + 1.5 * np.pi) % (2 * np.pi) - 1.5 * np.pi


def _ascending(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    order = np.argsort(x)
    return x[order], y[order]


def _reach(mask: NDArray[np.float32], centre: Points, angles: NDArray[Any], size: int) -> NDArray[Any]:
    """How far the mask reaches from the centre along each ray: to where it is last seen before a gap."""
    far = np.arange(0.02, 0.8, 0.5 / size)
    at = (centre + far[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], -1)) * size
    x, y = np.round(at[..., 0]).astype(int), np.round(at[..., 1]).astype(int)
    outside = (x < 0) | (y < 0) | (x >= size) | (y >= size)
    shown = np.where(outside, 0, mask[y.clip(0, size - 1), x.clip(0, size - 1)]) > 0.5
    gap: NDArray[Any] = np.cumsum(~shown, axis=0) - np.maximum.accumulate(np.where(shown, np.cumsum(~shown, axis=0), 0), axis=0)
    begun = np.maximum.accumulate(shown, axis=0)
    ended = np.maximum.accumulate(begun & (gap > 0.04 * size / 0.5), axis=0)  # narrower gaps are strands or shadows
    reached: NDArray[Any] = np.where(shown & ~ended, far[:, None], 0).max(axis=0)
    return reached


def _smooth(radius: NDArray[Any]) -> NDArray[Any]:
    padded = np.pad(radius, 1, mode="edge")
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]


@dataclass(frozen=True)
class Mesh:
    """Triangles over target points, and for each target pixel its place as weights of three of the points."""

    points: Points
    size: int
    weights: Any  # (size², points) sparse

    @classmethod
    def over(cls, points: Points, size: int) -> Mesh:
        """The Delaunay mesh of these points."""
        triangles = Delaunay(points).simplices
        corners = points[triangles] * size - 0.5
        label = np.zeros((size, size), np.int32)
        for number, corner in enumerate(corners):
            cv2.fillConvexPoly(label, np.round(corner * 16).astype(np.int32), number, shift=4)
        flat = label.ravel()
        affine = np.linalg.inv(np.concatenate([corners.transpose(0, 2, 1), np.ones((len(corners), 1, 3))], 1))
        y, x = np.divmod(np.arange(size * size), size)
        here = np.stack([x, y, np.ones_like(x)], -1).astype(np.float64)
        share = np.einsum("pij,pj->pi", affine[flat], here).astype(np.float32)
        rows = np.repeat(np.arange(size * size), 3)
        weights = sparse.csr_array((share.ravel(), (rows, triangles[flat].ravel())), shape=(size * size, len(points)))
        return cls(points, size, weights)

    def bend(self, picture: NDArray[Any], source: Points, how: int = cv2.INTER_LINEAR) -> NDArray[Any]:
        """The picture, whose points are ``source``, bent so that they fall on the mesh's points."""
        side = picture.shape[0]
        place = (self.weights @ (source.astype(np.float32) * side - 0.5)).reshape(self.size, self.size, 2)
        x, y = np.ascontiguousarray(place[..., 0]), np.ascontiguousarray(place[..., 1])
        return np.asarray(cv2.remap(picture, x, y, how, borderMode=cv2.BORDER_REFLECT_101))
