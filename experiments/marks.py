"""A mark on one member of a group: how much of its contrast is left in the group's face made by MORPH.

    python experiments/marks.py [--quick] [--faces 512] [--results FOLDER] [--work FOLDER]

Groups of k CelebA faces by RECOGNITION, as ``omokage faces`` makes them. One member of every group is marked, in each part it
shows (hair, forehead, beard, cheek, glasses, neck, clothes): a dark or light dot, stripes of both, or the whole part. The face
is made with and without the mark; the largest change of a pixel, less one step of rounding, is compared with the contrast of
the mark. ``face`` is what a folder release writes; ``skin`` is what ``omokage photo --way join`` lays into a photo. No mark may
keep more than 2/k.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from face_groups import grouped
from faces import arguments, places
from numpy.typing import NDArray

from omokage.faces.listing import list_photos
from omokage.faces.maps.morph import Morph
from omokage.faces.portrait import Portrait
from omokage.faces.store import FaceStore
from omokage.faces.survey import FaceRecord, Portraits, SurveySettings, survey

KS = (2, 4, 8, 16)
SIZE = 256
PLACES = ("hair", "forehead", "beard", "cheek", "glasses", "neck", "clothes")
KINDS = ("dot", "stripes", "whole")


def place(portrait: Portrait, name: str) -> NDArray[np.bool_]:
    """Where a part of a face is shown."""
    if name not in ("forehead", "beard", "cheek"):
        return portrait.part(name) > 0.5
    y = np.arange(portrait.size)[:, None]
    brows, nose, chin = (float(portrait.points[i, 1].mean()) for i in (slice(17, 27), slice(31, 36), slice(7, 10)))
    rows = {"forehead": y < brows, "cheek": (y > brows) & (y < nose), "beard": (y > nose) & (y < chin)}[name]
    return (portrait.part("face") > 0.5) & rows


def marked(portrait: Portrait, where: NDArray[np.bool_], kind: str, rng: np.random.Generator) -> Portrait:
    """The portrait with a mark: what is bright becomes dark there, and what is dark bright."""
    spot, crop = where, portrait.crop.copy()
    if kind != "whole":
        at = np.argwhere(where)[rng.integers(int(where.sum()))]
        disc = np.zeros(where.shape, np.uint8)
        cv2.circle(disc, (int(at[1]), int(at[0])), int(rng.integers(1, 9)), 1, -1)
        spot = where & (disc > 0)
    colour = np.full(crop.shape, 0 if crop[spot].mean() > 128 else 255, np.uint8)
    if kind == "stripes":
        colour[(np.arange(len(crop)) // rng.integers(1, 4)) % 2 > 0] ^= 255
    crop[spot] = colour[spot]
    return Portrait(crop, portrait.points, portrait.parts)


def attack(morph: Morph, members: list[Portrait], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Every kind of mark at every place of one member; what of it the group's face and its skin keep."""
    one = members[int(rng.integers(len(members)))]
    own = morph.encode(one)
    mean = np.mean([morph.encode(member) for member in members], axis=0)
    shape = morph.shape_of(mean)
    before = {"face": morph.decode(mean).astype(int), "skin": morph.decode_skin(mean, shape).astype(int)}
    found = []
    for name in PLACES:
        where = place(one, name)
        if where.sum() < 30:
            continue
        for kind in KINDS:
            other = marked(one, where, kind, rng)
            vector = mean + (morph.encode(other) - own) / np.float32(len(members))
            contrast = int(np.abs(other.crop.astype(int) - one.crop).max())
            after = {"face": morph.decode(vector), "skin": morph.decode_skin(vector, shape)}
            kept = {way: max(0.0, float(np.abs(after[way] - before[way]).max()) - 1) / contrast for way in before}
            found.append({"place": name, "kind": kind, **kept})
    return found


def cell(faces: list[FaceRecord], k: int, work: Path, workers: int, most: int) -> dict[str, Any]:
    """All marks at one k: how many, the share that keeps too much, and the most that is kept."""
    rng = np.random.default_rng(k)
    labels = grouped(FaceStore(faces, work, workers), np.arange(len(faces)), k)
    morph = Morph(SIZE).fit(Portraits(faces))
    found = []
    for group in range(min(int(labels.max()) + 1, most)):
        members = [faces[i].portrait() for i in np.flatnonzero(labels == group)][: 2 * k]
        found += [{**each, "bound": 2 / len(members)} for each in attack(morph, members, rng)]
    out: dict[str, Any] = {"marks": len(found)}
    for way in ("face", "skin"):
        share = np.array([each[way] / each["bound"] for each in found])
        out[way] = {
            "too_much": float((share > 1).mean()),
            "most_of_bound": float(share.max()),
            "mean_of_bound": float(share.mean()),
        }
        out[way]["places"] = {
            name: float(max((s for s, each in zip(share, found, strict=True) if each["place"] == name), default=0.0))
            for name in PLACES
        }
    return out


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], "12 photos, k = 4; writes nothing")
    parser.add_argument("--faces", type=int, default=512)
    parser.add_argument("--groups", type=int, default=12, help="groups attacked at each k, at most")
    chosen = parser.parse_args()
    work = places(chosen)
    photos = list_photos(Path(os.environ["OMOKAGE_DATA"]) / "celeba_test200" / "images")
    faces, _ = survey(photos[: 12 if chosen.quick else chosen.faces], work, SurveySettings(SIZE), chosen.workers)
    table = {}
    for k in (4,) if chosen.quick else KS:
        table[k] = cell(faces, k, work, chosen.workers, chosen.groups)
        for way in ("face", "skin"):
            told = table[k][way]
            print(f"k = {k:2} {way}: {table[k]['marks']} marks, {told['too_much']:.1%} keep more than 2/k, the most "
                  f"{told['most_of_bound']:.2f} of the bound, on average {told['mean_of_bound']:.2f}", flush=True)  # fmt: skip
    if not chosen.quick:
        (chosen.results / "marks.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
