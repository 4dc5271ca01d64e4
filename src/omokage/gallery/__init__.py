"""Folders of faces and group photos, anonymized: find everyone, group, unify, write, certify."""

from __future__ import annotations

from .folder import FaceSettings, anonymize_folder
from .photos import Photo, list_photos

__all__ = ["FaceSettings", "Photo", "anonymize_folder", "list_photos"]
