"""Pairs (styles, portrait) to learn I → W+ from: people who do not exist, drawn by the generator and seen as photos are.

A sample is a function of (seed, number) alone, so an interrupted run goes on where it stopped, and a longer one begins with the
shorter one's samples. Half of them mix the styles of two people by groups of layers: without that the three groups of a face
would always agree, and nothing could learn which of them a feature of the picture belongs to.

Each picture is then made as poor as photos are (100 to 256 px, blur, noise, light, JPEG), twice, and goes the way of every photo:
landmarks, crop, parts. So the encoder learns from portraits with the same small errors that it will meet.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from ...base.files import write_whole
from ...errors import InputError
from ...networks.generator import FaceGenerator
from ..align import ffhq_alignment
from ..find import Finder, five_points
from ..maps.encoder import describe
from ..parse import Parser
from ..portrait import Portrait
from ..recognize import ArcFace

SHARD = 32  # samples a file
SIDE = 256
LOOKS = 2  # portraits of each sample


def draw_styles(generator: FaceGenerator, seed: int, number: int) -> NDArray[np.float32]:
    """Styles of a sample's coarse, middle and fine layers, (3, 512): truncation 0.5 to 1, half of them mixed from two people."""
    random = np.random.default_rng((seed, number))
    z = torch.from_numpy(random.standard_normal((2, generator.inputs)).astype(np.float32))
    truncation = torch.from_numpy(random.uniform(0.5, 1.0, (2, 1)).astype(np.float32))
    with torch.no_grad():
        one, other = torch.lerp(generator.w_mean, generator.mapping(z), truncation).numpy()
    cut = int(random.integers(1, 3)) if random.random() < 0.5 else 3
    styles: NDArray[np.float32] = np.stack([one] * cut + [other] * (3 - cut))
    return styles


def as_photo(clean: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """The picture as a photo of it might come: smaller, softer, noisy, in another light, compressed."""
    side = int(random.uniform(100, SIDE + 1))
    x = cv2.resize(clean, (side, side), interpolation=cv2.INTER_AREA).astype(np.float32)
    if random.random() < 0.4:
        x = cv2.GaussianBlur(x, (0, 0), random.uniform(0.3, 1.1))
    light = np.exp(random.normal(0, 0.06) + random.normal(0, 0.03, 3))
    x = 255 * np.clip(x / 255 * light, 0, 1) ** np.exp(random.normal(0, 0.1))
    middle = x.mean((0, 1))
    x = (x - middle) * np.exp(random.normal(0, 0.08)) + middle
    x += random.standard_normal(x.shape) * random.uniform(0, 4)
    out = np.round(np.clip(x, 0, 255)).astype(np.uint8)
    if random.random() < 0.8:
        quality = int(random.uniform(55, 96))
        out = cv2.imdecode(cv2.imencode(".jpg", out, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_COLOR)
    return out


class Sampler:
    """Draws samples and keeps what the encoder sees of them, a file for each ``SHARD`` samples.

    Parameters
    ----------
    generator : FaceGenerator
        What draws.
    folder : Path
        Where the files are kept; those that are there are not made again.
    seed : int
        Samples of two seeds are independent.
    """

    def __init__(self, generator: FaceGenerator, folder: Path, seed: int) -> None:
        self.generator = generator
        self.folder = folder
        self.seed = seed
        self._finder: Finder | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def shard(self, number: int) -> dict[str, NDArray[Any]]:
        """Styles (n, 3, 512) and descriptions (n, looks, f) of a shard; n is 32 but for faces that were not found again."""
        path = self.folder / f"{self.seed}-{number:05d}.npz"
        if not path.exists():
            made = self._made(number)
            sink = io.BytesIO()
            np.savez(sink, styles=made["styles"], descriptions=made["descriptions"])
            write_whole(path, sink.getvalue())
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            path.unlink()  # cut short by a full disk, say
            return self.shard(number)

    def _load(self) -> None:
        """The networks that look at faces, when the first sample is made."""
        if self._finder is None:
            self._finder, self._parser, self._recognizer = Finder(), Parser(192), ArcFace()

    def _made(self, number: int) -> dict[str, NDArray[Any]]:
        self._load()
        styles, descriptions = [], []
        for i in range(number * SHARD, (number + 1) * SHARD):
            drawn = draw_styles(self.generator, self.seed, i)
            clean = self.generator.picture(torch.from_numpy(np.repeat(drawn, self.generator.groups, 0))[None], SIDE)
            looks = self._looks(clean, np.random.default_rng((self.seed, i, 1)))
            if looks:
                styles.append(drawn)
                descriptions.append(np.stack([describe(look, self._recognizer) for look in looks]))
        if not styles:
            raise InputError("no face was found in what the generator draws: is it a generator of aligned faces?")
        return {"styles": np.stack(styles), "descriptions": np.stack(descriptions).astype(np.float16)}

    def _looks(self, clean: NDArray[np.uint8], random: np.random.Generator) -> list[Portrait]:
        """Portraits of poor photos of the picture; parsed once, as the parser is slow and its errors are small."""
        if self._finder is None or not (faces := self._finder.find(clean)):
            return []
        first = ffhq_alignment(faces[0].points, SIDE)
        parts = self._parser.parse(first.crop(clean))
        five = five_points(faces[0].points)
        looks = []
        for _ in range(LOOKS):
            photo = as_photo(clean, random)
            scale = len(photo) / SIDE
            points = self._finder.landmarks(photo, (five + random.normal(0, 2, (5, 2))) * scale)
            again = ffhq_alignment(points, SIDE)
            there = _square(again.matrix) @ np.diag([scale, scale, 1]) @ np.linalg.inv(_square(first.matrix))
            moved = cv2.warpAffine(parts, there[:2], (SIDE, SIDE), borderMode=cv2.BORDER_REPLICATE)
            looks.append(Portrait(again.crop(photo), again.forward(points), np.asarray(moved, np.uint8)))
        return looks


def _square(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.vstack([matrix, [0, 0, 1]])
