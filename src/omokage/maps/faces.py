"""Maps for faces by name: which spaces faces can be grouped in, and which they can be averaged in."""

from __future__ import annotations

from typing import Any

from ..errors import MapError
from .morph import Direct, Morph

GROUP_MAPS = ("recognition", "direct")
SYNTHESIS_MAPS = ("morph", "direct")


def face_map(name: str, size: int, texture: float = 1.0) -> Any:
    """A synthesis map for faces by its name."""
    if name == "morph":
        return Morph(size, texture)
    if name == "direct":
        return Direct(size)
    if name == "recognition":
        raise MapError(
            "recognition has no way back from its numbers to a face, so it can group but not synthesize: give it as "
            "--group-map, and morph or direct as --synthesis-map"
        )
    raise MapError(f"there is no synthesis map {name!r} for faces: they are {', '.join(SYNTHESIS_MAPS)}")
