"""MORPH against DIRECT on 4,000 CelebA faces: how good the pictures are, and who is still recognized.

    python experiments/faces.py [--quick] [--results experiments/results] [--work FOLDER]

Two settings. ``one``: one photo of each person, so that k people are k photos, as in the papers. ``all``: every photo, with
all photos of a person in one group. Groups are made by RECOGNITION in both. FID compares the released faces with the
originals before the same calm ground; beside it stands its floor for that number of different pictures. The recognizers see
released faces as an attacker would: found, aligned and embedded anew; dlib's rule is tried in ``one`` only. Everything is
resumable; results are kept small.
"""

from __future__ import annotations

import argparse
import io
import json
import os
from collections import Counter
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from face_groups import drawn, grouped
from numpy.typing import NDArray

from omokage import networks
from omokage.base.files import write_whole
from omokage.base.persons import person_codes
from omokage.base.workers import in_parallel
from omokage.evaluate.faces.fid import fid, fid_floor
from omokage.evaluate.faces.recognition import calibrate, recognize, within
from omokage.faces.image import decoded
from omokage.faces.listing import Photo, list_photos
from omokage.faces.maps.ground import ground
from omokage.faces.store import FaceStore
from omokage.faces.survey import FaceRecord, LeftOut, SurveySettings, survey

KS = (2, 4, 8, 16, 32, 64, 128)
MAPS = ("direct", "morph")
JUDGES = ("arcface", "facenet", "dlib")


# ---------------------------------------------------------------------- measuring one picture


@lru_cache(maxsize=1)
def _instruments() -> dict[str, Any]:
    from omokage.faces.find import Finder
    from omokage.faces.recognize import recognizer
    from omokage.networks.inception import Inception

    found: dict[str, Any] = {name: recognizer(name) for name in JUDGES}
    return found | {"inception": Inception.load(networks.get("inception")), "finder": Finder()}


def _measure(picture: NDArray[np.uint8], whole: NDArray[np.uint8], judges: tuple[str, ...] = JUDGES) -> dict[str, NDArray[Any]]:
    """Embeddings of the largest face (zeros where none is found), and Inception features of the whole."""
    tools = _instruments()
    faces = tools["finder"].find(picture)
    out = {"found": np.array(bool(faces))}
    for name in judges:
        width = 128 if name == "dlib" else 512
        out[name] = tools[name].embed(picture, faces[0].points) if faces else np.zeros(width, np.float32)
    out["inception"] = tools["inception"].features(whole[None])[0]
    return out


def _measure_original(face: FaceRecord, target: Path) -> None:
    portrait = face.portrait()
    whole = np.round(portrait.on(ground(portrait.size))).astype(np.uint8)
    _keep(target, _measure(portrait.crop, whole))


def _measure_released(picture: Path, target: Path) -> None:
    pixels = decoded(picture.read_bytes())
    _keep(target, _measure(pixels, pixels, JUDGES if target.parent.name.startswith("one") else JUDGES[:2]))


def _keep(target: Path, arrays: dict[str, NDArray[Any]]) -> None:
    sink = io.BytesIO()
    np.savez(sink, **arrays)  # type: ignore[arg-type]
    write_whole(target, sink.getvalue())


def _gathered(targets: list[Path]) -> dict[str, NDArray[Any]]:
    rows: list[dict[str, NDArray[Any]]] = []
    for target in targets:
        with np.load(target, allow_pickle=False) as stored:
            rows.append(dict(stored))
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def measured(work: Path, kind: str, tasks: list[tuple[Any, str]], function: Any, workers: int) -> dict[str, NDArray[Any]]:
    """Measure what is not yet measured; one small file each."""
    folder = work / kind
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{name}.npz" for _, name in tasks]
    todo = [(what, target) for (what, _), target in zip(tasks, targets, strict=True) if not target.exists()]
    begun = perf_counter()
    for number, _ in enumerate(in_parallel(function, todo, workers if len(todo) > 150 else 1), 1):
        if number % 200 == 0:
            print(f"  {kind}: {number} of {len(todo)}, {number / (perf_counter() - begun):.1f} a second", flush=True)
    return _gathered(targets)


# ---------------------------------------------------------------------- one cell of the table


def cell(
    originals: dict[str, NDArray[Any]], released: dict[str, NDArray[Any]], labels: NDArray[np.int64], people: NDArray[np.int64]
) -> dict[str, Any]:
    """All figures of one release."""
    sizes = np.bincount(labels).astype(float)
    distance = fid(originals["inception"], released["inception"], weights_b=sizes)
    floor = fid_floor(originals["inception"], len(sizes), seed=0)
    out: dict[str, Any] = {
        "pictures": len(sizes),
        "fid": distance.value,
        "fid_mean_part": distance.mean_part,
        "fid_floor": floor.value,
        "found": float(released["found"].mean()),
    }
    for name in ("arcface", "facenet"):
        attack = recognize(released[name], labels, people, originals[name])
        out[name] = {
            "rank1": attack.rate, "interval": list(attack.interval), "bound": attack.bound, "chance": attack.chance,
            "in_group": attack.in_group.rate, "member_cosine": attack.member_cosine, "other_cosine": attack.other_cosine,
        }  # fmt: skip
    if "dlib" in released:
        near = within(released["dlib"], labels, people, originals["dlib"])
        out["dlib"] = {"within": near.rate, "interval": list(near.interval), "others": near.baseline}
    return out


def taken(work: Path, quick: bool, workers: int) -> tuple[list[Photo], list[FaceRecord], list[LeftOut]]:
    """The photos, and the faces found in them."""
    data = Path(os.environ["OMOKAGE_DATA"]) / "celeba_test200"
    photos = list_photos(data / "images", "csv", data / "labels_derived.csv")
    photos = photos[:32] if quick else photos
    begun = perf_counter()

    def say(stage: str, done: int = 0, of: int = 0, /) -> None:
        if done % 250 == 0:
            print(f"  survey: {done} of {of}, {perf_counter() - begun:.0f} s", flush=True)

    return photos, *survey(photos, work, SurveySettings(), workers, say)


def faces_of(work: Path, quick: bool) -> tuple[list[FaceRecord], NDArray[np.int64]]:
    """One face of each person, and the persons as numbers."""
    photos, found, _ = taken(work, quick, 1)
    everyone = person_codes([photos[face.photo].person for face in found])
    assert everyone is not None
    first = np.unique(everyone, return_index=True)[1]
    return [found[i] for i in first], np.arange(len(first))


def run(work: Path, quick: bool, workers: int) -> dict[str, Any]:
    """The whole experiment."""
    begun = perf_counter()
    photos, found, left = taken(work, quick, workers)
    result: dict[str, Any] = {
        "photos": len(photos),
        "taken": len(found),
        "left_out": dict(Counter(each.reason for each in left)),
        "survey_seconds": perf_counter() - begun,
    }
    print(f"{len(found)} of {len(photos)} found and aligned; left out: {result['left_out']}")
    everyone = person_codes([photos[face.photo].person for face in found])
    assert everyone is not None
    originals = measured(work, "originals", [(f, f.file.stem) for f in found], _measure_original, workers)
    ks = KS[:2] if quick else KS
    first = np.unique(everyone, return_index=True)[1]
    second = np.array([i for i in range(len(found)) if i not in set(first.tolist())])
    result["calibration"] = {
        name: {"rank1": (c := calibrate(originals[name], everyone)).rate, "interval": list(c.interval)}
        for name in ("arcface", "facenet")
    }
    result["settings"] = {}
    for setting, rows in (("one", first), ("all", np.arange(len(found)))):
        faces = [found[i] for i in rows]
        people = np.unique(everyone[rows], return_inverse=True)[1].astype(np.int64)
        store = FaceStore(faces, work, workers)
        here = {name: values[rows] for name, values in originals.items()}
        table: dict[str, Any] = {"photos": len(rows), "people": int(people.max()) + 1, "cells": {}}
        for k in ks:
            for name in MAPS:
                labels = grouped(store, people, k)
                at = perf_counter()
                pictures = drawn(store, people, labels, name)
                seconds = perf_counter() - at
                released = measured(work, f"{setting}-{name}-{k}", [(p, p.stem) for p in pictures], _measure_released, workers)
                figures = cell(here, released, labels, people)
                if setting == "one" and len(second):
                    figures["other_photo"] = other_photo(released, labels, people, everyone, rows, second, originals)
                table["cells"][f"{name}-{k}"] = {"k": k, "map": name, "making_seconds": seconds, **figures}
                print(f"{setting} {name} k={k}: FID {figures['fid']:.1f} (floor {figures['fid_floor']:.1f}), "
                      f"rank-1 {figures['arcface']['rank1']:.3f} / {figures['facenet']['rank1']:.3f} "
                      f"(bound {figures['arcface']['bound']:.3f}), "
                      f"{seconds:.0f} s", flush=True)  # fmt: skip
        result["settings"][setting] = table
    return result


def other_photo(
    released: dict[str, NDArray[Any]], labels: NDArray[np.int64], people: NDArray[np.int64], everyone: NDArray[np.int64],
    rows: NDArray[np.int64], second: NDArray[np.int64], originals: dict[str, NDArray[Any]],
) -> dict[str, float]:  # fmt: skip
    """The attacker has another photo of each person, not the one that was anonymized."""
    code = {int(everyone[i]): int(people[j]) for j, i in enumerate(rows)}
    known = np.array([code[int(everyone[i])] for i in second], dtype=np.int64)
    return {
        name: recognize(released[name], labels, people, originals[name][second], known).rate for name in ("arcface", "facenet")
    }


def arguments(description: str, quick: str) -> argparse.ArgumentParser:
    """What every experiment with faces is asked."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--work", type=Path, help="where what was done is kept (holds faces)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser


def places(chosen: argparse.Namespace) -> Path:
    """Make the folder for results; the folder where what was done is kept."""
    work: Path = chosen.work or networks.home() / "experiments" / ("faces-quick" if chosen.quick else "faces")
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen.results.mkdir(parents=True, exist_ok=True)
    return work


def main() -> None:
    from face_figures import draw_grid, draw_plot, write_markdown

    chosen = arguments(__doc__.splitlines()[0], "32 photos, k up to 4").parse_args()
    work = places(chosen)
    result = run(work, chosen.quick, chosen.workers)
    (chosen.results / "faces.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_markdown(result, chosen.results / "faces.md")
    draw_plot(result, chosen.results / "faces.png")
    draw_grid(work, chosen.quick, chosen.results / "faces_grid.jpg")
    print(f"written to {chosen.results}")


if __name__ == "__main__":
    main()
