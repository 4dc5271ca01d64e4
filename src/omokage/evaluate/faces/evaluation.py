"""A written release of faces judged against its photos: recognition, FID, labels, and what the map alone would hide (MIKU-2020).

The key says which photo became which picture. The photos are looked at again, in a folder that only its owner can read and that
is removed at the end; every different released picture is measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ...base.matrix import Labels
from ...base.scratch import scratch
from ...errors import InputError, MapError, VerificationError
from ...faces.image import Picture, decoded, encode_picture
from ...faces.listing import Photo, list_photos
from ...faces.maps import OURS, Networks, require_networks
from ...faces.survey import Found, Look, survey
from ...faces.written import FOLDER, classes_of_pictures
from ...release.certificate import Certificate
from ...release.certificate import Found as Counted
from ...release.counting import count
from ...release.key import read_key
from ...release.verify import verify
from .figures import FaceEvaluation, Measured, Pair, calibrations, figures
from .labels import Agreement, LabelDistance, agreements, label_distances, read_labels
from .measure import LEAST, attribute_labels, measure
from .way import Way

Progress = Callable[[str, int, int], None]
SAMPLE = 100  # faces sent through the map without averaging, at most
JUDGES = ("arcface", "facenet", "dlib-resnet", "inception")  # the networks that judge
SHOWN, _SIDE = 8, 160  # pictures to show, and their side

__all__ = ["FaceEvaluation", "FaceLink", "evaluate_faces", "link_faces"]


@dataclass(frozen=True)
class FaceLink:
    """A release of faces with its key: secret.

    pictures : a file for every different picture. photos : the photo of each record. groups : its picture, a row of
    ``pictures``. persons : whom it shows. found : counted on the bytes.
    """

    certificate: Certificate
    found: Counted
    pictures: tuple[Path, ...]
    photos: tuple[str, ...] = field(repr=False)
    groups: Labels = field(repr=False)
    persons: Labels = field(repr=False)


def link_faces(release: Path, key: Path) -> FaceLink:
    """Read a release and its key, and check that they belong together and that the release keeps its promise."""
    certificate, digest = Certificate.read(release)
    if certificate.medium != "faces":
        raise InputError(f"{release} is not a release of faces: omokage evaluate judges tables")
    secret = read_key(key, digest)
    result = verify(release, key=key)
    if not result.passed:
        failed = ", ".join(check.name for check in result.checks if not check.passed)
        raise VerificationError(f"the release does not keep its promise ({failed}), so it is not evaluated")
    names, classes = classes_of_pictures(release / FOLDER)
    if secret.faces is None or [names[row] for row in secret.rows] != secret.faces.files:
        raise InputError(f"{key.name} does not link every released face once")
    rows, by_name = secret.place, secret.persons_by_row()
    people = np.arange(len(rows)) if secret.persons is None else np.array(secret.persons, np.int64)
    first = np.unique(classes, return_index=True)[1]
    return FaceLink(
        certificate,
        count(classes, persons=by_name),
        tuple(release / FOLDER / names[i] for i in first),
        tuple(secret.faces.photos),
        classes[rows],
        people,
    )


def evaluate_faces(
    photos: Path,
    release: Path,
    key: Path,
    *,
    labels: Path | None = None,
    networks: Networks = OURS,
    keep_originals: bool = False,
    workers: int = 2,
    progress: Progress = lambda stage, done, of: None,
) -> FaceEvaluation:
    """Attack a release of faces, and measure how good its pictures are.

    Parameters
    ----------
    photos : the folder that the release was made from
    release, key : what ``omokage faces`` wrote
    labels : CSV with a column image and columns of −1 and 1: true labels for |AV − gAV| instead of predicted ones
    networks : the networks that were given when the release was made, if any were
    keep_originals : keep eight originals, to be shown beside what became of them; for the owner's eyes alone
    """
    link = link_faces(release, key)
    way = Way.of(link.certificate, networks)
    there = {photo.name: photo for photo in list_photos(photos)}
    missing = len({name for name in link.photos if name not in there})
    if missing:
        of = len(set(link.photos))
        raise InputError(f"{missing} of the {of} photos that the key names are not in {photos}: give the folder they came from")
    given = None if labels is None else read_labels(labels, link.photos)
    sample, notes = _sample(link, way)
    require_networks(way.group, way.synthesis, way.steps, networks, JUDGES)
    with scratch() as work:
        found = _seen_again([there[name] for name in dict.fromkeys(link.photos)], link, way, work, workers, progress)
        originals, released, unaveraged = measure(
            found, link.pictures, sample, way, work, workers, lambda done, of: progress("measuring faces", done, of)
        )
        pairs = _pairs(found, link, keep_originals)
    agreement, distances, source = _labels(originals, released, link, given)
    return FaceEvaluation(
        link.certificate,
        link.found,
        len(found),
        len(np.unique(link.persons)),
        "the calm ground" if way.calm else "their own background",
        figures(originals, released, link.groups, link.persons, link.persons),
        None
        if unaveraged is None
        else figures(originals, unaveraged, np.arange(len(sample)), link.persons[sample], link.persons),
        calibrations(originals, link.persons),
        agreement,
        distances,
        source,
        notes,
        pairs,
    )


def _sample(link: FaceLink, way: Way) -> tuple[list[int], tuple[str, ...]]:
    """Which faces are sent through the map one by one; none, with a note, where the map is not there."""
    notes = tuple(
        f"The release was not attacked in the codes of its own {which} map: {reason}."
        for which in ("group", "synthesis")
        if (reason := way.missing(which)) is not None
    )
    try:
        way.synthesis_map()
    except (MapError, ImportError) as error:
        return [], (f"The un-averaged baseline is missing: {error}.", *notes)
    n = len(link.photos)
    return sorted(np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False).tolist()), notes


def _seen_again(photos: list[Photo], link: FaceLink, way: Way, work: Path, workers: int, progress: Progress) -> list[Found]:
    """The faces of the key's records, in its order."""
    look = Look(max(way.size, LEAST), way.every_face, way.aligned, None)
    found, _ = survey(photos, work, look, workers, lambda done, of: progress("finding faces", done, of))
    if [photos[face.photo].name for face in found] != list(link.photos):
        raise InputError(
            f"the key names {len(link.photos)} faces, but {len(found)} are found in the same photos now: were they changed?"
        )
    return found


def _labels(
    originals: Measured, released: Measured, link: FaceLink, given: tuple[tuple[str, ...], Any] | None
) -> tuple[tuple[Agreement, ...], tuple[LabelDistance, ...], str | None]:
    """Agreement by the network, |AV − gAV| by true labels or the network's; what is not there is left empty."""
    names, before, after = attribute_labels(), originals.attributes, released.attributes
    agreement: tuple[Agreement, ...] = ()
    if before is not None and after is not None:
        agreement = agreements(before, after[link.groups], names)
    if given is not None:
        return agreement, label_distances(given[1], given[0], link.groups), "given"
    if before is None:
        return agreement, (), None
    return agreement, label_distances(before, names, link.groups), "predicted"


def _pairs(found: Sequence[Found], link: FaceLink, keep_originals: bool) -> tuple[Pair, ...]:
    """Pictures to show: one member of every group first, then a second."""
    order, sizes = np.argsort(link.groups, kind="stable"), np.bincount(link.groups)
    turn = np.empty(len(order), np.int64)  # 0 for a group's first record, 1 for its second, …
    turn[order] = np.arange(len(order)) - np.repeat(sizes.cumsum() - sizes, sizes)
    chosen = np.lexsort((link.groups, turn))[:SHOWN]
    return tuple(
        Pair(
            _small(decoded(link.pictures[link.groups[i]].read_bytes())),
            _small(found[i].portrait().crop) if keep_originals else None,
        )
        for i in chosen
    )


def _small(picture: Picture) -> bytes:
    return encode_picture(np.asarray(cv2.resize(picture, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)), ".jpg", 88)
