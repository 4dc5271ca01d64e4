"""A mark on one member of a group keeps at most 2/k of its contrast: in any part, however many show that part, of any kind.

The people are drawn, so this is tested everywhere; experiments/marks.py does the same to photos.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import pytest
from drawn import drawn_portrait

from omokage.faces.blend import face_mask, lit
from omokage.faces.maps.mesh import face_edge, mesh_points
from omokage.faces.maps.morph import Morph
from omokage.faces.portrait import PARTS, Portrait

SIZE = 96
PLACES = ("hair", "forehead", "beard", "cheek", "glasses", "hat", "neck", "clothes", "ears")
COVER = {"forehead": "hair", "beard": "clothes", "cheek": "hair", "ears": "hair", "neck": "clothes", "glasses": "face"}


def region(person: Portrait, place: str) -> np.ndarray:
    """Where a place lies on a drawn person, whatever is shown there."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    points, skin = person.points, person.part("face") > 0.5
    eyes, nose, chin = points[36:48, 1].mean(), points[33, 1], points[8, 1]
    if place == "forehead":
        return skin & (y < points[17:27, 1].mean())
    if place == "cheek":
        return skin & (y > eyes) & (y < nose)
    if place == "beard":
        return skin & (y > nose) & (y < chin)
    if place == "glasses":
        low, high = points[36:48].min(0) - 4, points[36:48].max(0) + 4
        return (x > low[0]) & (x < high[0]) & (y > low[1]) & (y < high[1])
    if place == "hat":
        return (person.part("hair") > 0.5) & (y < points[19, 1] - SIZE * 0.1)
    if place == "ears":
        return ((np.abs(x - points[0, 0]) < 4) | (np.abs(x - points[16, 0]) < 4)) & (np.abs(y - nose) < 8)
    if place == "clothes":
        return (y > SIZE * 0.85) & (np.abs(x - SIZE / 2) > SIZE * 0.12) & (np.abs(x - SIZE / 2) < SIZE * 0.3)
    return person.part(place) > 0.5


def showing(person: Portrait, where: np.ndarray, part: str | None) -> Portrait:
    """The person showing another part there; the background if there is none."""
    parts = person.parts.copy()
    parts[where] = 0
    if part is not None:
        parts[where, PARTS.index(part)] = 255
    return Portrait(person.crop, person.points, parts)


def marks(person: Portrait, where: np.ndarray) -> dict[str, Portrait]:
    """Marks of several kinds on middle grey, so that they may go up and down by 127."""
    rows, columns = np.nonzero(where)
    middle = np.argmin(np.hypot(rows - rows.mean(), columns - columns.mean()))
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    far = np.hypot(y - rows[middle], x - columns[middle])
    patterns = {
        "dot": np.where(far < 2.5, 255, 128),
        "target": np.where(far < 1.2, 255, np.where(far < 9, 0, 128)),  # the worst for what sharpens
        "stripes": np.where(y % 3 == 0, 255, 0),
        "patch": np.where(far > 6, 128, np.where(y % 3 == 0, 255, 0)),
        "whole": np.full(far.shape, 255),
    }
    out = {}
    for name, pattern in {"none": np.full(far.shape, 128), **patterns}.items():
        crop = person.crop.copy()
        crop[where] = pattern[where][:, None]
        out[name] = Portrait(crop, person.points, person.parts)
    return out


@lru_cache
def people() -> list[Portrait]:
    return [drawn_portrait(seed, SIZE) for seed in range(16)]


@lru_cache
def morph(texture: float = 1.0) -> Morph:
    return Morph(SIZE, texture).fit(people())


@lru_cache
def encoded(member: int, place: str, shows: bool) -> np.ndarray:
    """One of the others, who shows the part of that place there or has something else before it."""
    person = people()[member]
    return morph().encode(showing(person, region(person, place), part_of(place) if shows else COVER.get(place)))


@lru_cache
def owner(place: str) -> dict[str, np.ndarray]:
    """The first person, who shows the part there, with each mark and with none."""
    where = region(people()[0], place)
    return {name: morph().encode(each) for name, each in marks(showing(people()[0], where, part_of(place)), where).items()}


def part_of(place: str) -> str:
    return place if place in PARTS else "face"


def kept(place: str, k: int, others: int, texture: float = 1.0) -> dict[str, float]:
    """What each mark on the first person keeps, as a share of its contrast, if so many others show the part."""
    rest = np.sum([encoded(member, place, member <= others) for member in range(1, k)], axis=0)
    decoder, shape = morph(texture), morph().reference_
    faces = {}
    for name, vector in owner(place).items():
        mean = ((vector + rest) / k).astype(np.float32)
        faces[name] = np.stack([decoder.decode(mean), decoder.decode_skin(mean, shape)]).astype(int)
    contrast = {"dot": 127, "target": 128, "stripes": 128, "patch": 128, "whole": 127}
    # a step is rounded on either side
    return {name: (np.abs(faces[name] - faces["none"]).max() - 1) / contrast[name] for name in contrast}


@pytest.mark.parametrize("k", [2, 4, 8, 16])
@pytest.mark.parametrize("place", PLACES)
def test_a_mark_keeps_at_most_two_kths_of_its_contrast(place, k):
    for others in sorted({0, k // 2 - 1, k // 2, k - 1}):
        for kind, share in kept(place, k, others).items():
            assert share <= 2 / k, (kind, others)


@pytest.mark.parametrize("texture", [0.0, 0.5])
def test_nor_does_it_with_less_texture(texture):
    assert max(kept("forehead", 4, 1, texture).values()) <= 0.5


def test_the_bound_is_tight():
    """Half of the members show the part: then the bound is nearly reached, and nothing is given away for nothing."""
    assert max(kept("hair", 4, 1).values()) > 0.45
    assert max(kept("cheek", 4, 3).values()) > 0.37


def test_what_all_show_keeps_half_of_the_bound_without_texture():
    """A plain mean, then."""
    assert 0.2 < max(kept("cheek", 4, 3, texture=0.0).values()) <= 0.28


def test_a_background_leaves_no_trace():
    """Whatever a member stands before, whole walls of it: the face of the group is the same."""
    person = people()[0]
    away = cv2.dilate(person.parts.max(-1), np.ones((5, 5))) == 0
    assert away.sum() > 1000
    rest = np.sum([morph().encode(each) for each in people()[1:4]], axis=0)
    faces = []
    for each in marks(person, away).values():
        mean = (morph().encode(each) + rest) / 4
        faces.append(np.stack([morph().decode(mean), morph().decode_skin(mean, morph().reference_)]))
    assert all(np.array_equal(face, faces[0]) for face in faces)


# ---------------------------------------------------------------------- laid into a photo


def replaced(person: Portrait, mean: np.ndarray) -> np.ndarray:
    """What ``omokage photo --way join`` makes of a crop."""
    shape = mesh_points(person)
    mask = face_mask(person, shape)
    laid = lit(morph().decode_skin(mean, shape), person, mask)
    return np.round(laid * mask[..., None] + person.crop * (1 - mask[..., None])).astype(int)


def covered(person: Portrait) -> np.ndarray:
    """Within the edge of the face, and not behind hair, which stays as it is."""
    edge = np.round((face_edge(mesh_points(person)) * SIZE - 0.5) * 16).astype(np.int32)
    inside = cv2.fillPoly(np.zeros((SIZE, SIZE), np.uint8), [edge], 1, shift=4) > 0
    return inside & (cv2.dilate(person.part("hair", "hat"), np.ones((9, 9))) == 0)


def test_the_old_face_is_covered_to_its_edge():
    """Whatever the new face's shape: no pixel of the old one stays within its edge."""
    for person, other in zip(people()[:4], people()[4:8], strict=True):
        assert face_mask(person, mesh_points(other))[covered(person)].min() > 0.999


@pytest.mark.parametrize("k", [4, 8, 16])
@pytest.mark.parametrize("place", ["forehead", "beard", "cheek", "glasses"])
def test_a_mark_on_a_face_in_a_photo(place, k):
    """The light and the sharpness are that of the marked face, and it is laid over the marked photo: still at most 2/k."""
    person = people()[0]
    where = region(person, place) & covered(person)
    every = marks(person, where)
    rest = np.sum([morph().encode(each) for each in people()[1:k]], axis=0)
    before = replaced(every["none"], (morph().encode(every["none"]) + rest) / k)
    for kind in ("dot", "target", "patch"):
        after = replaced(every[kind], (morph().encode(every[kind]) + rest) / k)
        assert (np.abs(after - before).max() - 3) / 128 <= 2 / k, kind  # skin, light and photo are rounded


def test_the_light_does_not_raise_contrast():
    """A photo much brighter than the crowd: the stand-in becomes as bright, but a mark in it no stronger."""
    person = people()[0]
    bright = Portrait(np.clip(person.crop.astype(int) + 60, 0, 255).astype(np.uint8), person.points, person.parts)
    mask = face_mask(bright, mesh_points(bright))
    nose = np.round(person.points[30]).astype(int).tolist()
    skin = cv2.circle(np.full_like(person.crop, 60), tuple(nose), 12, (90, 90, 90), -1)
    out = lit(skin, bright, mask).astype(int)
    beside = out[nose[1], nose[0] - 18]
    assert (beside > 150).all()
    assert (out[nose[1], nose[0]] - beside <= 34).all()
