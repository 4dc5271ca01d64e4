"""How fast a folder of faces is anonymized, and where the time goes.

    python benchmarks/photos.py [--quick] [--photos FOLDER]

First each step by itself on one core, in processor seconds a face, so that a busy machine decides little; then the whole
command, from files to a certified folder, on all cores in wall seconds. Photos: ``celeba_test200`` of OMOKAGE_DATA, or any
folder.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import cv2
import numpy as np
import torch

from omokage import Anonymizer, Cells
from omokage.faces.align import ffhq_alignment
from omokage.faces.find import Finder
from omokage.faces.image import encode_picture, read_photo
from omokage.faces.maps import make_face_map
from omokage.faces.maps.attribute import Attribute
from omokage.faces.maps.direct import Direct
from omokage.faces.maps.latent import Latent
from omokage.faces.maps.morph import Morph
from omokage.faces.parse import Parser
from omokage.faces.portrait import Portrait
from omokage.faces.recognize import ArcFace
from omokage.faces.resuming import release_folder

K = 8


class Clock:
    """Processor seconds by step; the best of two tries."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[..., Any], *given: Any) -> Any:
        tries = []
        for _ in range(2):
            begun = process_time()
            result = work(*given)
            tries.append(process_time() - begun)
        self.spent[step] = self.spent.get(step, 0.0) + min(tries)
        return result


def by_step(paths: list[Path], size: int) -> dict[str, float]:
    """Processor seconds a face of every step, on one core."""
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    finder, parser, recognizer, clock = Finder(), Parser(), ArcFace(), Clock()
    portraits = []
    for path in paths:
        photo = clock("decode the file", read_photo, path)
        faces = clock("find the face and 68 points", finder.find, photo)
        if not faces or faces[0].trouble:
            continue
        align = ffhq_alignment(faces[0].points, size)
        crop = clock("cut out and align", align.crop, photo)
        parts = clock("parse", parser.parse, crop)
        clock("recognize", recognizer.embed, photo, faces[0].points)
        portrait = Portrait(crop, align.forward(faces[0].points), parts)
        kept = clock("keep for later", portrait.arrays)
        portraits.append(clock("take up again", Portrait.of_arrays, kept))
    morph, direct = Morph(size).fit(portraits), Direct(size)
    vectors = [clock("MORPH there", morph.encode, p) for p in portraits]
    for start in range(0, len(vectors) - K + 1, K):
        face = clock(f"MORPH back, once for k = {K}", morph.decode, np.mean(vectors[start : start + K], 0))
        clock(f"write, once for k = {K}", encode_picture, face, ".png")
    latent, attribute = Latent(size), Attribute()
    latent.decode(latent.encode(portraits[0]))  # its networks are loaded when they are first needed
    for portrait in portraits:
        clock("(DIRECT there, instead)", direct.encode, portrait)
        clock("(ATTRIBUTE, to group)", attribute.encode, portrait)
    styles = [clock("(LATENT there, instead)", latent.encode, p) for p in portraits]
    for start in range(0, len(styles) - K + 1, K):
        clock(f"(LATENT back, once for k = {K})", latent.decode, np.mean(styles[start : start + K], 0))
    return {step: seconds / len(portraits) for step, seconds in clock.spent.items()}


def whole(paths: list[Path], anonymizer: Anonymizer, workers: int) -> tuple[float, float]:
    """Faces a second of the command, with and without the start of its processes and networks."""
    with tempfile.TemporaryDirectory() as place:
        photos = Path(place) / "photos"
        photos.mkdir()
        for path in paths:
            (photos / path.name).symlink_to(path)
        marks: list[float] = []
        begun = perf_counter()

        def mark(stage: str, done: int = 0, total: int = 0, /) -> None:
            if done == 8 * workers:
                marks.append(perf_counter())

        certificate, _ = release_folder(anonymizer, photos, Path(place) / "out", workers=workers, progress=mark)
        ended = perf_counter()
    number = certificate.found.rows
    return number / (ended - begun), (number - 8 * workers) / (ended - marks[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="24 photos")
    parser.add_argument("--photos", type=Path, help="another folder of photos")
    parser.add_argument("--size", type=int, default=256)
    chosen = parser.parse_args()
    folder = chosen.photos or Path(os.environ["OMOKAGE_DATA"]) / "celeba_test200" / "images"
    paths = sorted(folder.glob("*.jpg"))
    few, many = (paths[:24], paths[:24]) if chosen.quick else (paths[:80], paths[:400])
    workers = max(1, min(os.cpu_count() or 1, len(many) // 12))  # each is given more than the eight that start it
    spent = by_step(few, chosen.size)
    counted = {step: seconds for step, seconds in spent.items() if not step.startswith("(")}
    total = sum(counted.values())
    print(f"{'step':32} {'CPU ms a face':>14} {'share':>7}")
    for step, seconds in spent.items():
        share = f"{seconds / total:6.1%}" if step in counted else ""
        print(f"{step:32} {1000 * seconds:14.1f} {share:>7}")
    print(f"{'all':32} {1000 * total:14.1f}   = {1 / total:.1f} faces a second and core")
    for group, synthesis in (("recognition", "morph"), ("attribute", "latent")):
        maps = {
            "group_map": make_face_map(group, group=True, size=chosen.size),
            "synthesis_map": make_face_map(synthesis, size=chosen.size),
        }
        at_all, at_speed = whole(many, Anonymizer(Cells(K), **maps), workers)
        print(f"whole command, {group} and {synthesis}, {len(many)} photos, {workers} cores: "
              f"{at_all:.1f} faces a second; once it runs, {at_speed:.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
