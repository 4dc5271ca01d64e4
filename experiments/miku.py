"""MIKU's own tables and figures: every pair of a group map and a synthesis map, on CelebA, ours beside the papers'.

    python experiments/miku.py [--quick] [--faces 2000] [--pairs direct-direct,…] [--steps 0] [--results FOLDER] [--work FOLDER]

Faces are taken one of each person first, then second photos, so that up to some 900 faces k counts people. Groups are made by
Mondrian, as in the papers, over all dimensions of the group map. Every released picture is measured before the same calm
ground; a generator's own background is cut away by the parser first. Everything is resumable.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from face_groups import drawn, grouped
from faces import JUDGES, _keep, _measure, _measure_original, arguments, cell, measured, places, taken
from miku_figures import draw_fid, draw_grids, draw_labels, draw_parts, draw_swiss_roll, write_markdown
from numpy.typing import NDArray

from omokage.base.persons import person_codes
from omokage.evaluate.faces.labels import label_distances, read_labels
from omokage.faces.image import decoded
from omokage.faces.maps.ground import ground
from omokage.faces.store import FaceStore
from omokage.faces.survey import FaceRecord

KS = (2, 4, 8, 16, 32, 64, 128)
GROUP_MAPS = ("direct", "latent", "attribute", "recognition")
SYNTHESIS_MAPS = ("direct", "morph", "latent")
GROUPING = "mondrian:dims=9216"

Pairs = list[tuple[str, str]]
QUICK: Pairs = [("direct", "direct"), ("attribute", "latent"), ("recognition", "morph")]
ALONE = 200  # faces that are sent through each map alone


@lru_cache(maxsize=1)
def _parser() -> Any:
    from omokage.faces.parse import Parser

    return Parser(256)


def _measure_picture(picture: Path, target: Path) -> None:
    """As an attacker sees it, and its Inception features before the calm ground."""
    pixels = whole = decoded(picture.read_bytes())
    if target.parent.name.split("-")[2] == "latent":  # the synthesis map
        shown = np.minimum(_parser().parse(pixels).sum(-1, dtype=np.float32) / 255, 1)[..., None]
        whole = np.round(pixels * shown + ground(len(pixels)) * (1 - shown)).astype(np.uint8)
    _keep(target, _measure(pixels, whole, JUDGES[:2]))


def chosen_faces(work: Path, number: int, quick: bool, workers: int) -> tuple[list[FaceRecord], list[str], NDArray[np.int64]]:
    """One face of each person first, then second photos; their names, and the persons as numbers."""
    photos, found, _ = taken(work, quick, workers)
    everyone = person_codes([photos[face.photo].person for face in found])
    assert everyone is not None
    turn = np.zeros(len(found), np.int64)
    seen: dict[int, int] = {}
    for i, person in enumerate(everyone.tolist()):
        turn[i] = seen[person] = seen.get(person, -1) + 1
    order = np.lexsort([np.arange(len(found)), turn])[:number]
    return [found[i] for i in order], [photos[found[i].photo].name for i in order], everyone[order]


def run(
    work: Path,
    faces: list[FaceRecord],
    names: list[str],
    pairs: Pairs,
    ks: tuple[int, ...],
    steps: int,
    grouping: str,
    workers: int,
) -> dict[str, Any]:
    """The pairs at every k."""
    data = Path(os.environ["OMOKAGE_DATA"]) / "celeba_test200"
    titles, labels = read_labels(data / "labels_derived.csv", names)
    people, store = np.arange(len(faces)), FaceStore(faces, work, workers)  # each photo is a record, as in the papers
    originals = measured(work, "originals", [(f, f.file.stem) for f in faces], _measure_original, workers)
    result: dict[str, Any] = {"faces": len(faces), "steps": steps, "grouping": grouping, "ks": list(ks)}
    result |= {"labels": {}, "pairs": {}}
    for group in dict.fromkeys(group for group, _ in pairs):
        for k in ks:
            groups = grouped(store, people, k, group, grouping, steps)
            result["labels"][f"{group}-{k}"] = {
                each.labels: {"distance": each.distance, "random": each.at_random, "one_group": each.one_group}
                for each in label_distances(labels, titles, groups)
            }
            for synthesis in [synthesis for other, synthesis in pairs if other == group]:
                pictures = drawn(store, people, groups, synthesis, steps)
                kind = f"miku-{group}-{synthesis}-{k}-{steps}" + ("" if grouping == GROUPING else f"-{grouping}")
                released = measured(work, kind, [(p, p.stem) for p in pictures], _measure_picture, workers)
                figures = cell(originals, released, groups, people)
                result["pairs"][f"{group}-{synthesis}-{k}"] = figures
                print(f"G={group} S={synthesis} k={k}: FID {figures['fid']:.1f} (μ {figures['fid_mean_part']:.1f}, floor "
                      f"{figures['fid_floor']:.1f}), rank-1 {figures['arcface']['rank1']:.4f} / "
                      f"{figures['facenet']['rank1']:.4f}", flush=True)  # fmt: skip
    alone = dict.fromkeys(synthesis for _, synthesis in pairs)
    result["unaveraged"] = {name: unaveraged(work, name, faces[:ALONE], originals, steps, workers) for name in alone}
    return result


def unaveraged(
    work: Path, synthesis: str, faces: list[FaceRecord], originals: dict[str, NDArray[Any]], steps: int, workers: int
) -> dict[str, float]:
    """What a synthesis map hides by itself: faces sent there and back one by one (k = 1)."""
    people = np.arange(len(faces))
    pictures = drawn(FaceStore(faces, work, workers), people, people, synthesis, steps)  # every face is its own group here
    kind = f"miku-none-{synthesis}-1-{steps}"
    released = measured(work, kind, [(p, p.stem) for p in pictures], _measure_picture, workers)
    figures = cell({name: values[: len(faces)] for name, values in originals.items()}, released, people, people)
    return {"faces": len(faces), "fid": figures["fid"]} | {name: figures[name]["rank1"] for name in ("arcface", "facenet")}


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], "12 faces, k = 2 and 4, three pairs")
    parser.add_argument("--faces", type=int, default=2000)
    parser.add_argument("--ks", default=",".join(map(str, KS)))
    parser.add_argument("--pairs", help="some of them only, as direct-direct,attribute-latent")
    parser.add_argument("--grouping", default=GROUPING, help="how groups are made")
    parser.add_argument("--steps", type=int, default=0, help="steps of inversion")
    chosen = parser.parse_args()
    work = places(chosen)
    ks = (2, 4) if chosen.quick else tuple(int(k) for k in chosen.ks.split(","))
    pairs = [(group, synthesis) for group in GROUP_MAPS for synthesis in SYNTHESIS_MAPS]
    if chosen.quick:
        pairs = QUICK
    if chosen.pairs:
        pairs = [(group, synthesis) for group, synthesis in (each.split("-") for each in chosen.pairs.split(","))]
    number = 12 if chosen.quick else chosen.faces
    faces, names, _ = chosen_faces(work, number, chosen.quick, chosen.workers)
    draw_swiss_roll(chosen.results / "miku_swiss_roll.png")
    result = run(work, faces, names, pairs, ks, chosen.steps, chosen.grouping, chosen.workers)
    (chosen.results / "miku.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_markdown(result, chosen.results / "miku.md")
    draw_fid(result, chosen.results / "miku_fid.png")
    draw_parts(result, chosen.results / "miku_parts.png")
    draw_labels(result, chosen.results / "miku_labels.png")
    draw_grids(work, faces, result, chosen.results)
    print(f"written to {chosen.results}")


if __name__ == "__main__":
    main()
