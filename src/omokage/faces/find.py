"""Find faces in a photo, and 68 landmarks in each.

SCRFD finds boxes and five points. The five points turn each face upright and to one size; there dlib's regression trees,
which want an upright face in a known box, give the 68 points of Kazemi & Sullivan. Both networks see the eyes, the nose and
the mouth: where they disagree, the face is reported and not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import networks
from ..errors import InputError, MissingExtra
from .align import Points
from .image import Picture

try:
    import cv2
    import dlib
    import onnxruntime
except ImportError:
    raise MissingExtra("face detection", "faces") from None

Trouble = Literal["too small", "turned away", "unsure"]

# Where five points stand in an upright face: InsightFace's template of 112 pixels, in the middle of a patch of 256.
TEMPLATE = np.array([[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]])
_PATCH = 256
_IN_PATCH = (TEMPLATE - 56) * 1.25 + 128
_BOX = (71, 91, 180, 199)  # dlib's own detector sets this box in such patches: mean of 197 faces
_JITTER = ((0, 0), (-3, 0), (3, 0), (0, -3), (0, 3))  # boxes that are averaged over

_TURN = 0.42  # distance of the nose's tip from the middle of the eyes, along them, in eye distances, at most
_DISAGREE = 0.25  # mean distance of the two networks' five points, in eye distances, at most


@dataclass(frozen=True)
class Face:
    """A face in a photo: where it is, how sure the detector is, 68 landmarks, and what is wrong with it, if anything."""

    box: tuple[float, float, float, float]  # left, top, right, bottom
    score: float
    points: Points
    trouble: Trouble | None = None

    @property
    def area(self) -> float:
        return (self.box[2] - self.box[0]) * (self.box[3] - self.box[1])


def five_points(points: Points) -> Points:
    """Eyes, tip of the nose and corners of the mouth, from 68 landmarks."""
    return np.stack([points[36:42].mean(0), points[42:48].mean(0), points[30], points[48], points[54]])


def similarity(source: Points, target: Points) -> NDArray[np.float64]:
    """The 2 × 3 map (turn, size, place) that brings source nearest to target in the least squares.

    Examples
    --------
    >>> import numpy as np
    >>> similarity(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[5.0, 5], [5, 7], [3, 5]])).round(9) + 0.0
    array([[ 0., -2.,  5.],
           [ 2.,  0.,  5.]])
    """
    a, b = source - source.mean(0), target - target.mean(0)
    one, two = a[:, 0] + 1j * a[:, 1], b[:, 0] + 1j * b[:, 1]
    c = (one.conj() @ two) / (one.conj() @ one).real
    turn = np.array([[c.real, -c.imag], [c.imag, c.real]])
    return np.column_stack([turn, target.mean(0) - turn @ source.mean(0)])


def session(name: str) -> Any:
    """An ONNX network of the zoo, on one thread: photos are spread over the cores, not layers."""
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(networks.get(name)), options, providers=["CPUExecutionProvider"])


class Finder:
    """Finds faces.

    Parameters
    ----------
    score : float
        How sure the detector must be, 0 … 1.
    reach : int
        Longest side, in pixels, at which small faces are looked for; more finds smaller faces and takes longer.
    least : float
        Pixels between the eyes; a face with fewer is too small.
    """

    def __init__(self, score: float = 0.5, reach: int = 640, least: float = 12.0) -> None:
        if not 0 < score < 1:
            raise InputError(f"score must lie between 0 and 1, but it is {score}")
        self.score = score
        self.reach = reach
        self.least = least
        self._detector = session("scrfd")
        self._landmarks = dlib.shape_predictor(str(networks.get("dlib-68")))

    def find(self, photo: Picture) -> list[Face]:
        """All faces, the largest first."""
        faces = [self._face(photo, *each) for each in self._detect(photo)]
        return sorted(faces, key=lambda face: -face.area)

    def landmarks(self, photo: Picture, five: Points) -> Points:
        """68 landmarks of the face with these five points."""
        matrix = similarity(five, _IN_PATCH)
        patch = np.ascontiguousarray(cv2.warpAffine(photo, matrix, (_PATCH, _PATCH), borderMode=cv2.BORDER_REPLICATE))
        tries = []
        for dx, dy in _JITTER:
            left, top, right, bottom = _BOX
            shape = self._landmarks(patch, dlib.rectangle(left + dx, top + dy, right + dx, bottom + dy))
            tries.append([(p.x, p.y) for p in shape.parts()])
        back: NDArray[Any] = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
        return np.mean(tries, axis=0) @ back[:2, :2].T + back[:2, 2]

    def _face(self, photo: Picture, score: float, box: NDArray[Any], five: Points) -> Face:
        points = self.landmarks(photo, five)
        eyes = float(np.hypot(*(five[1] - five[0])))
        trouble: Trouble | None = None
        if eyes < self.least:
            trouble = "too small"
        elif abs(turn_of(five)) > _TURN:
            trouble = "turned away"
        elif np.linalg.norm(five_points(points) - five, axis=1).mean() > _DISAGREE * eyes:
            trouble = "unsure"
        left, top, right, bottom = map(float, box)
        return Face((left, top, right, bottom), float(score), points, trouble)

    def _detect(self, photo: Picture) -> list[tuple[float, NDArray[Any], Points]]:
        """Score, box and five points of each face, over sizes of the photo that see large and small faces."""
        longest = max(photo.shape[:2])
        sides = [208]  # a face that fills the photo must not fill the network's view
        while sides[-1] < min(longest, self.reach):
            sides.append(min(int(sides[-1] * 2.5), self.reach, max(longest, 320)))
        found = [hit for side in sides for hit in self._at(photo, side)]
        kept: list[tuple[float, NDArray[Any], Points]] = []
        for hit in sorted(found, key=lambda hit: -hit[0]):
            if all(_overlap(hit[1], other[1]) < 0.4 for other in kept):
                kept.append(hit)
        return kept

    def _at(self, photo: Picture, side: int) -> list[tuple[float, NDArray[Any], Points]]:
        """Faces seen with the photo brought to this longest side, within a margin."""
        scale = side / max(photo.shape[:2])
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=how)
        view = [-(-int(length * (1.5 if side < 320 else 1.1)) // 32) * 32 for length in small.shape[:2]]
        canvas = np.full((*view, 3), 127, np.uint8)
        top, left = (view[0] - small.shape[0]) // 2, (view[1] - small.shape[1]) // 2
        canvas[top : top + small.shape[0], left : left + small.shape[1]] = small
        x = ((canvas.astype(np.float32) - 127.5) / 128).transpose(2, 0, 1)[None]
        outputs = self._detector.run(None, {"input.1": x})
        found = []
        for level, stride in enumerate((8, 16, 32)):
            scores = outputs[level].ravel()
            chosen = np.flatnonzero(scores > self.score)
            cell = chosen // 2  # two anchors in every cell
            across = view[1] // stride
            centre = np.column_stack([cell % across, cell // across]) * stride
            edges = outputs[3 + level].reshape(-1, 4)[chosen] * stride
            boxes = np.column_stack([centre - edges[:, :2], centre + edges[:, 2:]]) - (left, top, left, top)
            five = centre[:, None] + outputs[6 + level].reshape(-1, 5, 2)[chosen] * stride - (left, top)
            found += list(zip(scores[chosen].tolist(), boxes / scale, five.astype(np.float64) / scale, strict=True))
        return found


def turn_of(five: Points) -> float:
    """How far the head is turned: the nose's tip from the middle of the eyes, along them, in eye distances; 0 is frontal."""
    across = five[1] - five[0]
    return float((five[2] - (five[0] + five[1]) / 2) @ across / max(across @ across, 1e-9))


def _overlap(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Shared area over joint area."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = float(np.prod(np.clip(high - low, 0, None)))
    both = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared
    return shared / max(both, 1e-9)
