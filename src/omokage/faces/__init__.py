"""Faces: photos as a medium, the maps of portraits, group photos, and what their maps are trained with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folder import FaceFolder

__all__ = ["FaceFolder"]


def __getattr__(name: str) -> Any:
    if name == "FaceFolder":
        return import_module(".folder", __name__).FaceFolder
    raise AttributeError(f"module 'omokage.faces' has no attribute {name!r}")
