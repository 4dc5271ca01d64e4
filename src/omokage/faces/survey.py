"""The first pass: find, align, parse and recognize every face once, and keep what was found.

Each photo becomes one record in a work folder, written whole or not at all, so that an interrupted run resumes and memory does
not grow with the number of photos. The work folder holds faces: only its owner can read it, and it is removed when the release
is written.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..base.files import write_whole
from ..base.progress import Progress, silent
from ..base.workers import in_parallel
from ..errors import PhotoError
from .listing import Photo
from .portrait import Portrait
from .work_folder import inner

FORMAT = 2


@dataclass(frozen=True)
class SurveySettings:
    """How photos are looked at; records made with other settings are not reused.

    size : side of the crops. every_face : take all faces of a photo, not only the largest. aligned : the photos are square
    crops already. recognizer : whose embedding is kept with each face, or None.
    """

    size: int = 256
    every_face: bool = False
    aligned: bool = False
    recognizer: str | None = "arcface"


@dataclass(frozen=True)
class FaceRecord:
    """A face that was found: which photo shows it, and where its portrait is kept."""

    photo: int
    file: Path
    number: int

    @property
    def name(self) -> str:
        """A name for files about this face."""
        return f"{self.file.stem}-{self.number}"

    def portrait(self) -> Portrait:
        ending = str(self.number)
        with np.load(self.file, allow_pickle=False) as stored:
            return Portrait.of_arrays({n.removesuffix(ending): stored[n] for n in stored.files if _is_part(n, ending)})


class Portraits(Sequence[Portrait]):
    """The portraits of some faces, loaded when they are asked for."""

    def __init__(self, faces: Sequence[FaceRecord]) -> None:
        self.faces = faces

    def __len__(self) -> int:
        return len(self.faces)

    @overload
    def __getitem__(self, at: int) -> Portrait: ...
    @overload
    def __getitem__(self, at: slice) -> Portraits: ...
    def __getitem__(self, at: int | slice) -> Portrait | Portraits:
        return Portraits(self.faces[at]) if isinstance(at, slice) else self.faces[at].portrait()

    def __iter__(self) -> Iterator[Portrait]:
        return (face.portrait() for face in self.faces)


@dataclass(frozen=True)
class LeftOut:
    """A photo, or a face in it, that could not be taken, and why."""

    photo: str
    reason: str


@dataclass(frozen=True)
class Seen:
    """What was seen in one photo: the faces taken, and why another face, or the photo, was not."""

    portraits: list[Portrait] = field(default_factory=list)
    left_out: str | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        out: dict[str, NDArray[Any]] = {"faces": np.array(len(self.portraits))}
        for number, portrait in enumerate(self.portraits):
            out |= {f"{name}{number}": array for name, array in portrait.arrays().items()}
        return out if self.left_out is None else out | {"left_out": np.array(self.left_out)}


class Eyes:
    """The networks that look at photos; one set in every process."""

    def __init__(self, settings: SurveySettings) -> None:
        from .find import Finder
        from .parse import Parser
        from .recognize import recognizer

        self.settings = settings
        self.finder, self.parser = Finder(), Parser()
        self.recognizer = None if settings.recognizer is None else recognizer(settings.recognizer)

    def see(self, path: Path) -> Seen:
        """Look at one photo."""
        from .image import read_photo

        try:
            photo = read_photo(path)
        except PhotoError as error:
            return Seen(left_out=str(error))
        faces = self.finder.find(photo)
        if not faces:
            return Seen(left_out="no face was found")
        taken: list[Portrait] = []
        troubles = []
        for face in faces if self.settings.every_face else faces[:1]:
            if face.trouble:
                troubles.append(f"the face is {face.trouble}" if face.trouble != "unsure" else "the landmarks are not sure")
            else:
                taken.append(self._portrait(photo, face.points))
        return Seen(taken, "; ".join(troubles) or None)

    def _portrait(self, photo: NDArray[np.uint8], points: NDArray[np.float64]) -> Portrait:
        import cv2

        from .align import ffhq_alignment

        size = self.settings.size
        who = None if self.recognizer is None else self.recognizer.embed(photo, points)
        if self.settings.aligned and photo.shape[0] == photo.shape[1]:
            factor = size / photo.shape[0]
            how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
            crop = np.asarray(cv2.resize(photo, (size, size), interpolation=how), np.uint8)
            return Portrait(crop, (points + 0.5) * factor - 0.5, self.parser.parse(crop), who)
        align = ffhq_alignment(points, size)
        crop = align.crop(photo)
        return Portrait(crop, align.forward(points), self.parser.parse(crop), who)


@lru_cache(maxsize=1)
def _eyes(settings: SurveySettings) -> Eyes:
    return Eyes(settings)


def _survey_one(settings: SurveySettings, path: Path, record: Path) -> Path:
    """Look at one photo and keep its record."""
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **_eyes(settings).see(path).arrays())
    write_whole(record, sink.getvalue(), private=True)
    return record


def _is_part(name: str, ending: str) -> bool:
    return name.endswith(ending) and name.removesuffix(ending) in ("crop", "points", "parts", "embedding")


def identity_of(photo: Photo, settings: SurveySettings) -> str:
    """What a record is called: it changes with the file and with the settings."""
    try:
        state = photo.path.stat()
    except OSError:  # a link to nowhere, or it has just gone: found out when it is read
        size = time = 0
    else:
        size, time = state.st_size, state.st_mtime_ns
    text = json.dumps([FORMAT, os.path.realpath(photo.path), size, time, asdict(settings)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def survey(
    photos: Sequence[Photo],
    work: Path,
    settings: SurveySettings,
    workers: int,
    progress: Progress = silent,
    stage: str = "finding faces",
) -> tuple[list[FaceRecord], list[LeftOut]]:
    """Look at all photos; those that have a record already are not looked at again."""
    place = inner(work, "records")
    records = [place / f"{identity_of(photo, settings)}.npz" for photo in photos]
    todo = [(photo.path, record) for photo, record in zip(photos, records, strict=True) if not _whole(record)]
    done = len(photos) - len(todo)
    progress(stage, done, len(photos))
    for _ in in_parallel(_survey_one, todo, workers, shared=(settings,)):
        done += 1
        progress(stage, done, len(photos))
    found: list[FaceRecord] = []
    left: list[LeftOut] = []
    for index, (photo, record) in enumerate(zip(photos, records, strict=True)):
        with np.load(record, allow_pickle=False) as stored:
            if "left_out" in stored:
                left.append(LeftOut(photo.name, str(stored["left_out"])))
            found += [FaceRecord(index, record, number) for number in range(int(stored["faces"]))]
    return found, left


def _whole(record: Path) -> bool:
    try:
        with np.load(record, allow_pickle=False) as stored:
            return "faces" in stored
    except Exception:  # noqa: BLE001  whatever is wrong with it, it is made again
        return False
