"""Tables and pictures of experiments/miku.py, ours beside the papers' numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

PAPER_TABLE_3 = {  # MIKU-2019, LFW, 5,722 faces: both maps DIRECT, both maps LATENT
    "direct": {2: 61.17, 4: 128.8, 8: 178.0, 16: 190.6, 32: 200.5, 64: 227.9, 128: 245.1},
    "latent": {2: 111.8, 4: 127.6, 8: 146.1, 16: 162.8, 32: 176.1, 64: 191.7, 128: 202.6},
}


def _pairs(result: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = {tuple(name.rsplit("-", 1)[0].split("-")) for name in result["pairs"]}
    return sorted((group, synthesis) for group, synthesis in pairs)


def write_markdown(result: dict[str, Any], path: Path) -> None:
    """Everything to read."""
    ks = result["ks"]
    head = "| | " + " | ".join(f"k = {k}" for k in ks) + " |"
    rule = "|---" * (len(ks) + 1) + "|"
    any_pair = f"{_pairs(result)[0][0]}-{_pairs(result)[0][1]}"
    floors = [result["pairs"][f"{any_pair}-{k}"]["fid_floor"] for k in ks]
    lines = ["# MIKU: every pair of maps", "", "Made by `python experiments/miku.py`; it says how.", ""]
    lines += [f"{result['faces']} CelebA faces, {result['steps']} steps of inversion after the encoder.", ""]
    lines += ["## FID of every pair (group map, synthesis map)", "", head, rule]
    lines.append("| *floor for as many different faces* | " + " | ".join(f"*{value:.1f}*" for value in floors) + " |")
    for group, synthesis in _pairs(result):
        values = [result["pairs"][f"{group}-{synthesis}-{k}"] for k in ks]
        lines.append(f"| {group}, {synthesis} | " + " | ".join(f"{v['fid']:.1f}" for v in values) + " |")
    lines += ["", "The mean's part of it, |μ_A − μ_B|²:", "", head, rule]
    for group, synthesis in _pairs(result):
        values = [result["pairs"][f"{group}-{synthesis}-{k}"] for k in ks]
        lines.append(f"| {group}, {synthesis} | " + " | ".join(f"{v['fid_mean_part']:.1f}" for v in values) + " |")
    lines += ["", "## MIKU-2019's table 3: both maps the same", "", head, rule]
    for name in ("direct", "latent"):
        paper = [PAPER_TABLE_3[name].get(k) for k in ks]
        lines.append(f"| {name}, paper (LFW) | " + " | ".join("" if v is None else f"{v:g}" for v in paper) + " |")
        ours = [result["pairs"][f"{name}-{name}-{k}"]["fid"] for k in ks]
        lines.append(f"| {name}, ours | " + " | ".join(f"{v:.1f}" for v in ours) + " |")
    lines += ["", "## Rank-1 re-identification (ArcFace / FaceNet), beside the bound of about 1/k", "", head, rule]
    bounds = [result["pairs"][f"{any_pair}-{k}"]["arcface"]["bound"] for k in ks]
    lines.append("| *bound* | " + " | ".join(f"*{b:.4f}*" for b in bounds) + " |")
    for group, synthesis in _pairs(result):
        values = [result["pairs"][f"{group}-{synthesis}-{k}"] for k in ks]
        shown = " | ".join(f"{v['arcface']['rank1']:.4f} / {v['facenet']['rank1']:.4f}" for v in values)
        lines.append(f"| {group}, {synthesis} | {shown} |")
    if "unaveraged" in result:
        lines += ["", "Sent through the synthesis map alone, not averaged, of the first 200 faces: "]
        lines[-1] += "; ".join(
            f"{name} {v['arcface']:.3f} / {v['facenet']:.3f}, FID {v['fid']:.1f}" for name, v in result["unaveraged"].items()
        ) + "."  # fmt: skip
    lines += ["", "## |AV − gAV| by group map (true labels; lower is better)", ""]
    for labels in next(iter(result["labels"].values())):
        lines += [f"{labels}:", "", head, rule]
        for group in sorted({name.rsplit("-", 1)[0] for name in result["labels"]}):
            shown = " | ".join(f"{result['labels'][f'{group}-{k}'][labels]['distance']:.3f}" for k in ks)
            lines.append(f"| {group} | {shown} |")
        random = " | ".join(f"*{result['labels'][f'{group}-{k}'][labels]['random']:.3f}*" for k in ks)
        lines += [f"| *random groups* | {random} |", ""]
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def draw_fid(result: dict[str, Any], path: Path) -> None:
    """FID and re-identification over k, a line for each pair."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    colours = {"direct": "#b5651d", "morph": "#1d6fb5", "latent": "#3a8f4d"}
    marks = {"direct": "o", "latent": "s", "attribute": "^", "recognition": "x"}
    ks = result["ks"]
    for group, synthesis in _pairs(result):
        values = [result["pairs"][f"{group}-{synthesis}-{k}"] for k in ks]
        style = {"color": colours[synthesis], "marker": marks[group], "linewidth": 1, "label": f"G {group}, S {synthesis}"}
        left.plot(ks, [v["fid"] for v in values], **style)
        right.plot(ks, [max(v["arcface"]["rank1"], 1e-4) for v in values], **style)
    left.plot(ks, [v["fid_floor"] for v in values], "--", color="grey", label="floor")
    right.plot(ks, [v["arcface"]["bound"] for v in values], "--", color="grey", label="bound 1/k")
    left.set_ylabel("FID")
    right.set_ylabel("rank-1, ArcFace")
    right.set_yscale("log")
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.set_xlabel("k")
        ax.spines[["top", "right"]].set_visible(False)
    left.legend(fontsize=6, frameon=False, ncols=2)
    figure.savefig(path, dpi=80)


def draw_grid(work: Path, faces: list[Any], result: dict[str, Any], path: Path) -> None:
    """Six people and what became of each: a row for every pair at k = 8 or the middle k."""
    import cv2
    from miku import GROUPING

    from omokage.faces.image import decoded, encode_picture
    from omokage.gallery.folder import FaceSettings, group_features, grouped, unified
    from omokage.maps.morph import ground

    ks = result["ks"]
    k = 8 if 8 in ks else ks[len(ks) // 2]
    people = np.arange(len(faces))
    side, chosen = 112, np.linspace(0, len(faces) - 1, 8).astype(int)
    portraits = [faces[i].portrait() for i in chosen]
    small = [
        cv2.resize(np.round(p.on(ground(p.size))).astype(np.uint8), (side, side), interpolation=cv2.INTER_AREA) for p in portraits
    ]
    rows = [np.hstack(small)]
    for group, synthesis in _pairs(result):
        settings = FaceSettings(k, group, synthesis, grouping=GROUPING, steps=result["steps"])
        labels = grouped(group_features(faces, settings, work, 1), people, settings, seed=0)
        made = unified(faces, people, labels, settings, work, 1, lambda stage, done, of: None)
        shown = [decoded(made[labels[i]].read_bytes()) for i in chosen]
        rows.append(np.hstack([cv2.resize(p, (side, side), interpolation=cv2.INTER_AREA) for p in shown]))
    path.write_bytes(encode_picture(np.vstack(rows), ".jpg", quality=80))


def draw_swiss_roll(path: Path) -> None:
    """Figure 1 of MIKU-2020: grouped and averaged in (t, y), means stay on the roll; in (x, y, z) they do not."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from omokage.grouping import Mondrian
    from omokage.unify import Mean

    rng = np.random.default_rng(0)
    flat = np.column_stack([rng.uniform(0.3, 1.3, 1000), rng.uniform(0, 1, 1000)])
    roll = _rolled(flat)
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    titles = ("the data", "grouped and averaged in (x, y, z)", "grouped and averaged in (t, y)")
    direct = Mean().unify(roll, Mondrian(20).fit_predict(roll))
    mapped = _rolled(Mean().unify(flat, Mondrian(20).fit_predict(flat)))
    for number, (title, points) in enumerate(zip(titles, (roll, direct, mapped), strict=True), 1):
        ax = figure.add_subplot(1, 3, number, projection="3d")
        if number > 1:
            ax.scatter(*roll.T, s=1, color="#cccccc")
        ax.scatter(*points.T, s=4 if number == 1 else 18, c=points[:, 1], cmap="viridis")
        ax.set_title(title, fontsize=9)
        ax.view_init(elev=12, azim=-75)
        ax.set_axis_off()
    figure.savefig(path, dpi=70)


def _rolled(flat: Any) -> Any:
    t, y = flat.T
    return np.column_stack([t * np.sin(4 * np.pi * t), y, t * np.cos(4 * np.pi * t)])
