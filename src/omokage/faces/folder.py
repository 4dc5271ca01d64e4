"""A folder of photos becomes a folder of faces, each shared by at least k people, with a certificate.

Survey (find, align, parse, recognize) → group people in the group map's space → unify each group in the synthesis map's
space → write one picture per photo under a random name → read the written bytes back, count, certify.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.files import claimed, write_whole
from ..base.matrix import Labels, check_k
from ..base.persons import person_codes, person_weights
from ..base.seeds import seed_from
from ..base.workers import spread
from ..errors import InputError, NotEnoughPeople, OutputError
from ..method.grouping import GROUPERS, parse_grouper
from ..method.maps.parts import part_of
from ..method.unify import Mean
from ..release.certificate import Certificate, FaceMethod, KAnonymity, Source
from ..release.counting import count
from ..release.key import Faces, Key
from ..release.leaks import inspect_pictures
from ..release.publish import Filled, publish, require_places
from .codes import Code, kept_codes, load_codes
from .image import Picture, encode_picture
from .listing import Photo, list_photos
from .maps import CODED, GROUP_MAPS, OURS, Networks, face_map, require_networks
from .maps.mesh import mesh_points
from .survey import Found, LeftOut, Look, survey
from .work_folder import inner, opened, remove, work_of
from .written import FOLDER, classes_of_pictures

Progress = Callable[[str, int, int], None]
POSE_WEIGHT = 1.0  # of the head's turn beside a recognizer's 512 numbers of length 1


@dataclass(frozen=True)
class FaceSettings:
    """How a folder of faces is anonymized.

    k : least number of people in a group. group_map : {"recognition", "attribute", "latent", "direct"}, the space to group
    in. synthesis_map : {"morph", "latent", "direct"}, the space to average in. size : side of the pictures. texture : how
    much fine contrast is given back (morph), 0 … 1. grouping : the grouper. format : of the written pictures. every_face :
    all faces of a photo, not only the largest. aligned : the photos are aligned square crops already. steps : steps of
    inversion after the encoder's guess (latent). networks : one's own generator, encoder, attribute network.
    """

    k: int
    group_map: str = "recognition"
    synthesis_map: str = "morph"
    size: int = 256
    texture: float = 1.0
    grouping: str = "cells"
    format: str = "png"
    every_face: bool = False
    aligned: bool = False
    steps: int = 0
    networks: Networks = OURS

    def __post_init__(self) -> None:
        check_k(self.k)
        if self.group_map not in GROUP_MAPS:
            raise InputError(f"there is no group map {self.group_map!r} for faces: they are {', '.join(GROUP_MAPS)}")
        if not 64 <= self.size <= 1024 or self.size % 32:
            raise InputError(f"the size must be a multiple of 32 from 64 to 1024, but it is {self.size}")
        if self.format not in ("png", "jpg", "webp"):
            raise InputError(f"pictures are written as png, jpg or webp, not as {self.format!r}")
        face_map(self.synthesis_map, self.size, self.texture, self.steps, self.networks)
        parse_grouper(self.grouping, self.k)

    @property
    def look(self) -> Look:
        return Look(self.size, self.every_face, self.aligned, "arcface" if self.group_map == "recognition" else None)


@dataclass(frozen=True)
class FolderRelease:
    """What was written: where, its certificate, and what could not be taken."""

    path: Path
    certificate: Certificate
    left_out: tuple[LeftOut, ...]


def anonymize_folder(
    folder: Path,
    output: Path,
    settings: FaceSettings,
    *,
    person_from: str | None = None,
    persons: Path | None = None,
    key: Path | None = None,
    sign: Path | None = None,
    overwrite: bool = False,
    seed: int | None = None,
    workers: int = 2,
    progress: Progress = lambda stage, done, of: None,
) -> FolderRelease:
    """Anonymize a folder of photos into ``output``.

    What was done before a run was killed is kept in a hidden folder beside ``output`` and not done again; it is removed
    when the release is written.
    """
    with claimed(output):
        require_places(output, key, overwrite)
        photos = list_photos(folder, person_from, persons)
        if settings.every_face and person_from is not None:
            raise InputError(
                "where photos say whom they show, only the largest face of each is that person: leave out --every-face"
            )
        _require_elsewhere(folder, output)
        require_networks(settings.group_map, settings.synthesis_map, settings.steps, settings.networks)
        with opened(work_of(output)) as work:
            seed = _settled(seed, work)
            found, left = survey(photos, work, settings.look, workers, lambda done, of: progress("finding faces", done, of))
            people = _people(photos, found, settings.k)
            progress("grouping", 0, 1)
            labels = grouped(group_features(found, settings, work, workers, progress), people, settings, seed)
            progress("grouping", 1, 1)
            pictures = unified(found, people, labels, settings, work, workers, progress)

        def fill(stage: Path) -> Filled:
            return _fill(stage, photos, found, left, people, labels, pictures, settings, seed, person_from is not None)

        publish(output, fill, key=key, sign=sign, overwrite=overwrite)
        try:
            remove(work)
        except OutputError as error:
            raise OutputError(f"the release is written, but {error}") from None
    return FolderRelease(output, Certificate.read(output)[0], tuple(left))


def _people(photos: list[Photo], found: list[Found], k: int) -> Labels:
    """Whom each face shows, as a number; refused if they are too few for k."""
    codes = person_codes(np.array([photos[f.photo].person or str(i) for i, f in enumerate(found)])) if found else None
    total = 0 if codes is None else int(codes.max()) + 1
    if codes is None or total < k:
        raise NotEnoughPeople(f"k = {k} needs at least {k} people, but faces of {total} were found: lower k")
    return codes


def _require_elsewhere(folder: Path, output: Path) -> None:
    here, there = folder.resolve(), output.resolve()
    if there == here or here in there.parents:
        raise OutputError("the output must not lie in the folder of the photos: give another place")


def _settled(seed: int | None, work: Path) -> int:
    """The seed of this run, kept so that a run that goes on makes the same groups."""
    kept = work / "seed"
    if seed is None and kept.is_file():
        text = kept.read_text(encoding="ascii", errors="replace")
        if text.isdigit():
            return int(text)
    chosen = seed_from(seed)
    write_whole(kept, str(chosen).encode(), private=True)
    return chosen


# ---------------------------------------------------------------------- grouping


def group_features(
    found: list[Found], settings: FaceSettings, work: Path, workers: int, progress: Progress = lambda stage, done, of: None
) -> NDArray[np.float64]:
    """Every face in the group map's space."""
    if settings.group_map == "recognition":
        seen = np.stack([face.features for face in found]).astype(np.float64)
        return np.column_stack([seen[:, :-3], POSE_WEIGHT * seen[:, -3]])
    steps = settings.steps if settings.group_map == "latent" else 0
    size = settings.size if settings.group_map == "latent" else 0
    kept = kept_codes(found, Code(settings.group_map, size, steps, settings.networks), work, workers, progress)
    return load_codes(kept).astype(np.float64)


def grouped(z: NDArray[np.float64], people: Labels, settings: FaceSettings, seed: int) -> Labels:
    """A group for every face: people are grouped by the mean of their faces, so all faces of one go together."""
    grouper = parse_grouper(settings.grouping, settings.k)
    if "random_state" in grouper.get_params():
        grouper.set_params(random_state=seed)
    labels: Labels = grouper.fit_predict(Mean().unify(z, people))[people]
    return labels


# ---------------------------------------------------------------------- unifying


def unified(
    found: list[Found], people: Labels, labels: Labels, settings: FaceSettings, work: Path, workers: int, progress: Progress
) -> list[Path]:
    """One encoded picture per group, in the work folder; those that are there already are not made again."""
    reference = _reference(found, settings, work)
    coded: list[Path | None] = [None] * len(found)
    if settings.synthesis_map in CODED:
        code = Code(settings.synthesis_map, settings.size, settings.steps, settings.networks)
        coded = list(kept_codes(found, code, work, workers, progress))
    place = inner(work, "pictures")
    members = [np.flatnonzero(labels == g) for g in range(int(labels.max()) + 1)]
    pictures, tasks = [], []
    for rows in members:
        weights = person_weights(people[rows])
        shares = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
        inside = [_Member(found[i].record, found[i].number, float(w), coded[i]) for i, w in zip(rows, shares, strict=True)]
        how = [settings.synthesis_map, settings.size, settings.texture, settings.steps, settings.format]
        how += settings.networks.digests.values()
        name = hashlib.sha256(json.dumps([[m.record.name, m.number, m.share] for m in inside] + how).encode()).hexdigest()
        pictures.append(place / f"{name}.{settings.format}")
        if not pictures[-1].exists():
            tasks.append((inside, reference, settings, pictures[-1]))
    done = len(members) - len(tasks)
    progress("making faces", done, len(members))
    for _ in spread(_unify_one, tasks, workers):
        done += 1
        progress("making faces", done, len(members))
    return pictures


def _reference(found: list[Found], settings: FaceSettings, work: Path) -> Path | None:
    """The mean shape of all faces, which MORPH bends to."""
    if settings.synthesis_map != "morph":
        return None
    whose = hashlib.sha256("".join(face.record.name for face in found).encode()).hexdigest()[:16]
    path = work / f"reference-{whose}.npy"
    if not path.exists():
        step = max(1, len(found) // 512)  # a mean of some hundreds is that of all
        total = sum(mesh_points(face.portrait()) for face in found[::step])
        sink = io.BytesIO()
        np.save(sink, total / len(found[::step]))
        write_whole(path, sink.getvalue(), private=True)
    return path


@lru_cache(maxsize=1)
def _fitted(settings: FaceSettings, reference: Path | None) -> Any:
    made = face_map(settings.synthesis_map, settings.size, settings.texture, settings.steps, settings.networks)
    return made.fit([] if reference is None else [np.load(reference, allow_pickle=False)])


@dataclass(frozen=True)
class _Member:
    """A face of a group: where it lies, its share in the mean, and its numbers if they were made before."""

    record: Path
    number: int
    share: float
    code: Path | None

    def vector(self, synthesis: Any) -> NDArray[np.float32]:
        if self.code is not None:
            kept: NDArray[np.float32] = np.load(self.code, allow_pickle=False)
            return kept
        made: NDArray[np.float32] = synthesis.encode(Found(0, self.record, self.number, np.zeros(0, np.float32)).portrait())
        return made


def _unify_one(inside: list[_Member], reference: Path | None, settings: FaceSettings, target: Path) -> None:
    """The mean of a group's vectors, taken one after the other, decoded and encoded as a picture file."""
    synthesis = _fitted(settings, reference)
    total: NDArray[np.float32] | None = None
    for member in inside:
        vector = member.vector(synthesis) * np.float32(member.share)
        total = vector if total is None else np.add(total, vector, out=total)
    picture: Picture = synthesis.decode(total)
    write_whole(target, encode_picture(picture, f".{settings.format}"), private=True)


# ---------------------------------------------------------------------- writing


def _fill(
    stage: Path, photos: list[Photo], found: list[Found], left: list[LeftOut], people: Labels, labels: Labels,
    pictures: list[Path], settings: FaceSettings, seed: int, named: bool,
) -> Filled:  # fmt: skip
    """Write every face under a random name, read all back, count, and look at the files as an attacker."""
    folder = stage / FOLDER
    folder.mkdir()
    names = sorted(f"{secrets.token_hex(8)}.{settings.format}" for _ in found)
    if len(set(names)) < len(names):
        raise OutputError("two random names were the same: try again")
    rows = np.random.Generator(np.random.PCG64(secrets.randbits(128))).permutation(len(found))  # never from the seed
    key = Key(labels, rows.astype(np.int64), people if named else None, seed)
    for row, record in enumerate(np.argsort(rows)):  # in the order of the names, which inodes and times then follow
        (folder / names[row]).write_bytes(pictures[labels[record]].read_bytes())
    files = [names[row] for row in rows]
    classes = classes_of_pictures(folder)[1]
    certificate = Certificate(
        promise=KAnonymity(settings.k, "persons" if named else "photos"),
        found=count(classes, persons=key.persons_by_row()),
        method=_method(settings),
        columns=(),
        source=Source(len(photos), 0),
        around=inspect_pictures(folder, files, _unreleased(photos)),
        notes=_notes(left, named),
    )
    faces = Faces([photos[f.photo].name for f in found], files, [(each.photo, each.reason) for each in left])
    return Filled(certificate, key, faces)


def _unreleased(photos: list[Photo]) -> set[str]:
    """Names of photos and people, which no file of the release may hold."""
    return {text for photo in photos for text in (photo.name, photo.path.name, photo.person) if text}


def _method(settings: FaceSettings) -> FaceMethod:
    return FaceMethod(
        grouping=part_of(parse_grouper(settings.grouping, settings.k), GROUPERS),
        group_map=settings.group_map,  # type: ignore[arg-type]
        synthesis_map=settings.synthesis_map,  # type: ignore[arg-type]
        size=settings.size,
        format=settings.format,  # type: ignore[arg-type]
        texture=float(settings.texture),
        steps=settings.steps,
        every_face=settings.every_face,
        aligned=settings.aligned,
        networks=dict(settings.networks.digests),  # type: ignore[arg-type]
    )


def _notes(left: list[LeftOut], named: bool) -> tuple[str, ...]:
    """Counts only: the names of photos stay outside of the release."""
    notes = []
    reasons = Counter(each.reason for each in left)
    if reasons:
        told = "; ".join(f"{number} because {reason}" for reason, number in reasons.most_common())
        notes.append(f"{len(left)} photos were left out: {told}.")
    if not named:
        notes.append("Every photo was taken for a different person: where one person is in several, k counts them several times.")
    return tuple(notes)
