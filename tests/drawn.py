"""People drawn by hand: no network is needed to make them, or to look at photos of them.

Every test that releases a folder of faces goes through :func:`release_faces`, and every test that looks at photos without
networks through :func:`use_drawn_eyes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from test_align import face_points

from omokage import Anonymizer
from omokage.base.progress import Progress
from omokage.errors import PhotoError
from omokage.faces import folder as folder_module
from omokage.faces import survey as survey_module
from omokage.faces.image import read_photo
from omokage.faces.maps import Networks, make_face_map
from omokage.faces.portrait import PARTS, Portrait
from omokage.faces.resuming import release_folder
from omokage.faces.survey import LeftOut, Seen, SurveySettings
from omokage.method.grouping import parse_grouper
from omokage.release.certificate import Certificate

SIZE = 64  # of released pictures, unless a test says otherwise
NOBODY = 255  # blue of the first pixel of a photo without a face


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


class DrawnEyes:
    """Looks at a photo without a network: the person drawn for the red of its first pixel."""

    def __init__(self, settings: SurveySettings) -> None:
        self.settings = settings

    def see(self, path: Path) -> Seen:
        try:
            seed, _, nobody = read_photo(path)[0, 0].tolist()
        except PhotoError as error:
            return Seen(left_out=str(error))
        if nobody == NOBODY:
            return Seen(left_out="no face was found")
        who = np.random.default_rng(seed).normal(size=512).astype(np.float32)
        return Seen([replace(drawn_portrait(seed, self.settings.size), embedding=who / np.linalg.norm(who))])


def use_drawn_eyes(patch: pytest.MonkeyPatch) -> None:
    """Folders of photos are looked at, and no network is needed for it."""
    survey_module._eyes.cache_clear()
    patch.setattr(survey_module, "Eyes", DrawnEyes)
    patch.setattr(folder_module, "require_networks", lambda *arguments: None)


def forget_drawn_eyes() -> None:
    """So that the next test looks with its own."""
    survey_module._eyes.cache_clear()


# ---------------------------------------------------------------------- photos


def draw_photo(path: Path, seed: int, nobody: bool = False) -> Path:
    """One photo for :class:`DrawnEyes`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (16, 16), (seed, 0, NOBODY if nobody else 0)).save(path)
    return path


def draw_photos(folder: Path, number: int) -> list[Path]:
    """Photos of as many people for :class:`DrawnEyes`."""
    return [draw_photo(folder / f"person{seed}.png", seed) for seed in range(number)]


def draw_family_album(folder: Path, people: int) -> Path:
    """Two photos of each person in a folder of their own; one of a wall, one that is damaged, one that is no photo."""
    for number in range(2 * people):
        draw_photo(folder / f"person{number // 2}" / f"secret-name-{number:02d}.png", number)
    draw_photo(folder / "person0" / "wall.png", 0, nobody=True)
    (folder / "person1" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a photo")
    (folder / "person1" / "notes.txt").write_text("not a photo")
    return folder


# ---------------------------------------------------------------------- releases


@dataclass(frozen=True)
class Released:
    """What was written: where, its certificate, and what could not be taken."""

    path: Path
    certificate: Certificate
    left_out: tuple[LeftOut, ...]


def release_faces(
    folder: Path,
    output: Path,
    *,
    k: int,
    group_map: str = "recognition",
    synthesis_map: str = "morph",
    grouping: str = "cells",
    size: int = SIZE,
    texture: float = 1.0,
    steps: int = 0,
    networks: Networks = Networks(),  # noqa: B008 - frozen
    seed: int | None = None,
    **settings: Any,
) -> Released:
    """Anonymize a folder of photos: the one place where the tests do so."""
    anonymizer = Anonymizer(
        parse_grouper(grouping, k),
        group_map=make_face_map(group_map, group=True, networks=networks, size=size, steps=steps),
        synthesis_map=make_face_map(synthesis_map, networks=networks, size=size, texture=texture, steps=steps),
        random_state=seed,
    )
    return Released(output, *release_folder(anonymizer, folder, output, **{"workers": 1} | settings))


def at(stage: str, done: int, act: Callable[[], object]) -> Progress:
    """A ``progress`` that acts once a stage has come so far."""

    def progress(here: str, so_far: int = 0, of: int = 0, /) -> None:
        if (here, so_far) == (stage, done):
            act()

    return progress


def interrupt() -> None:
    raise KeyboardInterrupt
