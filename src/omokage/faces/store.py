"""The faces of a folder under a map: codes made once, and one picture for each group, by several processes and resumable."""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.files import write_whole
from ..base.matrix import Labels, members_of
from ..base.parts import part_of
from ..base.progress import Progress, silent
from ..base.workers import in_parallel
from .image import encode_picture
from .maps import FACE_MAPS, has_small_codes, is_listed
from .survey import FaceRecord, Portraits
from .work_folder import inner

_SAMPLE = 512  # portraits that a map is fitted to: a mean of some hundreds is that of all


class FaceStore:
    """Faces that were found, and a private folder for what is made of them.

    Parameters
    ----------
    faces : the faces, from :func:`~omokage.faces.survey.survey`
    work : where codes and pictures are kept
    workers : processes
    """

    def __init__(self, faces: Sequence[FaceRecord], work: Path, workers: int = 1, progress: Progress = silent) -> None:
        self.faces = faces
        self.work = work
        self.workers = workers
        self.progress = progress

    def fitted(self, mapping: Any) -> Any:
        """The map, fitted to a sample of the portraits."""
        return mapping.fit(Portraits(self.faces[:: max(1, len(self.faces) // _SAMPLE)]))

    def codes(self, mapping: Any) -> NDArray[np.float32]:
        """Every face under a fitted map (n, d). Those of listed maps are kept and not made again."""
        place = None if not is_listed(mapping) else inner(self.work, "codes", _folder_of(mapping))
        files = [None if place is None else place / f"{face.name}.npy" for face in self.faces]
        rows: list[NDArray[np.float32] | None] = [None if f is None or not f.exists() else _loaded(f) for f in files]
        tasks = [(at, face) for at, face in enumerate(self.faces) if rows[at] is None]
        stage, workers = f"mapping faces ({_name_of(mapping)})", 1 if getattr(mapping, "quick", False) else self.workers
        for at, vector in self._counted(_code_one, tasks, (mapping,), stage, len(rows), workers):
            rows[at] = vector
            if (file := files[at]) is not None:
                _keep(vector, file)
        return np.stack([row for row in rows if row is not None])

    def pictures(self, mapping: Any, labels: Labels, people: Labels, unifier: Any, format: str = "png") -> list[Path]:
        """One encoded picture for each group, from the mean of its faces under a fitted map; a person counts once."""
        weights = 1.0 / np.bincount(people)[people]
        members = members_of(labels)
        made = [self._picture_of(mapping, rows, weights, unifier, format) for rows in members]
        if has_small_codes(mapping):
            means = unifier.unify(self.codes(mapping), labels, weights)
            drawn = [(mean, to) for mean, to in zip(means, made, strict=True) if not to.exists()]
            results = self._counted(_draw_one, drawn, (mapping, format), "making faces", len(made), self.workers)
        else:
            groups = zip(members, made, strict=True)
            averaged = [([self.faces[i] for i in rows], weights[rows], to) for rows, to in groups if not to.exists()]
            results = self._counted(_unify_one, averaged, (mapping, unifier, format), "making faces", len(made), self.workers)
        for _ in results:
            pass
        return made

    def _picture_of(self, mapping: Any, rows: Any, weights: Any, unifier: Any, format: str) -> Path:
        """Where a group's picture is kept: its name changes with the members and with how they are unified."""
        part = asdict(part_of(mapping, FACE_MAPS)) if is_listed(mapping) else secrets.token_hex(16)
        inside = [[self.faces[i].name, float(weights[i])] for i in rows]
        text = json.dumps([inside, part, repr(unifier), format])
        return inner(self.work, "pictures") / f"{hashlib.sha256(text.encode()).hexdigest()}.{format}"

    def _counted(
        self, work: Any, tasks: Sequence[tuple[Any, ...]], shared: Any, stage: str, total: int, workers: int
    ) -> Iterator[Any]:
        done = total - len(tasks)
        self.progress(stage, done, total)
        for result in in_parallel(work, tasks, workers, shared=shared):
            done += 1
            self.progress(stage, done, total)
            yield result


def _folder_of(mapping: Any) -> str:
    part = part_of(mapping, FACE_MAPS)
    return f"{part.name}-{hashlib.sha256(json.dumps(asdict(part)).encode()).hexdigest()[:16]}"


def _name_of(mapping: Any) -> str:
    return FACE_MAPS.name_of(mapping).rpartition(":")[2]


def _loaded(file: Path) -> NDArray[np.float32]:
    kept: NDArray[np.float32] = np.load(file, allow_pickle=False)
    return kept


def _keep(vector: NDArray[np.float32], file: Path) -> None:
    sink = io.BytesIO()
    np.save(sink, vector)
    write_whole(file, sink.getvalue(), private=True)


def _code_one(mapping: Any, at: int, face: FaceRecord) -> tuple[int, NDArray[np.float32]]:
    return at, np.asarray(mapping.transform([face.portrait()])[0], np.float32)


def _draw_one(mapping: Any, format: str, vector: NDArray[np.float32], target: Path) -> None:
    """The picture of one vector, as a file."""
    (picture,) = mapping.inverse_transform(vector[None])
    write_whole(target, encode_picture(np.asarray(picture, np.uint8), f".{format}"), private=True)


def _unify_one(
    mapping: Any, unifier: Any, format: str, faces: Sequence[FaceRecord], weights: NDArray[np.float64], target: Path
) -> None:
    """The mean of a group's vectors, taken one after the other, as a picture file."""
    vectors = (mapping.transform([face.portrait()])[0] for face in faces)
    _draw_one(mapping, format, unifier.mean_of(vectors, weights), target)
