"""What giving the spread back does to LATENT, and how much of its FID is only sharpness.

    python experiments/latent_spread.py [--quick] [--faces 2000] [--results FOLDER] [--work FOLDER]

Groups of k = 8 by ATTRIBUTE, as in ``miku.py`` and from the same kept work; each group's mean style is drawn with none, the usual
part and all of the spread given back, and the usual pictures are also softened to 170 and to 128 pixels and enlarged again.
FID before the calm ground, and the fine contrast of the face (deviation of the Laplacian) beside that of the photos.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from face_groups import grouped
from faces import _measure_original, arguments, measured, places
from miku import GROUPING, _parser, chosen_faces
from numpy.typing import NDArray

from omokage import networks
from omokage.evaluate.faces.fid import fid
from omokage.faces.maps.ground import ground
from omokage.faces.maps.latent import Latent
from omokage.faces.store import FaceStore
from omokage.method.unify import Mean
from omokage.networks.inception import Inception

K, SIZE = 8, 256

Picture = NDArray[np.uint8]


def softened(side: int) -> Callable[[Picture], Picture]:
    """To that side and back."""

    def soften(picture: Picture) -> Picture:
        small = cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA)
        return np.asarray(cv2.resize(small, picture.shape[:2], interpolation=cv2.INTER_CUBIC))

    return soften


def contrast(picture: Picture) -> float:
    """Of the middle of the face, fine detail only."""
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    middle = slice(len(grey) * 5 // 16, len(grey) * 3 // 4)
    return float(cv2.Laplacian(grey, cv2.CV_32F)[middle, middle].std())


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], "24 faces; writes nothing")
    parser.add_argument("--faces", type=int, default=2000)
    chosen = parser.parse_args()
    work = places(chosen)
    torch.set_num_threads(1)
    faces, _, _ = chosen_faces(work, 24 if chosen.quick else chosen.faces, chosen.quick, chosen.workers)
    store = FaceStore(faces, work, chosen.workers)
    groups = grouped(store, np.arange(len(faces)), K, "attribute", GROUPING)
    codes = store.codes(store.fitted(Latent(SIZE)))
    means, sizes = Mean().unify(codes, groups), np.bincount(groups).astype(float)
    named = [(face, face.file.stem) for face in faces]
    originals = measured(work, "originals", named, _measure_original, chosen.workers)["inception"]
    inception, before = Inception.load(networks.get("inception")), ground(SIZE)

    def judged(pictures: list[Picture], shown: list[NDArray[np.float32]]) -> dict[str, float]:
        plain = (np.round(p * s + before * (1 - s)).astype(np.uint8) for p, s in zip(pictures, shown, strict=True))
        apart = fid(originals, np.stack([inception.features(p[None])[0] for p in plain]), weights_b=sizes)
        return {"fid": apart.value, "mean_part": apart.mean_part, "contrast": float(np.mean([contrast(p) for p in pictures]))}

    result: dict[str, Any] = {"faces": len(faces), "k": K, "pictures": len(means)}
    result["contrast_of_photos"] = float(np.mean([contrast(face.portrait().crop) for face in faces[:200]]))
    for spread in (0.0, 1.0, 0.85):
        latent = Latent(SIZE, spread=spread)
        pictures = [latent.decode(mean) for mean in means]
        shown = [np.minimum(_parser().parse(p).sum(-1, dtype=np.float32) / 255, 1)[..., None] for p in pictures]
        result[f"spread {spread:g}"] = judged(pictures, shown)
        print(f"spread {spread:g}", result[f"spread {spread:g}"], flush=True)
    for side in (170, 128):
        result[f"spread 0.85, {side} pixels"] = judged([softened(side)(p) for p in pictures], shown)
        print(f"{side} pixels", result[f"spread 0.85, {side} pixels"], flush=True)
    if not chosen.quick:
        (chosen.results / "latent_spread.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
