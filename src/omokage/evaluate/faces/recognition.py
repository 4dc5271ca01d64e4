"""Recognition: the attacker holds photos of everyone, the released pictures, and a face recognition network or any other map.

A released picture stands for all members of its group alike, so naming one person is right for that person's records only: in
expectation over the records, whoever is named, at most the share ``bound``, which is groups/persons where everyone has one photo.
Whether the network still points into the group at all is ``in_group``. Neither says that a face is anonymous because this network
does not know it: :func:`calibrate` says how well it knows faces that nobody touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...base.intervals import Risk, wilson
from ...base.matrix import Labels
from ...errors import InputError

Embeddings = NDArray[np.floating[Any]]  # (n, d)
_ROWS, _COLUMNS = 1024, 8192  # of a block of similarities: 32 MB
_BINS = 100_000  # thresholds are counted in steps of 1/_BINS


@dataclass(frozen=True)
class Acceptance:
    """Same person or not, by a threshold: the share of members' pairs accepted where others' are accepted at most at ``far``."""

    far: float
    tar: float
    interval: tuple[float, float]
    threshold: float


@dataclass(frozen=True)
class Linkage:
    """Who is named right by an attacker who takes the nearest photo.

    rate : share of released records whose person is the one that the attacker names; interval : Wilson's. bound : the most that
    any attacker can reach; chance : naming at random. in_group : share of pictures whose nearest photo shows a member, beside
    chance.
    """

    rate: float
    interval: tuple[float, float]
    bound: float
    chance: float
    in_group: Risk
    pictures: int
    records: int
    persons: int


@dataclass(frozen=True)
class Recognition(Linkage):
    """What a face recognition network finds; nearest is by cosine.

    member_cosine, other_cosine : mean similarity of a picture with photos of its members, and of all others. accepted : true
    against false acceptance; empty if there are no others.
    """

    member_cosine: float
    other_cosine: float
    accepted: tuple[Acceptance, ...]


def recognize(
    pictures: Embeddings,
    groups: Any,
    persons: Any,
    gallery: Embeddings,
    gallery_persons: Any = None,
    *,
    fars: tuple[float, ...] = (1e-2, 1e-3),
    confidence: float = 0.95,
) -> Recognition:
    """Attack a release of faces.

    Parameters
    ----------
    pictures : (groups, d) embeddings of the released pictures
    groups, persons : (records,) the picture that each record was released as, by its row, and whom the record shows
    gallery : (photos, d) what the attacker holds: the originals, or other photos of the same people, and of more
    gallery_persons : (photos,) whom they show; by default the gallery is the originals, in the order of the records
    """
    probes, photos = _unit(pictures, "pictures"), _unit(gallery, "gallery")
    who = _setting(probes.shape, photos.shape, groups, persons, gallery_persons)
    best, nearest = np.full(len(probes), -np.inf, np.float32), np.zeros(len(probes), np.int64)
    members, counts, total = np.empty(len(who.photo), np.float32), np.zeros(2 * _BINS + 1, np.int64), 0.0
    for rows, columns in _blocks(len(probes), len(photos)):
        cosine = probes[rows] @ photos[columns].T
        who.collect(members, cosine, rows, columns)
        total += float(cosine.sum(dtype=np.float64))
        counts += np.bincount(_bin(cosine).ravel(), minlength=len(counts))
        at = cosine.argmax(axis=1)
        found = cosine[np.arange(len(at)), at]
        nearest[rows] = np.where(found > best[rows], at + columns.start, nearest[rows])
        best[rows] = np.maximum(found, best[rows])
    counts -= np.bincount(_bin(members), minlength=len(counts))
    others = int(counts.sum())
    return Recognition(
        **who.linkage(nearest, confidence),
        member_cosine=float(members.mean(dtype=np.float64)),
        other_cosine=(total - float(members.sum(dtype=np.float64))) / others if others else float("nan"),
        accepted=tuple(_accepted(members, counts, far, confidence) for far in fars) if others else (),
    )


def link(
    pictures: Embeddings,
    groups: Any,
    persons: Any,
    gallery: Embeddings,
    gallery_persons: Any = None,
    *,
    ruler: Literal["distance", "direction"] = "distance",
    confidence: float = 0.95,
) -> Linkage:
    """Attack in the space of a map: name the person whose photo has the nearest code.

    Parameters
    ----------
    pictures, groups, persons, gallery, gallery_persons : see :func:`recognize`; codes of any map instead of embeddings
    ruler : "distance" is Euclidean. "direction" compares deviations from the photos' mean by their direction: averaging makes
        them shorter, and the attacker knows that
    """
    photos = _matrix(gallery, "gallery").astype(np.float64)
    probes, photos = _matrix(pictures, "pictures") - photos.mean(0), photos - photos.mean(0)
    who = _setting(probes.shape, photos.shape, groups, persons, gallery_persons)
    if ruler == "direction":
        probes, photos = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (probes, photos))
    lengths = np.square(photos).sum(1)
    best, nearest = np.full(len(probes), np.inf), np.zeros(len(probes), np.int64)
    for rows, columns in _blocks(len(probes), len(photos)):
        far = lengths[columns] - 2 * (probes[rows] @ photos[columns].T)
        at = far.argmin(axis=1)
        found = far[np.arange(len(at)), at]
        nearest[rows] = np.where(found < best[rows], at + columns.start, nearest[rows])
        best[rows] = np.minimum(found, best[rows])
    return Linkage(**who.linkage(nearest, confidence))


def within(
    pictures: Embeddings,
    groups: Any,
    persons: Any,
    gallery: Embeddings,
    gallery_persons: Any = None,
    *,
    distance: float = 0.6,
    confidence: float = 0.95,
) -> Risk:
    """Share of a picture's pairs with photos of its members that lie within a Euclidean ``distance``; others' is the baseline.

    For networks with a fixed threshold on embeddings that are not normalised: dlib calls 0.6 the same person.
    """
    probes, photos = _matrix(pictures, "pictures"), _matrix(gallery, "gallery")
    who = _setting(probes.shape, photos.shape, groups, persons, gallery_persons)
    members, near = np.empty(len(who.photo), np.float32), 0
    lengths = np.square(probes).sum(axis=1), np.square(photos).sum(axis=1)
    for rows, columns in _blocks(len(probes), len(photos)):
        squared = lengths[0][rows, None] + lengths[1][columns] - 2 * (probes[rows] @ photos[columns].T)
        who.collect(members, squared, rows, columns)
        near += int((squared <= distance**2).sum())
    hits = int((members <= distance**2).sum())
    others = len(probes) * len(photos) - len(members)
    return Risk(hits / len(members), wilson(hits, len(members), confidence), (near - hits) / others if others else float("nan"))


def calibrate(embeddings: Embeddings, persons: Any, **options: Any) -> Recognition:
    """How well the network knows faces that nobody touched: each person's second photo, sought among everyone's first.

    ``rate`` is then the usual rank-1 identification rate. People with one photo are there to be mistaken for.
    """
    x, of = _matrix(embeddings, "embeddings"), _codes(persons, "persons")
    if len(of) != len(x):
        raise InputError(f"there are {len(x)} embeddings and {len(of)} persons; one person is needed for each")
    order = np.argsort(of, kind="stable")
    first = np.r_[True, np.diff(of[order]) > 0]
    second = np.r_[False, first[:-1]] & ~first
    gallery, probes = order[first], order[second]
    if not len(probes):
        raise InputError("calibration needs people with two photos or more, and there are none")
    return recognize(x[probes], np.arange(len(probes)), of[probes], x[gallery], of[gallery], **options)


@dataclass(frozen=True)
class _Setting:
    """Who is in which group, and every pair of a picture with a photo of one of its members. Persons are numbers."""

    groups: Labels  # (records,)
    persons: Labels  # (records,)
    holders: Labels  # (photos,) whom a photo shows
    picture: Labels  # (pairs,) ascending
    photo: Labels  # (pairs,)
    known: Labels  # (memberships, 2) group and person
    bound: float
    everyone: int

    def collect(self, into: NDArray[Any], block: NDArray[Any], rows: slice, columns: slice) -> None:
        """Write the values of the pairs that lie in a block to their places."""
        begin, end = np.searchsorted(self.picture, [rows.start, rows.stop])
        inside = begin + np.flatnonzero((self.photo[begin:end] >= columns.start) & (self.photo[begin:end] < columns.stop))
        into[inside] = block[self.picture[inside] - rows.start, self.photo[inside] - columns.start]

    def linkage(self, nearest: Labels, confidence: float) -> dict[str, Any]:
        """The figures of an attacker for whom these photos (pictures,) are the nearest."""
        named, records = self.holders[nearest], len(self.persons)
        rate = float((named[self.groups] == self.persons).mean())
        return {
            "rate": rate, "interval": wilson(rate * records, records, confidence), "bound": self.bound,
            "chance": 1.0 / self.everyone, "in_group": self.in_group(named, confidence), "pictures": len(named),
            "records": records, "persons": len(np.unique(self.persons)),
        }  # fmt: skip

    def in_group(self, named: Labels, confidence: float) -> Risk:
        """Share of pictures for which a member is named."""
        group, person = self.known.T
        hits = int((named[group] == person).sum())
        return Risk(hits / len(named), wilson(hits, len(named), confidence), len(group) / len(named) / self.everyone)


def _setting(probes: tuple[int, ...], held_photos: tuple[int, ...], groups: Any, persons: Any, gallery_persons: Any) -> _Setting:
    pictures, photos, group = probes[0], held_photos[0], np.asarray(groups)
    if probes[1] != held_photos[1]:
        raise InputError(f"pictures and gallery need as many numbers a face, not {probes[1]} and {held_photos[1]}")
    if not np.issubdtype(group.dtype, np.integer) or not np.array_equal(np.unique(group), np.arange(pictures)):
        raise InputError(f"groups are rows of the {pictures} pictures, 0 to {pictures - 1}, and each stands for a record")
    shown = np.asarray(persons)
    held = shown if gallery_persons is None else np.asarray(gallery_persons)
    if shown.shape != group.shape or held.shape != (photos,):
        raise InputError(
            f"one person is needed for each of {group.size} records and {photos} photos, not {shown.size} and {held.size}"
        )
    code = _codes(np.concatenate([shown, held]), "persons")
    person, holder = code[: len(shown)], code[len(shown) :]
    known, records = np.unique(np.stack([group, person], axis=1), axis=0, return_counts=True)
    most = np.zeros(pictures, np.int64)
    np.maximum.at(most, known[:, 0], records)
    order = np.argsort(holder, kind="stable")
    begin, end = (np.searchsorted(holder[order], known[:, 1], side) for side in ("left", "right"))
    count = end - begin  # photos of each member
    photo = order[np.repeat(end - count.cumsum(), count) + np.arange(count.sum())]
    if not len(photo):
        raise InputError("the gallery shows nobody who is in the release")
    picture = np.repeat(known[:, 0], count)
    return _Setting(group, person, holder, picture, photo, known, float(most.sum()) / len(person), len(np.unique(holder)))


def _accepted(members: NDArray[Any], others: Labels, far: float, confidence: float) -> Acceptance:
    """The lowest threshold that lets at most the share ``far`` of the others in."""
    above = np.append(others[::-1].cumsum()[::-1], 0)  # others at or above each step; one more step lets nobody in
    step = int(np.argmax(above <= int(far * above[0])))
    hits = int((_bin(members) >= step).sum())
    return Acceptance(far, hits / len(members), wilson(hits, len(members), confidence), step / _BINS - 1)


def _bin(cosine: NDArray[Any]) -> NDArray[np.int64]:
    return ((np.clip(cosine, -1, 1) + 1) * _BINS).astype(np.int64)


def _blocks(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    for i in range(0, rows, _ROWS):
        for j in range(0, columns, _COLUMNS):
            yield slice(i, min(i + _ROWS, rows)), slice(j, min(j + _COLUMNS, columns))


def _codes(persons: Any, what: str) -> Labels:
    names = np.asarray(persons)
    if names.ndim != 1 or not names.size:
        raise InputError(f"{what} are a list of names or numbers, not of shape {names.shape}")
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _matrix(embeddings: Embeddings, what: str) -> NDArray[np.float32]:
    x = np.asarray(embeddings)
    if x.ndim != 2 or not x.size or not np.issubdtype(x.dtype, np.number) or not np.isfinite(x).all():
        raise InputError(f"{what} are finite numbers in a matrix, a row for each face; the shape given is {x.shape}")
    return x.astype(np.float32, copy=False)


def _unit(embeddings: Embeddings, what: str) -> NDArray[np.float32]:
    x = _matrix(embeddings, what)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    if not length.all():
        raise InputError(f"{what} hold a row of zeros, which has no direction")
    return x / length
