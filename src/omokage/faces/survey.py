"""The first pass: find, align, parse and recognize every face once, and keep what was found.

Each photo becomes one record in a work folder, written whole or not at all, so that a killed run goes on where it stopped
and memory does not grow with the number of photos. The work folder holds faces: it is readable by its owner alone, and is
removed when the release is written.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.files import write_whole
from ..base.workers import spread
from ..errors import PhotoError
from .listing import Photo
from .portrait import Portrait
from .work_folder import inner

FORMAT = 1


@dataclass(frozen=True)
class Look:
    """How photos are looked at; records of another look are not reused.

    size : side of the crops. every_face : take all faces of a photo, not only the largest. aligned : the photos are square
    crops already. embed : the recognizer whose numbers are kept, or None.
    """

    size: int = 256
    every_face: bool = False
    aligned: bool = False
    embed: str | None = "arcface"


@dataclass(frozen=True)
class Found:
    """A face that was found: which photo it is of, and where its record lies."""

    photo: int
    record: Path
    number: int
    features: NDArray[np.float32]

    def portrait(self) -> Portrait:
        return Portrait.from_bytes(_load(self.record)[f"portrait{self.number}"].tobytes())


@dataclass(frozen=True)
class LeftOut:
    """A photo, or a face in it, that could not be taken, and why."""

    photo: str
    reason: str


class _Eyes:
    """The networks that look at photos; one set in every process."""

    def __init__(self, look: Look) -> None:
        from .find import Finder
        from .parse import Parser
        from .recognize import recognizer

        self.look = look
        self.finder, self.parser = Finder(), Parser()
        self.recognizer = None if look.embed is None else recognizer(look.embed)

    def see(self, path: Path) -> dict[str, Any]:
        """The record of one photo."""
        from .image import read_photo

        try:
            photo = read_photo(path)
        except PhotoError as error:
            return {"left_out": str(error)}
        faces = self.finder.find(photo)
        if not faces:
            return {"left_out": "no face was found"}
        chosen = faces if self.look.every_face else faces[:1]
        record: dict[str, Any] = {"others": len(faces) - len(chosen)}
        taken, troubles = 0, []
        for face in chosen:
            if face.trouble:
                troubles.append(f"the face is {face.trouble}" if face.trouble != "unsure" else "the landmarks are not sure")
                continue
            record[f"portrait{taken}"] = np.frombuffer(self._portrait(photo, face.points).to_bytes(), np.uint8)
            record[f"features{taken}"] = self._features(photo, face.points)
            taken += 1
        if troubles:
            record["left_out"] = "; ".join(troubles)
        return {**record, "faces": taken}

    def _portrait(self, photo: NDArray[np.uint8], points: NDArray[np.float64]) -> Portrait:
        import cv2

        from .align import ffhq_alignment

        if self.look.aligned and photo.shape[0] == photo.shape[1]:
            factor = self.look.size / photo.shape[0]
            how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
            crop = cv2.resize(photo, (self.look.size, self.look.size), interpolation=how)
            return Portrait(crop, (points + 0.5) * factor - 0.5, self.parser.parse(crop))
        align = ffhq_alignment(points, self.look.size)
        crop = align.crop(photo)
        return Portrait(crop, align.forward(points), self.parser.parse(crop))

    def _features(self, photo: NDArray[np.uint8], points: NDArray[np.float64]) -> NDArray[np.float32]:
        """What the recognizer says, and the pose."""
        from .pose import pose_of

        who = np.zeros(0, np.float32) if self.recognizer is None else self.recognizer.embed(photo, points)
        return np.concatenate([who, pose_of(points)]).astype(np.float32)


@lru_cache(maxsize=1)
def _eyes(look: Look) -> _Eyes:
    return _Eyes(look)


def _survey_one(path: Path, record: Path, look: Look) -> Path:
    """See one photo and keep its record."""
    sink = io.BytesIO()
    np.savez(sink, **_eyes(look).see(path))
    write_whole(record, sink.getvalue(), private=True)
    return record


def _load(record: Path) -> dict[str, NDArray[Any]]:
    with np.load(record, allow_pickle=False) as stored:
        return dict(stored)


def identity_of(photo: Photo, look: Look) -> str:
    """What a record is called: it changes with the file and with the look."""
    try:
        state = photo.path.stat()
    except OSError:  # a link to nowhere, or it has just gone: found out when it is read
        size = time = 0
    else:
        size, time = state.st_size, state.st_mtime_ns
    text = json.dumps([FORMAT, os.path.realpath(photo.path), size, time, asdict(look)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def survey(
    photos: list[Photo], work: Path, look: Look, workers: int, progress: Callable[[int, int], None] = lambda done, of: None
) -> tuple[list[Found], list[LeftOut]]:
    """Look at all photos; those that have a record already are not looked at again."""
    place = inner(work, "records")
    records = [place / f"{identity_of(photo, look)}.npz" for photo in photos]
    todo = [(photo.path, record, look) for photo, record in zip(photos, records, strict=True) if not _whole(record)]
    done = len(photos) - len(todo)
    progress(done, len(photos))
    for _ in spread(_survey_one, todo, workers):
        done += 1
        progress(done, len(photos))
    found: list[Found] = []
    left: list[LeftOut] = []
    for index, (photo, record) in enumerate(zip(photos, records, strict=True)):
        with np.load(record, allow_pickle=False) as stored:
            if "left_out" in stored:
                left.append(LeftOut(photo.name, str(stored["left_out"])))
            for number in range(int(stored["faces"]) if "faces" in stored else 0):
                found.append(Found(index, record, number, stored[f"features{number}"]))
    return found, left


def _whole(record: Path) -> bool:
    try:
        with np.load(record, allow_pickle=False) as stored:
            return "left_out" in stored or "faces" in stored
    except Exception:  # noqa: BLE001  whatever is wrong with it, it is made again
        return False
