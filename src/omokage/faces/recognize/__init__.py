"""Face recognizers: a face as numbers in a space where photos of one person lie close. One groups, others attack.

``RECOGNIZERS`` lists them. Those that can "cosine" give a direction of length 1, and the cosine says who is alike; those that can
"distance" are compared by their distance. The classes, and the libraries they need, are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...base.registry import Entry, Registry

if TYPE_CHECKING:
    from ..align import Points
    from ..image import Picture
    from .embedding import ArcFace, DlibRecognizer, Embedding, FaceNet


class Recognizer(Protocol):
    """Turns a face in a picture into numbers."""

    def embed(self, picture: Picture, points: Points) -> Embedding: ...


RECOGNIZERS = Registry(
    "recognizer",
    Entry(
        "arcface",
        "omokage.faces.recognize.embedding:ArcFace",
        "512 numbers of length 1; the group map RECOGNITION is made of them.",
        title="ArcFace",
        can=frozenset({"cosine"}),
    ),
    Entry(
        "facenet",
        "omokage.faces.recognize.embedding:FaceNet",
        "512 numbers of length 1, by another network and another training set.",
        title="FaceNet",
        can=frozenset({"cosine"}),
    ),
    Entry(
        "dlib",
        "omokage.faces.recognize.embedding:DlibRecognizer",
        "128 numbers; a distance of at most 0.6 means the same person.",
        can=frozenset({"distance"}),
    ),
    methods=("embed",),
)

__all__ = ["RECOGNIZERS", "ArcFace", "DlibRecognizer", "FaceNet", "Recognizer", "recognizer"]

__getattr__ = RECOGNIZERS.public(__name__)


def recognizer(name: str) -> Recognizer:
    """A recognizer by its name."""
    made: Recognizer = RECOGNIZERS.make(name)
    return made
