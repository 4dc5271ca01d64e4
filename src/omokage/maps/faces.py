"""Maps for faces by name: which spaces faces can be grouped in, and which they can be averaged in."""

from __future__ import annotations

from typing import Any

from ..errors import MapError
from .morph import Direct, Morph

GROUP_MAPS = {
    "recognition": "RECOGNITION (ArcFace embedding, with the turn of the head)",
    "attribute": "ATTRIBUTE (predicted chances of 14 attributes)",
    "latent": "LATENT (styles of a generator, W+)",
    "direct": "DIRECT (32 × 32 pixels before one ground)",
}
SYNTHESIS_MAPS = ("morph", "latent", "direct")
CODED = ("latent",)  # synthesis maps whose numbers are small and dear to make

_NO_WAY_BACK = {
    "recognition": "recognition has no way back from its numbers to a face",
    "attribute": "attribute has no way back: fourteen chances do not make a face, as it has no decoder",
}


def face_map(name: str, size: int, texture: float = 1.0, steps: int = 0) -> Any:
    """A synthesis map for faces by its name."""
    if name == "morph":
        return Morph(size, texture)
    if name == "direct":
        return Direct(size)
    if name == "latent":
        from .latent import Latent

        return Latent(size, steps)
    if name in _NO_WAY_BACK:
        raise MapError(
            f"{_NO_WAY_BACK[name]}, so it can group but not synthesize: give it as --group-map, and one of "
            f"{', '.join(SYNTHESIS_MAPS)} as --synthesis-map"
        )
    raise MapError(f"there is no synthesis map {name!r} for faces: they are {', '.join(SYNTHESIS_MAPS)}")


def group_map(name: str) -> Any:
    """A map that faces are grouped in, where it looks at the portrait; recognition looks at the photo, in the survey."""
    if name == "attribute":
        from .attribute import Attribute

        return Attribute()
    if name == "direct":
        return Direct(32)
    raise MapError(f"there is no group map {name!r} that looks at portraits")
