"""A crowd: the people whose faces stand in for those of a photo. A folder of photos, or people who do not exist."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import networks
from ..base.files import write_whole
from ..base.progress import Progress, silent
from ..errors import NotEnoughPeople, OutputError
from .image import encode_picture
from .listing import Photo, list_photos
from .maps.mesh import mesh_points
from .maps.morph import Morph
from .pose import pose_of
from .survey import FaceRecord, Portraits, SurveySettings, survey
from .work_folder import opened

DRAWN = 160  # people drawn where no crowd is given
SEED = 20200601
SIDE = 512  # of drawn faces


@dataclass(frozen=True)
class Crowd:
    """People to stand in for others.

    embeddings : (n, 512) what a recognizer says of each. poses : (n, 3). shapes : (n, points, 2). morph : fitted to them.
    drawn : whether they were drawn by the generator and do not exist.
    """

    faces: list[FaceRecord]
    embeddings: NDArray[np.float32]
    poses: NDArray[np.float64]
    shapes: NDArray[np.float64]
    morph: Morph
    drawn: bool

    def __len__(self) -> int:
        return len(self.faces)

    def vector(self, member: int) -> NDArray[np.float32]:
        return self.morph.encode(self.faces[member].portrait())

    def without(self, people: NDArray[np.float32], alike: float) -> Crowd:
        """The crowd without those who may be one of these people: cosine above ``alike``."""
        kept = np.flatnonzero((self.embeddings @ people.T).max(axis=1) <= alike)
        faces = [self.faces[i] for i in kept]
        return Crowd(faces, self.embeddings[kept], self.poses[kept], self.shapes[kept], self.morph, self.drawn)

    def pose_directions(self) -> NDArray[np.float64]:
        """How the shape changes with turn and nod (2, points, 2): a least-squares fit over the crowd."""
        pose = self.poses[:, :2]
        x = np.column_stack([np.ones(len(pose)), pose])
        fitted: NDArray[Any] = np.linalg.lstsq(x, self.shapes.reshape(len(x), -1), rcond=None)[0]
        directions: NDArray[np.float64] = fitted[1:].reshape(2, -1, 2)
        return directions


def gather(folder: Path | None, work: Path, size: int, workers: int, progress: Progress, least: int) -> Crowd:
    """The crowd of a folder, with its records in ``work``; without one, people drawn from the generator.

    Drawn people are kept, with their records, for the next time: they are nobody's data.
    """
    if folder is None:
        place = drawn_faces(DRAWN, progress)
        drawn = {_name(i) for i in range(DRAWN)}
        with opened(place / ".records") as kept:
            return _crowd([p for p in list_photos(place) if p.name in drawn], kept, size, workers, progress, least, drawn=True)
    return _crowd(list_photos(folder), work, size, workers, progress, least, drawn=False)


def _crowd(photos: list[Photo], work: Path, size: int, workers: int, progress: Progress, least: int, drawn: bool) -> Crowd:
    found, _ = survey(photos, work, SurveySettings(size), workers, progress, "looking at the crowd")
    if len(found) < least:
        raise NotEnoughPeople(
            f"the crowd needs at least {least} faces, but {len(found)} were found in it: add photos, or lower k"
        )
    embeddings, poses, shapes = [], [], []
    for portrait in Portraits(found):
        embeddings.append(portrait.embedding)
        poses.append(pose_of(portrait.points))
        shapes.append(mesh_points(portrait))
    morph = Morph(size).fit_shapes(shapes)
    return Crowd(found, np.stack(embeddings), np.stack(poses), np.stack(shapes), morph, drawn)  # type: ignore[arg-type]


def drawn_faces(number: int, progress: Progress = silent) -> Path:
    """A folder with faces of people who do not exist, drawn once and kept beside the models."""
    place = networks.home() / "crowd" / f"mobilestylegan-{SEED}-{SIDE}"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    state = place.lstat()
    if os.name != "nt" and (state.st_uid != os.geteuid() or state.st_mode & 0o002):
        raise OutputError(f"{place} can be written by others, so its people may exist: remove it, or set OMOKAGE_HOME")
    missing = [i for i in range(number) if not (place / _name(i)).exists()]
    if not missing:
        return place
    from ..networks.generator import load_generator

    generator = load_generator()
    done = number - len(missing)
    progress("drawing people who do not exist", done, number)
    for i in missing:
        (pictures,) = generator.sample(1, seed=SEED + i, truncation=0.8, size=SIDE)
        write_whole(place / _name(i), encode_picture(pictures[0], ".png"))
        done += 1
        progress("drawing people who do not exist", done, number)
    return place


def _name(number: int) -> str:
    return f"{number:04d}.png"
