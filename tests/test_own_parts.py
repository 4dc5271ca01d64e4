"""Parts as a stranger would write them, who knows only the documented methods: a map, a grouper, an attack, a face map."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from drawn import at, draw_photos, interrupt

from omokage import Anonymizer, Cells, verify
from omokage.errors import InputError, MapError, NotEnoughPeople, VerificationError
from omokage.evaluate import ATTACKS, attack_all, link
from omokage.faces import FaceFolder
from omokage.faces.image import encode_picture
from omokage.faces.maps.direct import Direct
from omokage.faces.maps.morph import Morph
from omokage.faces.maps.recognition import Recognition


class Halves:
    """A grouper that knows nothing of scikit-learn."""

    def __init__(self, k):
        self.k = k

    def fit_predict(self, z):
        return (np.argsort(np.argsort(z[:, 0])) * (len(z) // self.k) // len(z)).astype(int)


class Shifted:
    """A map that knows nothing of scikit-learn."""

    def fit(self, x):
        self.mean = x.mean(axis=0)
        return self

    def transform(self, x):
        return x - self.mean

    def inverse_transform(self, z):
        return z + self.mean


def test_a_map_and_a_grouper_of_ones_own():
    x = np.random.default_rng(0).normal(size=(40, 3))
    release = Anonymizer(Halves(5), synthesis_map=Shifted(), random_state=0).release(x)
    assert release.certificate.found.k == 5
    assert release.certificate.method.grouping.name == "test_own_parts:Halves"
    assert release.certificate.method.synthesis_map[0].name == "test_own_parts:Shifted"
    np.testing.assert_allclose(release.data.mean(axis=0), x.mean(axis=0))


def test_a_grouper_whose_labels_are_no_groups_is_refused():
    class Wrong(Halves):
        def fit_predict(self, z):
            return z[:, 0]

    with pytest.raises(InputError, match="must give a whole number for each of 40 rows: it gave float64"):
        Anonymizer(Wrong(5)).release(np.random.default_rng(0).normal(size=(40, 3)))


def test_a_grouper_that_breaks_its_promise_is_noticed():
    class Alone(Halves):
        def fit_predict(self, z):
            return np.arange(len(z))

    with pytest.raises(NotEnoughPeople, match="made a group of 1 rows, fewer than k = 5"):
        Anonymizer(Alone(5)).release(np.random.default_rng(0).normal(size=(40, 3)))


def test_an_attack_of_ones_own():
    def first_column(view):
        return np.abs(view.originals[:, :1] - view.released[:, 0][None])

    x = np.random.default_rng(0).normal(size=(60, 3))
    tried = attack_all(link(x, Anonymizer(4, random_state=0).release(x)), attacks=["raw", first_column])
    assert "raw" in ATTACKS
    assert any("first_column" in name for name in tried.results)


class Tiny:
    """A face map of one's own: 16 × 16 grey pixels there, and a flat square back."""

    size = 64

    def fit(self, portraits):
        self.seen = len(portraits)
        return self

    def transform(self, portraits):
        return np.stack([p.crop[::4, ::4].mean(axis=-1).ravel() for p in portraits])

    def inverse_transform(self, vectors):
        return [np.kron(v.reshape(16, 16), np.ones((4, 4)))[..., None].repeat(3, -1).astype(np.uint8) for v in vectors]


@pytest.mark.parametrize("group", [Tiny(), Recognition(), Direct(32)])
@pytest.mark.parametrize("synthesis", [Tiny(), Morph(64)])
def test_a_face_map_of_ones_own(drawn_eyes, tmp_path, group, synthesis):
    draw_photos(tmp_path / "photos", 9)
    release = Anonymizer(Cells(3), group_map=group, synthesis_map=synthesis, random_state=0).release(
        FaceFolder(tmp_path / "photos", workers=1)
    )
    assert len(release.data) == 9
    assert release.data[0].shape == (64, 64, 3)
    release.write(tmp_path / "out", key=tmp_path / "key.json")
    assert verify(tmp_path / "out", key=tmp_path / "key.json").passed
    named = release.certificate.method.synthesis_map[0].name
    assert named == ("morph" if isinstance(synthesis, Morph) else "test_own_parts:Tiny")


def test_what_faces_cannot_do_is_refused(drawn_eyes, tmp_path):
    draw_photos(tmp_path / "photos", 6)
    folder = FaceFolder(tmp_path / "photos", workers=1)
    with pytest.raises(MapError, match="a group map and a synthesis map"):
        Anonymizer(Cells(3)).release(folder)
    with pytest.raises(InputError, match="can only be averaged, not unified by median: leave the unifier out"):
        Anonymizer(Cells(3), group_map=Direct(32), synthesis_map=Morph(64), unifier="median").release(folder)
    with pytest.raises(InputError, match="digits describe a frame or an array"):
        Anonymizer(Cells(3), group_map=Direct(32), synthesis_map=Morph(64)).release(folder, digits=3)


def test_a_release_in_memory_keeps_its_pictures_and_leaves_nothing_behind(drawn_eyes, tmp_path, monkeypatch):
    """Without a work folder, faces lie in a private temporary folder for as long as the release is in use."""
    import gc
    import tempfile

    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    draw_photos(tmp_path / "photos", 6)
    release = Anonymizer(Cells(3), group_map=Recognition(), synthesis_map=Morph(64)).release(
        FaceFolder(tmp_path / "photos", workers=1)
    )
    gc.collect()
    assert release.data[5].shape == (64, 64, 3)
    (place,) = {p for p in (tmp_path / "temp").rglob("*") if p.name == "pictures"}
    assert all(p.stat().st_mode & 0o077 == 0 for p in [place, *place.iterdir()])
    del release
    gc.collect()
    assert [p for p in (tmp_path / "temp").rglob("*") if p.is_file()] == []


@dataclass
class Words:
    """A medium of one's own: short texts; what a group becomes is its longest common beginning."""

    texts: list[str]


def test_a_medium_says_what_it_is_not_given():
    with pytest.raises(InputError, match=r"matrix of rows × columns|array of numbers"):
        Anonymizer(Cells(3)).release(Words(["a"]))


def test_paths_are_taken_as_text_too(drawn_eyes, tmp_path):
    draw_photos(tmp_path / "photos", 6)
    made = Anonymizer(3, group_map=Direct(32), synthesis_map=Morph(64)).release(FaceFolder(str(tmp_path / "photos"), workers=1))
    assert made.certificate.method.grouping.name == "cells"
    assert made.write(str(tmp_path / "out")) == Path(tmp_path / "out")


def test_a_picture_that_tells_one_member_apart_is_not_published(drawn_eyes, tmp_path):
    """What is certified was counted on the written bytes, not on what was meant to be written."""
    draw_photos(tmp_path / "photos", 6)
    release = Anonymizer(Cells(3), group_map=Recognition(), synthesis_map=Morph(64)).release(
        FaceFolder(tmp_path / "photos", workers=1)
    )
    picture = release.data[0].copy()
    picture[0, 0] ^= 1  # one pixel, by one step
    (tmp_path / "alone.png").write_bytes(encode_picture(picture, ".png"))
    release.data.files[0] = tmp_path / "alone.png"
    with pytest.raises(VerificationError, match="k = 3 was promised, but a class of 1 was found: nothing was released"):
        release.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_survey_that_fails_leaves_no_faces_behind(drawn_eyes, tmp_path, monkeypatch):
    """Nor does it while the error is still held."""
    import tempfile

    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    draw_photos(tmp_path / "photos", 6)
    with pytest.raises(KeyboardInterrupt) as held:
        Anonymizer(Cells(3), group_map=Recognition(), synthesis_map=Morph(64)).release(
            FaceFolder(tmp_path / "photos", workers=1), progress=at("finding faces", 4, interrupt)
        )
    assert held.value is not None
    assert [p for p in (tmp_path / "temp").rglob("*") if p.is_file()] == []


def test_what_a_map_of_ones_own_holds_is_not_published():
    class Secretive(Shifted):
        def __init__(self, password="nothing"):
            self.password = password

    x = np.random.default_rng(0).normal(size=(40, 3))
    release = Anonymizer(Halves(5), synthesis_map=Secretive("open sesame")).release(x)
    assert "sesame" not in release.certificate.to_json()
