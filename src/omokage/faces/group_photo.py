"""A group photo in which the faces are replaced by those of groups of at least k people, instead of a mosaic.

``nearest``: a person's face only chooses among the faces of groups of at least k others; none of its pixels and not its
shape is used. ``join``: the face becomes the mean of the person and the k − 1 nearest of the crowd. In both the new face
takes on the place, the size, the tilt, the turn and nod of the head and the light of the old one: a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..base.matrix import check_k
from ..base.progress import Progress, silent
from ..base.scratch import scratch
from ..errors import InputError, NotEnoughPeople
from ..method.grouping import Cells
from ..method.unify import Mean
from .align import Alignment, Points, ffhq_alignment
from .blend import face_mask, lit
from .crowd import Crowd, gather
from .find import Face, Finder
from .image import Picture
from .maps.mesh import face_edge, mesh_points
from .parse import Parser
from .portrait import Portrait
from .pose import pose_of
from .recognize import ArcFace, DlibRecognizer

Way = Literal["nearest", "join"]
PROMISES = {
    "nearest": (
        "each replaced face is the mean of a group of at least {k} others, chosen as the nearest; of the person's own face "
        "none of the pixels and not the shape is used"
    ),
    "join": "each replaced face is the mean of {k} people: the person and the {others} nearest of the crowd",
}
TAKEN_OVER = (
    "Taken over from the person: the place, size and tilt of the face, its width and height, the turn and nod of the head, "
    "the light on it (mean colour, and how it changes across and down), and how sharp it is: 18 numbers. The new face lies "
    "behind the person's own hair and ends where the old one ended."
)
NOT_COVERED = (
    "Not covered: a face that was not found (look at the picture before you hand it out), hair, ears, neck, body, clothes, the "
    "place, a caption, and what people know of who was there."
)
ALIKE = 0.35  # a crowd member with a higher cosine may be the person, and is left out of the crowd
SIDES = (256, 512)


@dataclass(frozen=True)
class Replaced:
    """What became of one face. Cosine and distance compare the released face with the original."""

    number: int
    box: tuple[int, int, int, int]
    became: str
    group: int | None = None
    arcface_cosine: float | None = None
    dlib_distance: float | None = None


@dataclass(frozen=True)
class PhotoRelease:
    """An anonymized photo: the picture, what was promised, and what became of each face."""

    picture: Picture = field(repr=False)
    way: Way
    k: int
    promise: str
    crowd: int
    drawn: bool
    faces: tuple[Replaced, ...]

    def notes(self) -> list[str]:
        """What to be careful with."""
        notes = []
        if self.drawn and self.way == "join":
            notes.append("The crowd was drawn by a generator: of the k people in a mean only one is real.")
        if self.drawn and self.way == "nearest":
            notes.append("The crowd was drawn by a generator: the k people in a mean do not exist.")
        if not self.drawn:
            notes.append("Every photo of the crowd was taken for a different person.")
        covered = [str(face.number) for face in self.faces if face.became == "covered"]
        if covered:
            notes.append(f"Faces {', '.join(covered)} were too small, turned away or not sure: they were covered, not replaced.")
        known = [str(f.number) for f in self.faces if f.dlib_distance is not None and f.dlib_distance <= 0.6]
        if known:
            notes.append(
                f"Faces {', '.join(known)} are still within dlib's distance of 0.6 of the original: take a larger k or crowd."
            )
        return [*notes, TAKEN_OVER, NOT_COVERED]

    def to_dict(self) -> dict[str, Any]:
        """What was promised and measured, for the report beside the picture."""
        return {**{name: value for name, value in asdict(self).items() if name != "picture"}, "notes": self.notes()}


def find_faces(photo: Picture) -> list[Face]:
    """All faces of a group photo, numbered from the left by their place in this list."""
    reach = 640 if max(photo.shape[:2]) < 1000 else 1920
    return sorted(Finder(reach=reach, least=8.0).find(photo), key=lambda face: face.box[0] + face.box[2])


def preview(photo: Picture) -> tuple[Picture, list[Face]]:
    """The photo with a numbered frame around every face; green can be replaced, orange will be covered."""
    faces = find_faces(photo)
    out = np.ascontiguousarray(photo).copy()
    line = max(2, round(max(photo.shape[:2]) / 500))
    for number, face in enumerate(faces, 1):
        left, top, right, bottom = (round(v) for v in face.box)
        colour = (70, 200, 90) if face.trouble is None else (255, 150, 40)
        cv2.rectangle(out, (left, top), (right, bottom), colour, line)
        size = max(0.5, (right - left) / 110)
        (wide, high), _ = cv2.getTextSize(str(number), cv2.FONT_HERSHEY_SIMPLEX, size, line)
        cv2.rectangle(out, (left, top - high - 3 * line), (left + wide + 2 * line, top), colour, -1)
        cv2.putText(out, str(number), (left + line, top - line), cv2.FONT_HERSHEY_SIMPLEX, size, (0, 0, 0), line, cv2.LINE_AA)
    return out, faces


def anonymize_photo(
    photo: Picture,
    k: int,
    *,
    way: Way = "nearest",
    crowd: Path | None = None,
    keep: Sequence[int] = (),
    workers: int = 2,
    progress: Progress = silent,
) -> PhotoRelease:
    """Replace every face of a photo but those in ``keep`` (numbers from the left, as :func:`preview` shows them).

    Raises
    ------
    InputError
        If no face is found, or ``keep`` names one that is not there.
    NotEnoughPeople
        If the crowd is too small for k.
    """
    check_k(k)
    if way not in PROMISES:
        raise InputError(f"the way is nearest or join, not {way!r}")
    faces = find_faces(photo)
    if not faces:
        raise InputError("no face was found in the photo: nothing was written")
    for number in keep:
        if not 1 <= number <= len(faces):
            raise InputError(f"there is no face {number}: the photo has {len(faces)}, see --preview")
    chosen = [i for i, face in enumerate(faces) if i + 1 not in keep and face.trouble is None]
    covered = [i for i, face in enumerate(faces) if i + 1 not in keep and face.trouble is not None]
    longest = max((1 / ffhq_alignment(faces[i].points, 1).scale for i in chosen), default=0.0)
    size = SIDES[0] if longest <= 1.4 * SIDES[0] else SIDES[1]
    picture, number = photo, 0
    stand_ins: list[_StandIn] = []
    if chosen:
        with scratch() as work:
            people = gather(crowd, work, size, workers, progress, least=k)
            picture, stand_ins = _replace(photo, [faces[i] for i in chosen], people, k, way, size, progress)
            number = len(people)
    for i in covered:
        picture = _cover(picture, faces[i])
    report = _measured(photo, picture, faces, dict(zip(chosen, stand_ins, strict=True)), set(covered))
    return PhotoRelease(picture, way, k, PROMISES[way].format(k=k, others=k - 1), number, crowd is None, tuple(report))


# ---------------------------------------------------------------------- replacing


@dataclass(frozen=True)
class _Person:
    """A person of the photo: the alignment, the portrait, and the pose."""

    align: Alignment
    portrait: Portrait
    pose: NDArray[np.float64]


@dataclass(frozen=True)
class _StandIn:
    """Who is averaged in a person's stead: members of the crowd, the number of their group, and the person or not."""

    members: NDArray[np.int64]
    group: int
    own: bool


def _replace(
    photo: Picture, faces: list[Face], crowd: Crowd, k: int, way: Way, size: int, progress: Progress
) -> tuple[Picture, list[_StandIn]]:
    parser, recognizer = Parser(), ArcFace()
    people, embeddings = [], []
    for face in faces:
        align = ffhq_alignment(face.points, size)
        crop = align.crop(photo)
        embeddings.append(recognizer.embed(photo, face.points))
        people.append(_Person(align, Portrait(crop, align.forward(face.points), parser.parse(crop)), pose_of(face.points)))
    seen = np.stack(embeddings)
    others = crowd.without(seen, ALIKE)
    if len(others) < k:
        raise NotEnoughPeople(f"k = {k} needs a crowd of at least {k} others, but it has {len(others)}: add photos, or lower k")
    near = _space(seen, np.stack([person.pose for person in people]))
    stand_ins = _nearest(near, others, k) if way == "nearest" else _joined(near, others, k)
    directions = others.pose_directions()
    picture = photo
    for number, (person, stand_in) in enumerate(zip(people, stand_ins, strict=True), 1):
        vector, pose = _mean(person, stand_in, others)
        shape = _posed(person, others.morph.shape_of(vector), pose, directions)
        skin = others.morph.decode_skin(vector, shape)
        mask = face_mask(person.portrait, shape)
        picture = person.align.paste(picture, lit(skin, person.portrait, mask), mask)
        progress("replacing faces", number, len(people))
    return picture, stand_ins


def _nearest(seen: NDArray[np.float64], crowd: Crowd, k: int) -> list[_StandIn]:
    """For each person the nearest group of the crowd; no two people get the same face while there are enough groups."""
    z = _space(crowd.embeddings, crowd.poses)
    labels = Cells(k, random_state=0).fit_predict(z)
    middles = Mean().unify(z, labels)
    far = np.linalg.norm(seen[:, None] - middles[None], axis=-1)
    if len(middles) >= len(seen):
        chosen = linear_sum_assignment(far)[1]
    else:
        chosen = far.argmin(axis=1)
    return [_StandIn(np.flatnonzero(labels == group), int(group), own=False) for group in chosen]


def _joined(seen: NDArray[np.float64], crowd: Crowd, k: int) -> list[_StandIn]:
    """For each person the k − 1 nearest of the crowd, to be averaged with the person."""
    far = np.linalg.norm(seen[:, None] - _space(crowd.embeddings, crowd.poses)[None], axis=-1)
    return [_StandIn(np.argsort(row, kind="stable")[: k - 1], number, own=True) for number, row in enumerate(far)]


def _space(embeddings: NDArray[np.float32], poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a recognizer says, and the turn of the head, which counts so much that groups look one way."""
    return np.column_stack([embeddings, 1.5 * poses[:, 0]]).astype(np.float64)


def _mean(person: _Person, stand_in: _StandIn, crowd: Crowd) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The mean vector, and the mean turn and nod of those in it."""
    total = sum(crowd.vector(int(member)) for member in stand_in.members)
    poses = crowd.poses[stand_in.members, :2]
    if stand_in.own:
        total = total + crowd.morph.encode(person.portrait)
        poses = np.vstack([poses, person.pose[:2]])
    return np.asarray(total / np.float32(len(poses))), poses.mean(0, dtype=np.float64)


def _posed(person: _Person, shape: Points, pose: NDArray[np.float64], directions: NDArray[np.float64]) -> Points:
    """The mean shape, turned and nodded like the person's head, and as wide and as high as the face."""
    change = np.clip(person.pose[:2] - pose, -0.35, 0.35)
    posed = shape + np.tensordot(change, directions, axes=1)
    target = mesh_points(person.portrait)
    inner = slice(0, -16)  # the frame stays
    mine, theirs = face_edge(posed), face_edge(target)
    stretch = np.clip(np.ptp(theirs, axis=0) / np.ptp(mine, axis=0), 0.85, 1.2)
    centre = (mine.min(0) + mine.max(0)) / 2
    posed[inner] = (posed[inner] - centre) * stretch + (theirs.min(0) + theirs.max(0)) / 2
    posed[inner] = np.clip(posed[inner], 0.01, 0.99)
    return posed


def _cover(picture: Picture, face: Face) -> Picture:
    """A face that cannot be replaced, blurred to a patch of colour."""
    left, top, right, bottom = face.box
    height, width = picture.shape[:2]
    side = max(right - left, bottom - top)
    middle = (round((left + right) / 2), round((top + bottom) / 2))
    axes = (max(2, round(0.58 * (right - left))), max(2, round(0.58 * (bottom - top))))
    x0, y0 = max(0, round(middle[0] - side)), max(0, round(middle[1] - side))
    x1, y1 = min(width, round(middle[0] + side) + 1), min(height, round(middle[1] + side) + 1)
    out = picture.copy()
    part = out[y0:y1, x0:x1]
    if not part.size:
        return out
    mask: NDArray[Any] = np.zeros(part.shape[:2], np.float32)
    cv2.ellipse(mask, (middle[0] - x0, middle[1] - y0), axes, 0, 0, 360, 1.0, -1)
    mask = cv2.GaussianBlur(mask, (0, 0), 0.05 * side)[..., None]
    part[:] = np.round(part * (1 - mask) + cv2.GaussianBlur(part, (0, 0), 0.35 * side) * mask).astype(np.uint8)
    return out


def _measured(
    before: Picture, after: Picture, faces: list[Face], stand_ins: dict[int, _StandIn], covered: set[int]
) -> list[Replaced]:
    """What became of each face, and what two recognizers say of it at the same place."""
    judges = (ArcFace(), DlibRecognizer()) if stand_ins else None
    report = []
    for i, face in enumerate(faces):
        left, top, right, bottom = (round(v) for v in face.box)
        became = "replaced" if i in stand_ins else "covered" if i in covered else "kept"
        cosine = distance = None
        if judges is not None and i in stand_ins:
            cosine = round(float(judges[0].embed(before, face.points) @ judges[0].embed(after, face.points)), 3)
            distance = round(float(np.linalg.norm(judges[1].embed(before, face.points) - judges[1].embed(after, face.points))), 3)
        group = stand_ins[i].group if i in stand_ins else None
        report.append(Replaced(i + 1, (left, top, right, bottom), became, group, cosine, distance))
    return report
