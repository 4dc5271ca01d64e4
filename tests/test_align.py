"""The FFHQ crop: eyes and mouth where they belong, and an exact way back into the photo."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omokage.faces.align import Alignment, ffhq_alignment
from omokage.faces.find import _overlap, five_points, similarity, turn_of
from omokage.faces.pose import pose_of


def face_points(centre=(300.0, 250.0), size=60.0, angle=0.0) -> np.ndarray:
    """68 points of a drawn frontal face, ``size`` pixels between the eyes."""
    points = np.zeros((68, 2))
    t = np.linspace(np.pi, 0, 17)
    points[:17] = np.column_stack([np.cos(t) * 1.15, np.sin(t) * 1.5 + 0.1])
    points[17:22] = np.column_stack([np.linspace(-0.85, -0.25, 5), [-0.32, -0.4, -0.42, -0.4, -0.35]])
    points[22:27] = points[17:22][::-1] * (-1, 1)
    points[27:31] = np.column_stack([np.zeros(4), np.linspace(0.0, 0.55, 4)])
    points[31:36] = np.column_stack([np.linspace(-0.22, 0.22, 5), [0.66, 0.7, 0.72, 0.7, 0.66]])
    ring = np.deg2rad([180, 240, 300, 0, 60, 120])
    for start, x in ((36, -0.5), (42, 0.5)):
        points[start : start + 6] = np.column_stack([x + 0.17 * np.cos(ring), 0.07 * np.sin(ring)])
    mouth = np.linspace(0, 2 * np.pi, 13)[:12]
    points[48:60] = np.column_stack([-0.4 * np.cos(mouth), 1.05 - 0.14 * np.sin(mouth)])
    inner = np.linspace(0, 2 * np.pi, 9)[:8]
    points[60:68] = np.column_stack([-0.3 * np.cos(inner), 1.05 - 0.05 * np.sin(inner)])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points @ turn.T * size + centre


def photo(height=500, width=620) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    smooth = np.stack([np.sin(x / 29) + np.cos(y / 31), np.sin((x + y) / 37), np.cos((x - 2 * y) / 41)], -1)
    return np.round(127 + 55 * smooth).clip(0, 255).astype(np.uint8)


@given(st.floats(-3, 3), st.floats(20, 120), st.floats(100, 500), st.floats(100, 400))
def test_eyes_and_mouth_stand_at_the_same_places_however_the_photo_was_taken(angle, size, x, y):
    upright = ffhq_alignment(face_points(), 256).forward(face_points())
    points = face_points((x, y), size, angle)
    align = ffhq_alignment(points, 256)
    assert np.allclose(align.forward(points), upright, atol=0.05)
    assert np.allclose(align.back(align.forward(points)), points, atol=1e-6)
    assert np.allclose(pose_of(points), pose_of(face_points()), atol=1e-6)
    eyes = five_points(upright)[:2]
    assert eyes[0, 1] == pytest.approx(eyes[1, 1], abs=0.1)
    assert eyes.mean(0)[0] == pytest.approx(127.5, abs=0.1)


def test_the_way_back_is_exact():
    """Cut out at a larger size and pasted again, the photo is what it was, to the rounding of two interpolations."""
    before = photo()
    points = face_points(angle=0.3)
    align = ffhq_alignment(points, 640)
    after = align.paste(before, align.crop(before), np.ones((640, 640), np.float32))
    changed = np.abs(after.astype(int) - before)
    assert changed.max() <= 6
    assert changed.mean() < 0.6
    shifted = Alignment(align.matrix + np.array([[0, 0, 2.0], [0, 0, 0]]), 640)  # a way back that is two pixels off is seen
    wrong = shifted.paste(before, align.crop(before), np.ones((640, 640), np.float32))
    assert np.abs(wrong.astype(int) - before).mean() > 2 * changed.mean()


def test_nothing_changes_outside_the_mask():
    before = photo()
    align = ffhq_alignment(face_points(), 256)
    after = align.paste(before, np.zeros((256, 256, 3), np.uint8), np.zeros((256, 256), np.float32))
    assert np.array_equal(after, before)
    half = np.zeros((256, 256), np.float32)
    half[:, :128] = 1
    after = align.paste(before, np.zeros((256, 256, 3), np.uint8), half)
    centre = round(float(align.back(np.array([[127.5, 127.5]]))[0, 0]))
    assert np.array_equal(after[:, centre + 2 :], before[:, centre + 2 :])
    assert (after[240:260, centre - 40 : centre - 5] == 0).all()


def test_another_size_is_the_same_square():
    align = ffhq_alignment(face_points(), 256)
    twice = align.resized(512)
    edges = np.array([[-0.5, -0.5], [255.5, 255.5]])
    assert np.allclose(align.back(edges), twice.back(np.array([[-0.5, -0.5], [511.5, 511.5]])))
    large, small = twice.crop(photo()), align.crop(photo())
    assert np.abs(cv2.resize(large, (256, 256), interpolation=cv2.INTER_AREA).astype(int) - small).mean() < 1.0


def test_a_large_face_is_averaged_not_sampled():
    """Fine stripes in a large photo become grey, not a pattern."""
    stripes = np.zeros((2000, 2000, 3), np.uint8)
    stripes[:, ::2] = 255
    crop = ffhq_alignment(face_points((1000, 1000), 400), 128).crop(stripes)
    assert crop.std() < 12


def test_beyond_the_photos_edge_there_is_no_line():
    """A face in the corner: the crop is filled, without holes, and calmer outside than a hard border would be."""
    before = photo()
    crop = ffhq_alignment(face_points((40, 40), 60), 256).crop(before)
    assert crop.min() > 0
    step = np.abs(np.diff(crop.astype(int), axis=1)).max()
    inside = np.abs(np.diff(ffhq_alignment(face_points(), 256).crop(before).astype(int), axis=1)).max()
    assert step <= inside + 6


def test_turn_says_which_way_the_nose_points():
    assert turn_of(five_points(face_points())) == pytest.approx(0, abs=1e-9)
    turned = five_points(face_points())
    turned[2, 0] += 18.0
    assert turn_of(turned) == pytest.approx(0.3, abs=0.01)


def test_overlap():
    a = np.array([0.0, 0, 10, 10])
    assert _overlap(a, a) == 1
    assert _overlap(a, np.array([5.0, 0, 15, 10])) == pytest.approx(1 / 3)
    assert _overlap(a, np.array([20.0, 0, 30, 10])) == 0


@given(st.floats(-3, 3), st.floats(0.2, 5), st.floats(-50, 50), st.floats(-50, 50))
def test_similarity_is_found_again(angle, scale, dx, dy):
    source = face_points()
    true = np.array([[scale * np.cos(angle), -scale * np.sin(angle), dx], [scale * np.sin(angle), scale * np.cos(angle), dy]])
    target = source @ true[:, :2].T + true[:, 2]
    assert np.allclose(similarity(source, target), true, atol=1e-6)
