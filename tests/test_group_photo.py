"""Group photos: every face is replaced or covered, the kept ones stay, and nothing else changes.

The people in them were drawn by the generator and do not exist, so no data set is needed; the networks are.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from omokage import networks
from omokage.errors import InputError, NotEnoughPeople
from omokage.faces import crowd as crowd_module
from omokage.faces import group_photo
from omokage.faces.group_photo import anonymize_photo, preview
from omokage.faces.image import read_photo

FRONTAL = (1, 3, 15)


@pytest.fixture(scope="module")
def party(people) -> np.ndarray:
    """Three people side by side, before a patterned wall, and a fourth who is far too small."""
    wall = np.full((420, 960, 3), 170, np.uint8)
    wall[::16] = 120
    for place, number in enumerate(FRONTAL):
        person = cv2.resize(read_photo(people[number]), (260, 260))
        wall[80:340, 40 + 300 * place : 300 + 300 * place] = person
    wall[10:34, 930:954] = cv2.resize(read_photo(people[7]), (24, 24), interpolation=cv2.INTER_AREA)
    return wall


@pytest.fixture(scope="module")
def crowd(people, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("crowd")
    for path in people[20:34]:
        shutil.copy(path, place)
    return place


@pytest.fixture(scope="module")
def once(crowd, tmp_path_factory):
    """The crowd, looked at once."""
    return crowd_module.gather(crowd, tmp_path_factory.mktemp("work"), 256, 1, lambda stage, done, of: None, 4)


@pytest.fixture
def gathered(once, monkeypatch):
    """Every photo is given this crowd."""
    monkeypatch.setattr(group_photo, "gather", lambda *arguments, **options: once)
    return once


@pytest.fixture(scope="module")
def released(party, once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_photo, "gather", lambda *arguments, **options: once)
        return anonymize_photo(party, 4, crowd=Path("gathered"))


def test_every_face_is_replaced_and_is_another_person(released, party):
    became = [face.became for face in released.faces]
    assert became[:3] == ["replaced"] * 3
    for face in released.faces[:3]:
        assert face.arcface_cosine < 0.45  # the same person: 0.5 and more
        assert face.dlib_distance > 0.5
    assert len({face.group for face in released.faces[:3]}) == 3  # no two people got the same face
    assert "mean of a group of at least 4 others" in released.promise


def test_nothing_changes_away_from_the_faces(released, party):
    changed = np.abs(released.picture.astype(int) - party).max(-1) > 0
    away = np.ones(party.shape[:2], bool)
    for face in released.faces:
        left, top, right, bottom = face.box
        wide, high = (right - left) // 2, (bottom - top) // 2
        away[max(0, top - high) : bottom + high, max(0, left - wide) : right + wide] = False
    assert not changed[away].any()
    assert changed[~away].mean() > 0.1


def test_the_edge_is_soft(released, party):
    """Where a face was laid in there is no step: the change grows from nothing."""
    change = np.abs(released.picture.astype(float) - party).mean(-1)
    face = released.faces[0]
    row = change[(face.box[1] + face.box[3]) // 2]
    first = np.flatnonzero(row > 0)[0]
    assert row[first : first + 3].max() < 0.5 * row.max()


def test_kept_faces_are_kept_to_the_bit(party, gathered):
    release = anonymize_photo(party, 4, crowd=Path("gathered"), keep=[2], workers=1)
    assert [face.became for face in release.faces[:3]] == ["replaced", "kept", "replaced"]
    left, top, right, bottom = release.faces[1].box
    assert np.array_equal(release.picture[top:bottom, left:right], party[top:bottom, left:right])
    with pytest.raises(InputError, match="there is no face 9"):
        anonymize_photo(party, 4, crowd=Path("gathered"), keep=[9], workers=1)


def test_of_the_persons_own_face_no_pixel_is_used(party, gathered, monkeypatch):
    """nearest encodes faces of the crowd alone; join encodes each person once besides."""
    from omokage.faces.maps.morph import Morph

    crops = {face.portrait().crop.tobytes() for face in gathered.faces}
    encoded: list[bytes] = []
    keep = Morph.encode

    def spy(self, portrait):
        encoded.append(portrait.crop.tobytes())
        return keep(self, portrait)

    monkeypatch.setattr(Morph, "encode", spy)
    anonymize_photo(party, 4, crowd=Path("gathered"))
    assert len(encoded) >= 3 * 4
    assert set(encoded) <= crops
    encoded.clear()
    anonymize_photo(party, 4, way="join", crowd=Path("gathered"))
    assert len(encoded) == 3 * 4
    assert sum(crop not in crops for crop in encoded) == 3


def test_join_promises_what_it_does(party, gathered, released):
    release = anonymize_photo(party, 4, way="join", crowd=Path("gathered"), workers=1)
    assert release.promise == "each replaced face is the mean of 4 people: the person and the 3 nearest of the crowd"
    for joined, nearest in zip(release.faces[:3], released.faces[:3], strict=True):
        assert joined.arcface_cosine > nearest.arcface_cosine  # a quarter of the person is in it


def test_a_person_in_the_crowd_is_no_other(party, people, crowd, released, tmp_path):
    """Photos of the very people in the picture are left out of the crowd."""
    place = tmp_path / "crowd"
    shutil.copytree(crowd, place)
    for number in FRONTAL:
        shutil.copy(people[number], place / f"own{number}.jpg")
    release = anonymize_photo(party, 4, crowd=place, workers=1)
    assert release.crowd == released.crowd + 3
    plain = [face.arcface_cosine for face in released.faces[:3]]
    assert [face.arcface_cosine for face in release.faces[:3]] == pytest.approx(plain, abs=0.12)


def test_a_small_crowd_is_refused(party, people, tmp_path):
    for path in people[20:22]:
        shutil.copy(path, tmp_path)
    with pytest.raises(NotEnoughPeople, match="crowd needs at least 4"):
        anonymize_photo(party, 4, crowd=tmp_path, workers=1)


def test_a_face_that_cannot_be_replaced_is_covered(party, gathered, monkeypatch):
    """A profile is not guessed: it is blurred beyond recognition, and said so."""
    from dataclasses import replace

    faces = group_photo.find_faces(party)
    turned = [replace(face, trouble="turned away") for face in faces[:1]] + faces[1:]
    monkeypatch.setattr(group_photo, "find_faces", lambda photo: turned)
    release = anonymize_photo(party, 4, crowd=Path("gathered"), workers=1)
    assert release.faces[0].became == "covered"
    assert any("were covered, not replaced" in note for note in release.notes())
    left, top, right, bottom = release.faces[0].box
    middle = (slice(top + (bottom - top) // 4, bottom - (bottom - top) // 4), slice(left + 20, right - 20))
    detail = cv2.Laplacian(release.picture[middle], cv2.CV_64F).std()
    assert detail < 0.25 * cv2.Laplacian(party[middle], cv2.CV_64F).std()


def test_preview_draws_numbers_and_changes_no_more(party):
    drawn, faces = preview(party)
    assert len(faces) >= 3
    assert [face.box[0] for face in faces] == sorted(face.box[0] for face in faces)
    assert (drawn != party).any()


def test_drawn_people_do_not_exist_and_that_is_said(party, zoo, tmp_path, monkeypatch):
    """Without a crowd people are drawn, once; only those are kept in the cache."""
    monkeypatch.setattr(crowd_module, "DRAWN", 6)
    monkeypatch.setattr(networks, "home", lambda: tmp_path)
    release = anonymize_photo(party, 2, workers=1)
    assert release.drawn
    assert any("do not exist" in note for note in release.notes())
    place = next((tmp_path / "crowd").iterdir())
    made = {p.name: p.stat().st_mtime_ns for p in place.glob("*.png")}
    assert len(made) == 6
    joined = anonymize_photo(party, 2, way="join", workers=1)
    assert any("only one is real" in note for note in joined.notes())
    assert made == {p.name: p.stat().st_mtime_ns for p in place.glob("*.png")}


def test_commands(party, crowd, tmp_path, run):
    source = tmp_path / "party.jpg"
    exif = Image.Exif()
    exif[0x010E] = "where and when"
    Image.fromarray(party).save(source, quality=95, exif=exif)
    shown = run("photo", source, "-o", tmp_path / "numbers.png", "--preview")
    assert shown.code == 0, shown.err
    assert "face 1: can be replaced" in shown.out
    out = tmp_path / "party_anonymized.jpg"
    done = run("photo", source, "-o", out, "--k", 4, "--crowd", crowd, "--keep-face", 2, "--workers", 1)
    assert done.code == 0, done.err
    assert "nearest: each replaced face" in done.out
    assert "Not covered: a face that was not found" in done.out
    with Image.open(out) as written:
        assert not written.getexif()
    report = json.loads((tmp_path / "party_anonymized.jpg.json").read_text())
    assert report["k"] == 4
    assert [face["became"] for face in report["faces"]][:3] == ["replaced", "kept", "replaced"]
    for arguments, message in (
        ((source, "-o", out, "--crowd", crowd), "exists"),
        ((tmp_path / "gone.jpg", "-o", tmp_path / "x.jpg"), "gone.jpg cannot be used: it is not there"),
        ((source, "-o", tmp_path / "x.gif", "--crowd", crowd, "--k", 4), "not as '.gif'"),
        ((source, "-o", tmp_path / "x.jpg", "--way", "mosaic"), "nearest or join"),
        ((source, "-o", tmp_path / "x.jpg", "--k", 0), "k must be"),
    ):
        result = run("photo", *arguments)
        assert result.code == 2, arguments
        assert message in result.err
    Image.new("RGB", (300, 200), "blue").save(tmp_path / "sky.png")
    assert "no face was found" in run("photo", tmp_path / "sky.png", "-o", tmp_path / "x.jpg").err
    assert not (tmp_path / "x.jpg").exists()
