"""MORPH: shapes and textures averaged apart; the mean alone is decoded, and no member shows through."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from drawn import drawn_portrait

from omokage.errors import MapError, PhotoError
from omokage.faces.maps import make_face_map
from omokage.faces.maps.direct import Direct
from omokage.faces.maps.ground import ground
from omokage.faces.maps.mesh import Mesh, face_edge, mesh_points, outline
from omokage.faces.maps.morph import Morph
from omokage.faces.portrait import PARTS, Portrait

SIZE = 128


@pytest.fixture(scope="module")
def people() -> list[Portrait]:
    return [drawn_portrait(seed, SIZE) for seed in range(8)]


@pytest.fixture(scope="module")
def morph(people) -> Morph:
    return Morph(SIZE).fit(people)


def test_a_portrait_is_kept_in_bytes(people):
    again = Portrait.of_arrays(people[0].arrays())
    assert np.array_equal(again.crop, people[0].crop)
    assert np.allclose(again.points, people[0].points, atol=1e-4)
    assert np.abs(again.parts.astype(int) - people[0].parts).mean() < 6
    with pytest.raises(PhotoError, match="damaged"):
        Portrait.of_arrays(people[0].arrays() | {"crop": people[0].arrays()["crop"][:500]})


def test_the_mesh_reads_hairline_and_outline_off_the_parts(people):
    points = mesh_points(people[0])
    assert points.shape == (68 + 7 + 21 + 16, 2)
    assert (points >= 0).all()
    assert (points <= 1).all()
    centre = people[0].points[36:48].mean(0) / SIZE
    top = outline(points)[10]
    assert 0.3 < centre[1] - top[1] < 0.42  # the drawn hair reaches 0.34 to 0.38 above the eyes
    assert 0.15 < centre[1] - face_edge(points)[17:].min(0)[1] < 0.3  # and the drawn skin 0.24


def test_bending_to_its_own_points_changes_nothing(people):
    points = mesh_points(people[0])
    bent = Mesh.over(points, SIZE).bend(people[0].crop, points)
    assert np.abs(bent.astype(int) - people[0].crop).max() <= 1


def test_bending_moves_points_onto_points(people):
    """A dot at a landmark lands on the other shape's landmark."""
    source, target = mesh_points(people[0]), mesh_points(people[1])
    dots = np.zeros((SIZE, SIZE), np.uint8)
    for landmark in (30, 8, 36):
        dots[:] = 0
        cv2.circle(dots, tuple(np.round(source[landmark] * SIZE).astype(int).tolist()), 3, 255, -1)
        bent = Mesh.over(target, SIZE).bend(dots, source)
        y, x = np.nonzero(bent > 128)
        assert np.hypot(x.mean() - target[landmark, 0] * SIZE, y.mean() - target[landmark, 1] * SIZE) < 1.5


def test_one_person_comes_back_before_the_calm_ground(people, morph):
    person = people[0]
    got = morph.decode(morph.encode(person)).astype(float)
    wanted = person.on(ground(SIZE))
    inside = cv2.erode(person.part("face"), np.ones((7, 7))) > 0.9
    assert np.abs(got - wanted)[inside].mean() < 6
    corner = got[:8, :8]
    assert np.abs(corner - ground(SIZE)[:8, :8]).max() <= 1  # the noise of the background is gone


def test_the_mean_of_equal_people_is_that_person(people, morph):
    vector = morph.encode(people[2])
    again = morph.decode((vector + vector + vector) / np.float32(3))
    assert np.abs(again.astype(int) - morph.decode(vector)).max() <= 2


def test_shape_is_averaged_in_its_own_space(people, morph):
    vectors = [morph.encode(p) for p in people]
    mean = morph.shape_of(np.mean(vectors, 0))
    assert np.allclose(mean, np.mean([mesh_points(p) for p in people], 0), atol=1e-5)


def test_morph_is_sharper_than_direct(people, morph):
    """The eyes of a plain average are smeared; MORPH's stay dark and narrow."""
    direct = Direct(SIZE)
    one, other = (m.decode(np.mean([m.encode(p) for p in people], 0)) for m in (morph, direct))
    eye = np.round(np.mean([p.points[36:42].mean(0) for p in people], 0)).astype(int)
    patch = (slice(eye[1] - 1, eye[1] + 2), slice(eye[0] - 1, eye[0] + 2))
    assert one[patch].mean() < other[patch].mean() - 3


@pytest.mark.parametrize("k", [2, 4, 8])
def test_one_members_detail_weighs_at_most_twice_its_share(people, morph, k):
    """A mark on one member's cheek: in the group's face it has at most 2/k of its contrast, texture given back or not."""
    marked = people[0].crop.copy()
    cheek = np.round((people[0].points[2] + people[0].points[31]) / 2).astype(int)
    cv2.circle(marked, tuple(cheek.tolist()), 3, (0, 0, 0), -1)
    other = Portrait(marked, people[0].points, people[0].parts)
    rest = [morph.encode(p) for p in people[1:k]]
    for texture in (0.0, 1.0):
        made = Morph(SIZE, texture).fit_shapes([morph.reference_])
        plain, with_mark = (made.decode(np.mean([made.encode(p), *rest], 0)).astype(int) for p in (people[0], other))
        contrast = np.abs(marked.astype(int) - people[0].crop).max()
        assert np.abs(plain - with_mark).max() <= 2 * contrast / k + 6


def test_a_minority_shows_neither_hat_nor_glasses(people, morph):
    """Two of eight wear black glasses: they are left out of the skin's average, and no shadow of them is seen."""
    at, face = PARTS.index("glasses"), PARTS.index("face")
    wearing = []
    for p in people[:2]:
        crop, parts = p.crop.copy(), p.parts.copy()
        low, high = np.floor(p.points[36:48].min(0) - 5).astype(int), np.ceil(p.points[36:48].max(0) + 5).astype(int)
        window = (slice(low[1], high[1]), slice(low[0], high[0]))
        crop[window] = 0
        parts[window] = 0
        parts[(*window, at)] = 255
        assert face == 0
        wearing.append(Portrait(crop, p.points, parts))
    plain = morph.decode(np.mean([morph.encode(p) for p in people], 0)).astype(int)
    mixed = morph.decode(np.mean([morph.encode(p) for p in wearing + people[2:]], 0)).astype(int)
    between = np.round(np.mean([p.points[27] for p in people], 0)).astype(int)  # the bridge of the nose, under the glasses
    assert np.abs(plain - mixed)[between[1] - 2 : between[1] + 3, between[0] - 2 : between[0] + 3].max() < 15


def test_skin_alone_has_no_hair(people, morph):
    skin = morph.decode_skin(morph.encode(people[0]), mesh_points(people[0]))
    top = outline(mesh_points(people[0]))[10] * SIZE
    assert skin[int(top[1]) + 4, int(top[0])].mean() > 130  # the drawn hair is darker than 120


def test_what_cannot_be():
    with pytest.raises(MapError, match="texture must lie between 0 and 1"):
        Morph(SIZE, texture=1.5)
    with pytest.raises(MapError, match="needs at least one portrait"):
        Morph(SIZE).fit([])
    for name in ("recognition", "attribute"):
        with pytest.raises(MapError, match="cannot draw a face from its numbers: choose latent, direct, morph"):
            make_face_map(name, size=SIZE)
    with pytest.raises(MapError, match="morph cannot group: choose recognition, attribute, latent, direct"):
        make_face_map("morph", group=True, size=SIZE)
    with pytest.raises(MapError, match="no face map 'mosaic'"):
        make_face_map("mosaic", size=SIZE)


def test_a_vector_of_another_size_is_refused(morph):
    with pytest.raises(MapError, match="cannot decode"):
        morph.decode(np.zeros(100, np.float32))
