"""Every face map that is listed keeps the contract: a batch map of portraits, the same in every process, and back to pictures."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from drawn import drawn_portrait
from registered import classes_in
from sklearn.base import clone

from omokage.base.parts import part_of, rebuild
from omokage.faces import maps
from omokage.faces.maps import FACE_MAPS, make_face_map
from omokage.faces.maps.base import FaceMap, SynthesisMap
from omokage.faces.portrait import Portrait

SIZE = 64
NEEDS = {"recognition": ("arcface",), "latent": ("arcface", "mobilestylegan")}


@pytest.fixture(scope="module")
def portraits() -> list[Portrait]:
    return [drawn_portrait(seed, SIZE) for seed in range(5)]


@pytest.fixture(params=list(FACE_MAPS))
def made(request, fetch, portraits):
    """A map of that name, fitted; one that only groups is made to group."""
    fetch(*NEEDS.get(request.param, ()))
    only_groups = "synthesize" not in FACE_MAPS.entry(request.param).can
    return make_face_map(request.param, group=only_groups, size=SIZE).fit(portraits)


def test_portraits_become_rows_of_finite_numbers(made, portraits):
    rows = made.transform(portraits)
    assert rows.dtype == np.float32
    assert rows.ndim == 2
    assert len(rows) == len(portraits)
    assert np.isfinite(rows).all()
    assert len(np.unique(rows, axis=0)) == len(portraits)  # different people, different codes


def test_a_portrait_has_the_same_code_alone_and_among_others(made, portraits):
    np.testing.assert_allclose(made.transform(portraits[2:3])[0], made.transform(portraits)[2], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(made.transform(portraits[2:3]), made.transform(portraits[2:3]))


def test_another_process_gives_the_same(made, portraits):
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.transform(portraits[:1]), made.transform(portraits[:1]))


def test_who_can_synthesize_has_a_way_back_to_pictures(made, portraits):
    can = "synthesize" in FACE_MAPS.entry(FACE_MAPS.name_of(made)).can
    assert hasattr(made, "inverse_transform") == can
    assert isinstance(made, SynthesisMap) == can
    if can:
        vectors = made.transform(portraits[:2])
        pictures = made.inverse_transform(np.stack([vectors.mean(axis=0), vectors[0]]))
        assert [p.shape for p in pictures] == [(SIZE, SIZE, 3)] * 2
        assert all(p.dtype == np.uint8 for p in pictures)
        assert not np.array_equal(*pictures)


def test_it_is_recorded_and_rebuilt(made, portraits):
    part = part_of(made, FACE_MAPS)
    again = rebuild(part, FACE_MAPS)
    assert type(again) is type(made)
    assert part_of(again, FACE_MAPS) == part == part_of(clone(made), FACE_MAPS)
    np.testing.assert_array_equal(again.fit(portraits).transform(portraits[:1]), made.transform(portraits[:1]))


def test_it_says_what_it_needs_from_the_zoo(made):
    assert set(made.networks) == set(NEEDS.get(FACE_MAPS.name_of(made), ()))


def test_the_photo_serves_recognition_better_than_its_crop(fetch, portraits):
    """Where the survey kept what the recognizer said of the photo, that is the code."""
    who = np.eye(512, dtype=np.float32)[7]
    (code,) = make_face_map("recognition", group=True).transform([replace(portraits[0], embedding=who)])
    np.testing.assert_array_equal(code[:-1], who)


def test_every_public_face_map_is_listed():
    found = {each for each in classes_in(maps, "transform") if issubclass(each, FaceMap)} - {FaceMap, SynthesisMap}
    assert found == set(FACE_MAPS.values())
