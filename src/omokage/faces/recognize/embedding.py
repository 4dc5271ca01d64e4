"""The recognizers' networks: what each wants to see of a face, and what it answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtra

try:
    import cv2
    import dlib
except ImportError:
    raise MissingExtra("face recognition", "faces") from None

from ... import networks
from ..align import Points
from ..find import TEMPLATE, five_points, session, similarity
from ..image import Picture

Embedding = NDArray[np.float32]


class ArcFace:
    """512 numbers of length 1; cosine tells who is alike."""

    def __init__(self) -> None:
        self._net = session("arcface")

    def embed(self, picture: Picture, points: Points) -> Embedding:
        face = cv2.warpAffine(picture, similarity(five_points(points), TEMPLATE), (112, 112), borderMode=cv2.BORDER_REPLICATE)
        x = ((face.astype(np.float32) - 127.5) / 127.5).transpose(2, 0, 1)[None]
        return _unit(self._net.run(None, {"input.1": x})[0][0])


class FaceNet:
    """512 numbers of length 1, by another network and another training set."""

    def __init__(self) -> None:
        self._net = cv2.dnn.readNetFromTensorflow(str(networks.get("facenet")))

    def embed(self, picture: Picture, points: Points) -> Embedding:
        # its training crops were MTCNN boxes with a margin: about this far around the five points, at 160 pixels
        target = (TEMPLATE - (56, 64)) * (160 / 112 * 0.82) + (80, 88)
        face = cv2.warpAffine(picture, similarity(five_points(points), target), (160, 160), borderMode=cv2.BORDER_REPLICATE)
        x = face.astype(np.float32)
        x = (x - x.mean()) / max(float(x.std()), 1 / np.sqrt(x.size))
        self._net.setInput(x.transpose(2, 0, 1)[None])
        return _unit(self._net.forward()[0])


class DlibRecognizer:
    """128 numbers; by its makers' rule a distance of at most 0.6 means the same person."""

    def __init__(self) -> None:
        self._net = dlib.face_recognition_model_v1(str(networks.get("dlib-resnet")))

    def embed(self, picture: Picture, points: Points) -> Embedding:
        low, high = points.min(0), points.max(0)
        box = dlib.rectangle(*(round(v) for v in (*low, *high)))
        shape = dlib.full_object_detection(box, [dlib.point(round(x), round(y)) for x, y in points])
        return np.array(self._net.compute_face_descriptor(np.ascontiguousarray(picture), shape), dtype=np.float32)


def _unit(x: NDArray[Any]) -> Embedding:
    return np.asarray(x / max(float(np.linalg.norm(x)), 1e-12), dtype=np.float32)
