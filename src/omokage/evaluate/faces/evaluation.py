"""A written release of faces judged against its photos: recognition, FID, labels, and what the map alone would hide (MIKU-2020).

The key says which photo became which picture. The photos are looked at again, in a folder that only its owner can read and that
is removed at the end; every different released picture is measured once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ...base.matrix import Labels
from ...base.progress import Progress, silent
from ...base.scratch import scratch
from ...errors import InputError, MapError, VerificationError
from ...faces.image import Picture, decoded, encode_picture
from ...faces.listing import Photo, list_photos
from ...faces.maps import OURS, Networks, require_networks
from ...faces.pictures import FOLDER, classes_of_written
from ...faces.survey import FaceRecord, SurveySettings, survey
from ...release.certificate import Certificate
from ...release.certificate import Found as Counted
from ...release.contents import Contents
from ...release.counting import count
from ...release.key import read_key
from ...release.verify import verify
from .figures import FaceEvaluation, Measured, Pair, calibrations, figures
from .labels import Agreement, LabelDistance, agreements, label_distances, read_labels
from .measure import LEAST, attribute_labels, measure
from .published import WHICH, PublishedMaps

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
    paths = sorted(file.path for file in certificate.files)
    names, classes = [path.removeprefix(f"{FOLDER}/") for path in paths], classes_of_written(Contents(release), paths)
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
    progress: Progress = silent,
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
    maps = PublishedMaps.of(link.certificate, networks)
    there = {photo.name: photo for photo in list_photos(photos)}
    missing = len({name for name in link.photos if name not in there})
    if missing:
        of = len(set(link.photos))
        raise InputError(f"{missing} of the {of} photos that the key names are not in {photos}: give the folder they came from")
    given = None if labels is None else read_labels(labels, link.photos)
    sample, notes = _sample(link, maps)
    require_networks(*_at_hand(maps), judges=JUDGES)
    with scratch() as work:
        found = _seen_again([there[name] for name in dict.fromkeys(link.photos)], link, maps, work, workers, progress)
        originals, released, unaveraged = measure(found, link.pictures, sample, maps, workers, progress)
        pairs = _pairs(found, link, keep_originals)
    agreement, distances, source = _labels(originals, released, link, given)
    return FaceEvaluation(
        link.certificate,
        link.found,
        len(found),
        len(np.unique(link.persons)),
        "a plain ground" if maps.plain_ground else "their own background",
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


def _sample(link: FaceLink, maps: PublishedMaps) -> tuple[list[int], tuple[str, ...]]:
    """Which faces are sent through the map one by one; none, with a note, where the map is not there."""
    notes = tuple(
        f"The release was not attacked in the codes of its own {which} map: {reason}."
        for which in WHICH
        if (reason := maps.missing(which)) is not None
    )
    try:
        maps.make("synthesis")
    except (MapError, ImportError) as error:
        return [], (f"The un-averaged baseline is missing: {error}.", *notes)
    n = len(link.photos)
    return sorted(np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False).tolist()), notes


def _at_hand(maps: PublishedMaps) -> list[Any]:
    """The release's maps whose networks were given, or are ours."""
    return [maps.make(which) for which in WHICH if maps.missing(which) is None]


def _seen_again(
    photos: list[Photo], link: FaceLink, maps: PublishedMaps, work: Path, workers: int, progress: Progress
) -> list[FaceRecord]:
    """The faces of the key's records, in its order."""
    method = maps.method
    settings = SurveySettings(max(method.size, LEAST), method.every_face, method.aligned, None)
    found, _ = survey(photos, work, settings, workers, progress)
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


def _pairs(found: Sequence[FaceRecord], link: FaceLink, keep_originals: bool) -> tuple[Pair, ...]:
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
