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
    for name in [name for name in ("direct", "latent") if (name, name) in _pairs(result)]:
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
    alone = result["unaveraged"]
    told = (f"{name} {v['arcface']:.3f} / {v['facenet']:.3f} (FID {v['fid']:.1f})" for name, v in alone.items())
    number = next(iter(alone.values()))["faces"]
    lines += [
        "",
        f"Not averaged, only sent through the synthesis map and back, of {number} faces among themselves: {'; '.join(told)}.",
    ]
    lines += ["", "## |AV − gAV| by group map (true labels; lower is better)", ""]
    for labels in next(iter(result["labels"].values())):
        lines += [f"{labels}:", "", head, rule]
        for group in sorted({name.rsplit("-", 1)[0] for name in result["labels"]}):
            shown = " | ".join(f"{result['labels'][f'{group}-{k}'][labels]['distance']:.3f}" for k in ks)
            lines.append(f"| {group} | {shown} |")
        random = " | ".join(f"*{result['labels'][f'{group}-{k}'][labels]['random']:.3f}*" for k in ks)
        lines += [f"| *random groups* | {random} |", ""]
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


COLOURS = {"direct": "#b5651d", "morph": "#1d6fb5", "latent": "#3a8f4d"}
MARKS = {"direct": "o", "latent": "s", "attribute": "^", "recognition": "x"}


def _figure(width: float, height: float, panels: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels)


def _over_k(ax: Any, ks: list[int], title: str) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(ks, [str(k) for k in ks])
    ax.set_xlabel("k")
    ax.set_title(title, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


def draw_fid(result: dict[str, Any], path: Path) -> None:
    """FID over k (figure 10 of MIKU-2020) and re-identification, a line for each pair."""
    figure, (left, right) = _figure(11, 4.6, 2)
    ks = result["ks"]
    for group, synthesis in _pairs(result):
        values = [result["pairs"][f"{group}-{synthesis}-{k}"] for k in ks]
        style = {"color": COLOURS[synthesis], "marker": MARKS[group], "linewidth": 1, "label": f"G {group}, S {synthesis}"}
        left.plot(ks, [v["fid"] for v in values], **style)
        right.plot(ks, [max(v["arcface"]["rank1"], 1e-4) for v in values], **style)
    left.plot(ks, [v["fid_floor"] for v in values], "--", color="grey", label="floor")
    right.plot(ks, [v["arcface"]["bound"] for v in values], "--", color="grey", label="bound 1/k")
    right.set_yscale("log")
    _over_k(left, ks, "FID")
    _over_k(right, ks, "rank-1 re-identification, ArcFace")
    left.legend(fontsize=6, frameon=False, ncols=2)
    figure.savefig(path, dpi=80)


def draw_parts(result: dict[str, Any], path: Path) -> None:
    """The two parts of FID over k, both maps the same (figure 3 of MIKU-2019)."""
    figure, axes = _figure(8, 3.4, 2)
    ks = result["ks"]
    for name in ("direct", "latent"):
        values = [result["pairs"][f"{name}-{name}-{k}"] for k in ks if f"{name}-{name}-{k}" in result["pairs"]]
        if len(values) == len(ks):
            mean = [v["fid_mean_part"] for v in values]
            axes[0].plot(ks, mean, "o-", color=COLOURS[name], label=name.upper())
            axes[1].plot(ks, [v["fid"] - m for v, m in zip(values, mean, strict=True)], "o-", color=COLOURS[name])
    _over_k(axes[0], ks, "the means' part, μ_diff")
    _over_k(axes[1], ks, "the covariances' part, Σ_diff")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=80)


def draw_labels(result: dict[str, Any], path: Path) -> None:
    """|AV − gAV| over k for each group map (figures 7, 8 and 9 of MIKU-2020)."""
    titles = list(next(iter(result["labels"].values())))
    figure, axes = _figure(11, 3.4, len(titles))
    ks, names = result["ks"], sorted({name.rsplit("-", 1)[0] for name in result["labels"]})
    for ax, title in zip(np.atleast_1d(axes), titles, strict=True):
        for name in names:
            ax.plot(ks, [result["labels"][f"{name}-{k}"][title]["distance"] for k in ks], marker=MARKS[name], label=f"G {name}")
        random = [result["labels"][f"{names[0]}-{k}"][title]["random"] for k in ks]
        ax.plot(ks, random, "--", color="grey", label="random groups")
        _over_k(ax, ks, f"|AV − gAV| {title}")
        ax.set_ylim(bottom=0)
    np.atleast_1d(axes)[0].legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=80)


def draw_grids(work: Path, faces: list[Any], result: dict[str, Any], folder: Path) -> None:
    """``miku_ks.jpg``: two people over k for each pair (figure 4 of MIKU-2019 and 6 of MIKU-2020); ``miku_pairs.jpg``: eight
    people at k = 8, or the middle k, a row for each pair."""
    ks = result["ks"]
    middle = 8 if 8 in ks else ks[len(ks) // 2]
    chosen = np.linspace(0, len(faces) - 1, 8).astype(int)
    pairs, made = _pairs(result), {}
    for group, synthesis in pairs:
        for k in ks:
            made[group, synthesis, k] = _became(work, faces, group, synthesis, k, result)
    before = [_original(faces[i]) for i in chosen]
    rows = [np.hstack([_said("before"), *before])]
    rows += [np.hstack([_said(f"G {g}", f"S {s}"), *(_small(made[g, s, middle][i]) for i in chosen)]) for g, s in pairs]
    _write(rows, folder / "miku_pairs.jpg")
    by_map = sorted(pairs, key=lambda pair: ("latent", "morph", "direct").index(pair[1]))
    rows = [np.hstack([_said()] + [_said(f"G {g}", f"S {s}") for _ in (1, 5) for g, s in by_map])[-40:]]
    rows.append(np.hstack([_said("before")] + [before[i] for i in (1, 5) for _ in by_map]))
    rows += [np.hstack([_said(f"k = {k}")] + [_small(made[g, s, k][chosen[i]]) for i in (1, 5) for g, s in by_map]) for k in ks]
    _write(rows, folder / "miku_ks.jpg")


def _became(work: Path, faces: list[Any], group: str, synthesis: str, k: int, result: dict[str, Any]) -> list[Path]:
    """The picture of every face's group."""
    from face_groups import drawn, grouped

    from omokage.faces.store import FaceStore

    people, store = np.arange(len(faces)), FaceStore(faces, work)
    labels = grouped(store, people, k, group, result["grouping"], result["steps"])
    pictures = drawn(store, people, labels, synthesis, result["steps"])
    return [pictures[label] for label in labels]


def _original(face: Any) -> Any:
    from omokage.faces.maps.ground import ground

    portrait = face.portrait()
    return _shrunk(np.round(portrait.on(ground(portrait.size))).astype(np.uint8))


def _small(picture: Path) -> Any:
    from omokage.faces.image import decoded

    return _shrunk(decoded(picture.read_bytes()))


def _shrunk(picture: Any) -> Any:
    import cv2

    return cv2.resize(picture, (112, 112), interpolation=cv2.INTER_AREA)


def _said(*lines: str) -> Any:
    """Words, as large as a face."""
    import cv2

    field = np.full((112, 112, 3), 255, np.uint8)
    for number, line in enumerate(lines):
        at = (8, 104 - 18 * (len(lines) - 1 - number))
        cv2.putText(field, line, at, cv2.FONT_HERSHEY_SIMPLEX, 0.42, (40, 40, 40), 1, cv2.LINE_AA)
    return field


def _write(rows: list[Any], path: Path) -> None:
    from omokage.faces.image import encode_picture

    path.write_bytes(encode_picture(np.vstack(rows), ".jpg", quality=80))


def draw_swiss_roll(path: Path) -> None:
    """Figure 1 of MIKU-2020: grouped and averaged in (t, y), means stay on the roll; in (x, y, z) they do not."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from scipy.spatial import cKDTree

    from omokage.method.grouping import Mondrian
    from omokage.method.unify import Mean

    rng = np.random.default_rng(0)
    flat = np.column_stack([rng.uniform(0.35, 1.35, 1500), rng.uniform(0, 0.6, 1500)])
    roll = _rolled(flat)
    surface = cKDTree(_rolled(np.column_stack([rng.uniform(0.35, 1.35, 200_000), rng.uniform(0, 0.6, 200_000)])))
    shown = [("the data, coloured by t", roll, flat[:, 0])]
    for axes, space in (("x, y, z", roll), ("t, y", flat)):
        labels = Mondrian(20).fit_predict(space)
        means = Mean().unify(space, labels)
        points = means if space is roll else _rolled(means)
        off = surface.query(points)[0].mean()
        shown.append((f"averaged in ({axes}): {off:.3f} off the roll", points, Mean().unify(flat, labels)[:, 0]))
    figure = Figure(figsize=(10.5, 3.6))
    FigureCanvasAgg(figure)
    for number, (title, points, colours) in enumerate(shown):
        ax: Any = figure.add_axes((number / 3, -0.02, 1 / 3, 0.94), projection="3d")
        if number:
            ax.scatter(*roll.T, s=2, color="#dddddd", depthshade=False)
        ax.scatter(*points.T, s=28 if number else 5, c=colours, cmap="viridis", vmin=0.35, vmax=1.35, depthshade=False)
        ax.view_init(elev=14, azim=-80)
        ax.set_box_aspect((1, 0.8, 1), zoom=1.45)
        ax.set_axis_off()
        figure.text((number + 0.5) / 3, 0.95, title, ha="center", fontsize=10)
    figure.savefig(path, dpi=80)


def _rolled(flat: Any) -> Any:
    t, y = flat.T
    return np.column_stack([t * np.sin(4 * np.pi * t), y, t * np.cos(4 * np.pi * t)])
