"""What the attribute network learns from: a list of labels, FFHQ crops of the faces it names, and varied views of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from ...base.progress import Progress, silent
from ...errors import InputError, PhotoError
from ..align import ffhq_alignment
from ..image import Picture, read_photo
from ..maps.attribute import resized
from ..photo_table import read_photo_table

Framing = Literal["find", "whole"]
CACHED = 96  # side at which crops are kept for training
_CROP = 256  # side of a Portrait's crop: training looks at faces the way that use does


@dataclass(frozen=True)
class Labels:
    """Which image has which labels."""

    images: tuple[str, ...]
    names: tuple[str, ...]
    values: NDArray[np.float32]  # (images, names), 0 or 1


@dataclass(frozen=True)
class Faces:
    """Crops to learn from, and how many images had to be left out."""

    crops: NDArray[np.uint8]  # (n, side, side, 3)
    labels: NDArray[np.float32]  # (n, names)
    names: tuple[str, ...]
    absent: int = 0
    unread: int = 0
    faceless: int = 0


def read_labels(path: Path) -> Labels:
    """A list of labels: see :mod:`omokage.faces.photo_table`."""
    table = read_photo_table(path)
    return Labels(table.photos, *table.labels())


def gather(folder: Path, labels: Labels, framing: Framing = "find", *, progress: Progress = silent) -> Faces:
    """The FFHQ crop of the face in the middle of each image that is listed and there.

    ``framing="whole"`` takes images that are such crops already as they are. Images without a face are left out, as in the paper.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder.name} of images")
    there = {path.name for path in folder.iterdir()}
    listed = [(name, row) for name, row in zip(labels.images, labels.values, strict=True) if name in there]
    if not listed:
        raise InputError(f"none of the {len(labels.images)} images that are listed lies in the folder {folder.name}")
    cut = _cutter(framing)
    crops, rows, unread, faceless = [], [], 0, 0
    for number, (name, row) in enumerate(listed, 1):
        progress("cutting out faces", number, len(listed))
        try:
            crop = cut(read_photo(folder / name))
        except PhotoError:
            unread += 1
            continue
        if crop is None:
            faceless += 1
            continue
        crops.append(resized(crop, CACHED))
        rows.append(row)
    if not crops:
        raise InputError(f"no face was found in any of the {len(listed)} images of {folder.name}")
    return Faces(np.stack(crops), np.stack(rows), labels.names, len(labels.images) - len(listed), unread, faceless)


def _cutter(framing: Framing) -> Callable[[Picture], Picture | None]:
    if framing == "whole":
        return _square
    if framing != "find":
        raise InputError(f"framing must be 'find' or 'whole', but it is {framing!r}")
    from ..find import Finder

    finder = Finder()

    def cut(photo: Picture) -> Picture | None:
        faces = finder.find(photo)
        if not faces:
            return None
        middle = np.array(photo.shape[1::-1]) / 2
        face = min(faces, key=lambda each: float(np.hypot(*(each.points.mean(0) - middle))))
        return ffhq_alignment(face.points, _CROP).crop(photo)

    return cut


def _square(photo: Picture) -> Picture:
    if photo.shape[0] != photo.shape[1]:
        raise PhotoError(f"it is {photo.shape[1]} × {photo.shape[0]} pixels, but a crop is square")
    return photo


def varied(face: Picture, size: int, rng: np.random.Generator) -> Picture:
    """The face as another photo might show it: mirrored, moved and turned a little, other light, blurred, packed by JPEG."""
    turn, scale = rng.normal(0, 4), size / face.shape[0] * np.exp(rng.normal(0, 0.04))
    middle = (face.shape[1] - 1) / 2
    matrix = cv2.getRotationMatrix2D((middle, middle), turn, scale)
    matrix[:, 2] += (size - 1) / 2 - middle + rng.normal(0, 0.02 * size, 2)
    out = cv2.warpAffine(face, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    if rng.random() < 0.5:
        out = out[:, ::-1]
    light = np.exp(rng.normal(0, 0.12)) * np.exp(rng.normal(0, 0.04, 3))  # contrast and tint
    bright = out.astype(np.float32).mean((0, 1))
    out = np.clip((out - bright) * light + bright * light.mean() + rng.normal(0, 8), 0, 255).astype(np.uint8)
    if rng.random() < 0.2:
        out = cv2.GaussianBlur(out, (0, 0), rng.uniform(0.4, 1.2))
    if rng.random() < 0.2:
        packed = cv2.imencode(".jpg", out, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(35, 90))])[1]
        out = np.asarray(cv2.imdecode(packed, cv2.IMREAD_COLOR), np.uint8)
    return np.asarray(out, np.uint8)
