"""Portraits drawn by hand: no network is needed to make them."""

from __future__ import annotations

import cv2
import numpy as np
from test_align import face_points

from omokage.faces.portrait import PARTS, Portrait


def drawn_portrait(seed: int, size: int = 128) -> Portrait:
    """A face of simple shapes, with hair, neck and clothes, in front of noise."""
    rng = np.random.default_rng(seed)
    points = face_points((size * 0.5, size * 0.45), size * 0.24) + rng.normal(0, size * 0.004, (68, 2))
    points[:, 0] = (points[:, 0] - size / 2) * rng.uniform(0.92, 1.08) + size / 2
    parts = np.zeros((size, size, len(PARTS)), np.uint8)
    crop = rng.integers(0, 255, (size, size, 3)).astype(np.uint8)

    def paint(name: str, shape: np.ndarray, colour: np.ndarray) -> None:
        mask = np.zeros((size, size), np.uint8)
        cv2.fillPoly(mask, [np.round(shape).astype(np.int32)], 255)
        parts[mask > 0] = 0
        parts[mask > 0, PARTS.index(name)] = 255
        crop[mask > 0] = np.clip(colour + rng.normal(0, 4, (int((mask > 0).sum()), 3)), 0, 255)

    chin = points[8]
    half = size * 0.2
    clothes = [(0, size), (size * 0.1, chin[1] + half), (size * 0.9, chin[1] + half), (size, size)]
    paint("clothes", np.array(clothes), rng.uniform(0, 255, 3))
    neck = chin + half * np.array([(-0.5, -1), (0.5, -1), (0.5, 1.5), (-0.5, 1.5)])
    paint("neck", neck, np.array([200.0, 150, 130]))
    centre = points[36:48].mean(0)
    around = np.linspace(0, 2 * np.pi, 40)
    ring = np.column_stack([np.cos(around), np.sin(around)])
    paint("hair", centre + ring * size * rng.uniform(0.34, 0.38), rng.uniform(10, 120, 3))
    top = [(-0.27, -0.12), (-0.18, -0.24), (0.18, -0.24), (0.27, -0.12)]
    paint("face", np.concatenate([points[:17], centre + np.array(top)[::-1] * size]), np.array([210.0, 165, 145]))
    for start in (36, 42):
        cv2.fillPoly(crop, [np.round(points[start : start + 6]).astype(np.int32)], (40, 30, 30))
    cv2.fillPoly(crop, [np.round(points[48:60]).astype(np.int32)], (170, 60, 70))
    return Portrait(crop, points, parts)
