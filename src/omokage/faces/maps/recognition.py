"""RECOGNITION: who a face looks like, and which way it looks. A map to group in; it has no way back."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..portrait import Portrait
from ..pose import pose_of
from .base import FaceMap, Vector


class Recognition(FaceMap):
    """The RECOGNITION group map: ArcFace's 512 numbers of length 1, and the turn of the head.

    Parameters
    ----------
    pose_weight : float
        How much the turn counts beside the embedding, so that the faces of a group look one way.
    """

    recognizer: ClassVar[str | None] = "arcface"
    quick: ClassVar[bool] = True  # the embedding is kept with the portrait

    def __init__(self, pose_weight: float = 1.0) -> None:
        self.pose_weight = pose_weight

    @property
    def networks(self) -> tuple[str, ...]:
        return ("arcface",)

    def encode(self, portrait: Portrait) -> Vector:
        """The embedding kept with the portrait, which saw the photo itself, or else one of the crop; and the turn."""
        who = portrait.embedding if portrait.embedding is not None else _arcface().embed(portrait.crop, portrait.points)
        return np.append(who, np.float32(self.pose_weight * pose_of(portrait.points)[0])).astype(np.float32)


@lru_cache(maxsize=1)
def _arcface():  # type: ignore[no-untyped-def]
    from ..recognize import ArcFace

    return ArcFace()
