"""Every attacker on releases of faces: recognizers beside the codes of the release's own maps.

    python experiments/face_attacks.py [--quick] [--people 128] [--results FOLDER] [--work FOLDER]

One CelebA photo of each person, released by ``omokage faces`` and judged by ``omokage faces evaluate``, for several pairs of
maps. An attacker holds all photos and names the person whose photo is nearest; none can be right more often than the bound.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from faces import arguments, places

from omokage import Anonymizer, Cells
from omokage.evaluate.faces import evaluation
from omokage.evaluate.faces.evaluation import evaluate_faces
from omokage.faces.listing import list_photos
from omokage.faces.maps import make_face_map
from omokage.faces.resuming import release_folder
from omokage.report.sentences import attacker_name

PAIRS = (("recognition", "morph"), ("attribute", "morph"), ("attribute", "latent"))
KS = (4, 8)


def photos_of(people: int, place: Path) -> Path:
    """A folder with one photo of each of so many people."""
    data = Path(os.environ["OMOKAGE_DATA"]) / "celeba_test200"
    first = {photo.person: photo.path for photo in reversed(list_photos(data / "images", "csv", data / "labels_derived.csv"))}
    folder = place / f"photos-{people}"
    folder.mkdir(exist_ok=True, mode=0o700)
    for path in sorted(first.values())[:people]:
        if not (folder / path.name).exists():
            shutil.copy2(path, folder)
    return folder


def cell(photos: Path, group: str, synthesis: str, k: int, work: Path, workers: int) -> dict[str, Any]:
    """One release, attacked."""
    release, key = work / f"{group}-{synthesis}-{k}-{photos.name}", work / f"{group}-{synthesis}-{k}-{photos.name}.json"
    if not release.exists():
        maps = {"group_map": make_face_map(group, group=True), "synthesis_map": make_face_map(synthesis)}
        anonymizer = Anonymizer(Cells(k), **maps, random_state=0)
        release_folder(anonymizer, photos, release, key=key, workers=workers)
    result = evaluate_faces(photos, release, key, workers=workers)
    return {
        "k": k, "group_map": group, "synthesis_map": synthesis, "faces": result.faces,
        "bound": result.released.strongest.bound, "chance": result.released.strongest.chance,
        "attacks": {
            attacker_name(name, result.certificate): {
                "rate": attack.rate, "interval": list(attack.interval), "in_group": attack.in_group.rate
            }
            for name, attack in result.released.attackers.items()
        },
    }  # fmt: skip


def report(cells: list[dict[str, Any]]) -> str:
    """All cells as a table, an attack in each row."""
    lines = ["# Every attacker on released faces", "", "Made by `python experiments/face_attacks.py`.", ""]
    lines += [
        "| maps (G, S) | k | bound | attack | named right | points into its group | not averaged |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in cells:
        maps = f"{each['group_map'].upper()}, {each['synthesis_map'].upper()}"
        for name, a in each["attacks"].items():
            lines.append(f"| {maps} | {each['k']} | {each['bound']:.1%} | {name} | {a['rate']:.1%} | {a['in_group']:.1%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], "8 people, k = 4, one pair; writes nothing")
    parser.add_argument("--people", type=int, default=128)
    chosen = parser.parse_args()
    work = places(chosen)
    evaluation.SAMPLE = 0  # what single faces show without averaging is told by omokage faces evaluate
    photos = photos_of(8 if chosen.quick else chosen.people, work)
    kept = work / f"face-attacks-{photos.name}.json"
    cells: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for group, synthesis in PAIRS[:1] if chosen.quick else PAIRS:
        for k in KS[:1] if chosen.quick else KS:
            name = f"{group}-{synthesis}-{k}"
            if name not in cells:
                cells[name] = cell(photos, group, synthesis, k, work, chosen.workers)
                kept.write_text(json.dumps(cells, indent=1))
            best = next(iter(cells[name]["attacks"].items()))
            print(f"{name}: strongest {best[0]} {best[1]['rate']:.1%}, bound {cells[name]['bound']:.1%}", flush=True)
    print(report(list(cells.values())))
    if not chosen.quick:
        (chosen.results / "face_attacks.json").write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
        (chosen.results / "face_attacks.md").write_text(report(list(cells.values())), encoding="utf-8")


if __name__ == "__main__":
    main()
