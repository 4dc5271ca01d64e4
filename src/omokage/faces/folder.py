"""A folder of photos as a medium: it becomes a folder of faces, each shared by at least k people.

Survey (find, align, parse, recognize) → group people in the group map's space → unify each group in the synthesis map's space →
write one picture per face under a random name → read the written bytes back, count, certify.
"""

from __future__ import annotations

import secrets
import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.persons import person_codes
from ..base.registry import Registry
from ..base.scratch import scratch
from ..base.threads import all_cores
from ..errors import InputError, MapError, NotEnoughPeople, OutputError
from ..release.certificate import Certificate, Found, Source
from ..release.contents import Contents
from ..release.counting import count
from ..release.key import Faces, Key
from ..release.medium import Counted, Plan, Recipe, Rendered
from ..release.methods import FaceMethod
from ..release.rules import Sensitive
from .listing import Photo, list_photos
from .maps import FACE_MAPS, require_networks
from .pictures import Pictures, PictureWriter, classes_of_files, classes_of_written
from .store import FaceStore
from .survey import FaceRecord, LeftOut, SurveySettings, survey

Format = Literal["png", "jpg", "webp"]
FORMATS: tuple[Format, ...] = ("png", "jpg", "webp")


class FaceFolder:
    """A folder of photos.

    Parameters
    ----------
    photos : path
        The folder, searched recursively.
    person_from : {None, "folder", "csv"}
        Whom each photo shows: None takes every photo for a different person, "folder" the folder right above the photo for
        the person, "csv" reads the table ``persons``.
    persons : path, for ``person_from="csv"``
    every_face : all faces of a photo, not only the largest
    aligned : the photos are aligned square crops already
    format : {"png", "jpg", "webp"}
        Of the released pictures.
    work : path of a private folder
        Where crops, codes and pictures are kept, so that an interrupted run can resume; None keeps them only as long as the
        release is in use. :func:`omokage.faces.resuming.release_folder` chooses one beside the output.
    workers : int
        Processes; None uses every core.

    Examples
    --------
    >>> from omokage import Anonymizer, Cells
    >>> from omokage.faces import FaceFolder
    >>> from omokage.faces.maps.morph import Morph
    >>> from omokage.faces.maps.recognition import Recognition
    >>> anonymizer = Anonymizer(Cells(k=8), group_map=Recognition(), synthesis_map=Morph())
    >>> anonymizer.release(FaceFolder("photos")).write("out")  # doctest: +SKIP
    """

    maps: ClassVar[Registry] = FACE_MAPS

    def __init__(
        self,
        photos: str | Path,
        *,
        person_from: str | None = None,
        persons: str | Path | None = None,
        every_face: bool = False,
        aligned: bool = False,
        format: Format = "png",
        work: Path | None = None,
        workers: int | None = None,
    ) -> None:
        self.photos = photos
        self.person_from = person_from
        self.persons = persons
        self.every_face = every_face
        self.aligned = aligned
        self.format = format
        self.work = work
        self.workers = workers

    def prepare(self, plan: Plan) -> PreparedFaces:
        """Find every face; refuse what faces cannot do."""
        self._check_plan(plan)
        photos = self.check()
        size = int(getattr(plan.synthesis_map, "size", 256))
        settings = SurveySettings(size, self.every_face, self.aligned, getattr(plan.group_map, "recognizer", None))
        require_networks(plan.group_map, plan.synthesis_map)
        workers = self.workers or all_cores()
        with ExitStack() as stack:  # a temporary folder is removed at once if anything fails
            work = stack.enter_context(scratch()) if self.work is None else self.work
            found, left = survey(photos, work, settings, workers, plan.progress)
            store = FaceStore(found, work, workers, plan.progress)
            weakref.finalize(store, stack.pop_all().close)  # and else lasts as long as its faces are in use
        people = _people(photos, found, int(plan.k or 0))
        return PreparedFaces(self, plan, photos, left, store, people, size)

    def check(self) -> list[Photo]:
        """The photos that there are; what is wrong with the parameters is refused."""
        if self.format not in FORMATS:
            raise InputError(f"pictures are written as {', '.join(FORMATS)}, not as {self.format!r}")
        photos = list_photos(Path(self.photos), self.person_from, None if self.persons is None else Path(self.persons))
        if self.every_face and self.person_from is not None:
            raise InputError(
                "where photos say whom they show, only the largest face of each is that person: leave out --every-face"
            )
        return photos

    def _check_plan(self, plan: Plan) -> None:
        if plan.noise is not None:
            raise InputError("noise is for tables: faces are released in groups, so give a grouper")
        if plan.constraints:
            raise InputError("l-diversity and t-closeness need a table with a sensitive column")
        if plan.synthesis_map is None or plan.group_map is None:
            raise MapError("faces need a group map and a synthesis map: for example Recognition() and Morph()")
        if not hasattr(plan.unifier, "mean_of"):
            raise InputError(f"faces can only be averaged, not unified by {plan.unifier_name}: leave the unifier out")
        size = getattr(plan.synthesis_map, "size", 256)
        if not 64 <= size <= 1024 or size % 32:
            raise InputError(f"the size must be a multiple of 32 from 64 to 1024, but it is {size}")

    @classmethod
    def count(cls, contents: Contents, certificate: Certificate, persons: NDArray[Any] | None) -> Found:
        """Count written pictures on their decoded bytes."""
        return count(classes_of_written(contents, [file.path for file in certificate.files]), persons=persons)


@dataclass(frozen=True)
class PreparedFaces:
    """Faces that were found."""

    medium: FaceFolder
    plan: Plan
    photos: Sequence[Photo]
    left: Sequence[LeftOut]
    store: FaceStore
    people: Labels  # whom each face shows; every face another person where that is not known
    size: int
    mixed: bool = False

    @property
    def persons(self) -> Labels | None:
        return self.people if self.medium.person_from is not None else None

    @property
    def counted(self) -> Counted:
        return "photos" if self.persons is None else "persons"

    def vectors(self, ordinal: bool) -> NDArray[Any]:
        """Every face in the group map's space."""
        return self.store.codes(self.store.fitted(self.plan.group_map)).astype(np.float64)

    def sensitive(self) -> Sequence[Sensitive]:
        return ()

    def render(self, labels: Labels | None, recipe: Recipe) -> Rendered:
        """One picture for each group, and each face under a random name and in a random place."""
        if labels is None:
            raise InputError("faces are released in groups")
        medium, plan, faces = self.medium, self.plan, self.store.faces
        synthesis = self.store.fitted(plan.synthesis_map)
        pictures = self.store.pictures(synthesis, labels, self.people, plan.unifier, medium.format)
        names = sorted(f"{secrets.token_hex(8)}.{medium.format}" for _ in faces)
        if len(set(names)) < len(names):
            raise OutputError("two random names were the same: try again")
        rows = np.random.Generator(np.random.PCG64(secrets.randbits(128))).permutation(len(faces))  # never from the seed
        linked = Faces(
            [self.photos[face.photo].name for face in faces],
            [names[row] for row in rows],
            [(each.photo, each.reason) for each in self.left],
        )
        key = Key(labels, rows.astype(np.int64), self.persons, plan.seed, faces=linked)
        shown = Pictures([pictures[labels[record]] for record in np.argsort(rows)], keep=self.store)
        method = FaceMethod(
            **vars(recipe), size=self.size, format=medium.format, every_face=medium.every_face, aligned=medium.aligned
        )
        return Rendered(
            data=shown,
            key=key,
            found=count(classes_of_files(shown.files), persons=key.persons_by_row()),
            method=method,
            source=Source(len(self.photos), 0),
            writer=PictureWriter(shown, names, _unreleased(self.photos)),
            notes=self._notes(),
            group_map=plan.group_map,
            synthesis_map=synthesis,
        )

    def _notes(self) -> tuple[str, ...]:
        """Counts only: the names of photos stay outside of the release."""
        notes = []
        reasons = Counter(each.reason for each in self.left)
        if reasons:
            told = "; ".join(f"{number} because {reason}" for reason, number in reasons.most_common())
            notes.append(f"{len(self.left)} photos were left out: {told}.")
        if self.persons is None:
            notes.append(
                "Every photo was taken for a different person: where one person is in several, k counts them several times."
            )
        return tuple(notes)


def _people(photos: Sequence[Photo], found: Sequence[FaceRecord], k: int) -> Labels:
    """Whom each face shows, as a number; refused if they are too few for k."""
    codes = person_codes(np.array([photos[f.photo].person or str(i) for i, f in enumerate(found)])) if found else None
    total = 0 if codes is None else int(codes.max()) + 1
    if codes is None or total < k:
        raise NotEnoughPeople(f"k = {k} needs at least {k} people, but faces of {total} were found: lower k or add photos")
    return codes


def _unreleased(photos: Sequence[Photo]) -> set[str]:
    """Names of photos and people, which no file of the release may hold."""
    return {text for photo in photos for text in (photo.name, photo.path.name, photo.person) if text}
