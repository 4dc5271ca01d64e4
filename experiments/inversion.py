"""How good is I → W+ after how long: the encoder, the encoder and some steps of descent, descent alone from the mean style.

    OMOKAGE_DATA=… python experiments/inversion.py [--faces 24] [--quick] [--results experiments/results]

Real CelebA faces, cut out by Omokage itself. Reconstructions are judged by two recognizers (the encoder sees ArcFace's numbers;
FaceNet is the one that had no part in it), by LPIPS and by the mean difference of the person's pixels. Seconds are those of one
thread's processor time a face, without finding and parsing the photo. Results: ``inversion.json``; some faces: ``inversion.jpg``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from omokage import networks
from omokage.faces.align import ffhq_alignment
from omokage.faces.find import Finder
from omokage.faces.image import read_photo
from omokage.faces.maps.encoder import Encoder, describe
from omokage.faces.maps.inversion import Inversion, State
from omokage.faces.parse import Parser
from omokage.faces.portrait import Portrait
from omokage.faces.recognize import ArcFace, FaceNet
from omokage.networks.generator import FaceGenerator, load_generator
from omokage.networks.vgg import VGG

FROM_ENCODER = (0, 5, 10, 20, 50)
FROM_MEAN = (0, 50, 100)
SIZE = 256


def portraits(number: int) -> Iterator[Portrait]:
    """Every so-many-th photo of the data set with a face in it."""
    photos = sorted((Path(os.environ["OMOKAGE_DATA"]) / "celeba_test200" / "images").iterdir())
    finder, parser = Finder(), Parser()
    found = 0
    for path in photos[:: max(1, len(photos) // (number + number // 4 + 1))]:
        photo = read_photo(path)
        faces = [face for face in finder.find(photo)[:1] if face.trouble is None]
        if not faces or found == number:
            continue
        alignment = ffhq_alignment(faces[0].points, SIZE)
        crop = alignment.crop(photo)
        found += 1
        yield Portrait(crop, alignment.forward(faces[0].points), parser.parse(crop))


class Judges:
    """What a reconstruction is worth."""

    def __init__(self, generator: FaceGenerator, vgg: VGG) -> None:
        self.generator, self.vgg, self.finder = generator, vgg, Finder()
        self.recognizers: dict[str, Any] = {"arcface": ArcFace(), "facenet": FaceNet()}

    def judge(self, portrait: Portrait, drawn: NDArray[np.uint8]) -> dict[str, float]:
        faces = self.finder.find(drawn)
        out = {"found": float(bool(faces))}
        for name, recognizer in self.recognizers.items():
            original = recognizer.embed(portrait.crop, portrait.points)
            out[name] = float(original @ recognizer.embed(drawn, faces[0].points)) if faces else 0.0
        shown = portrait.person[..., None]
        apart = np.abs(drawn.astype(np.float32) - portrait.crop) * shown
        out["pixels"] = float(apart.sum() / (3 * shown.sum()))
        with torch.no_grad():
            out["lpips"] = float(self.vgg.lpips(_tensor(portrait.crop * shown), _tensor(drawn * shown)))
        return out


def _tensor(pixels: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)[None] / 127.5 - 1


def curve(
    portrait: Portrait,
    start: torch.Tensor,
    stops: tuple[int, ...],
    inversion: Inversion,
    show: Callable[[str, NDArray[Any]], Any],
) -> Iterator[tuple[int, float, Any]]:
    """(steps, seconds of descent, what ``show`` made of the face) at each stop."""
    state, seconds = State.at(start), 0.0
    for stop in stops:
        begun = process_time()
        state = inversion.run([portrait], state, stop - len(state.losses))
        seconds += process_time() - begun
        yield stop, seconds, show(str(stop), state.w[0].numpy())


def main() -> None:
    """Measure all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faces", type=int, default=24)
    parser.add_argument("--mean-faces", type=int, default=8, help="faces for the slow descent from the mean style")
    parser.add_argument("--quick", action="store_true", help="two faces and few steps; writes nothing")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    generator, vgg, encoder = load_generator(), VGG.load(networks.get("vgg")), Encoder.load()
    judges, inversion = Judges(generator, vgg), Inversion(generator, vgg, encoder.head, patience=1000)
    rows: dict[tuple[str, int], list[dict[str, float]]] = {}
    grid = []
    for number, portrait in enumerate(portraits(2 if given.quick else given.faces)):
        begun = process_time()
        with torch.no_grad():
            guess = encoder(torch.from_numpy(describe(portrait, judges.recognizers["arcface"]))[None])
        glance = process_time() - begun
        drawings: list[NDArray[np.uint8]] = [portrait.crop]

        def show(_: str, w: NDArray[Any], portrait: Portrait = portrait, drawings: list[Any] = drawings) -> dict[str, float]:
            drawings.append(generator.picture(torch.from_numpy(w)[None], SIZE))
            return judges.judge(portrait, drawings[-1])

        for steps, seconds, found in curve(portrait, guess, (0, 2) if given.quick else FROM_ENCODER, inversion, show):
            rows.setdefault(("encoder", steps), []).append(found | {"seconds": glance + seconds})
        if number < given.mean_faces:
            mean = generator.w_mean.expand(1, *generator.styles).clone()
            for steps, seconds, found in curve(portrait, mean, (0, 2) if given.quick else FROM_MEAN, inversion, show):
                rows.setdefault(("mean", steps), []).append(found | {"seconds": seconds})
        grid.append(drawings)
        print(number, {f"{start} + {steps}": round(some[-1]["arcface"], 2) for (start, steps), some in rows.items()}, flush=True)
    table = [
        {"start": start, "steps": steps, "faces": len(some)}
        | {name: float(np.mean([row[name] for row in some])) for name in some[0]}
        for (start, steps), some in rows.items()
    ]
    for row in table:
        print({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
    if not given.quick:
        (given.results / "inversion.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        columns = 1 + len(FROM_ENCODER)
        strips = [
            np.vstack([cv2.resize(one, (128, 128), interpolation=cv2.INTER_AREA) for one in some[:columns]]) for some in grid[:16]
        ]
        cv2.imwrite(str(given.results / "inversion.jpg"), np.hstack(strips)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])


if __name__ == "__main__":
    main()
