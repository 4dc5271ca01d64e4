"""The table, the plot and the picture grid of experiments/faces.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

TITLES = {"one": "One photo of each person", "all": "All photos"}


def write_markdown(result: dict[str, Any], path: Path) -> None:
    """All figures to read."""
    taken, photos = result["taken"], result["photos"]
    lines = [
        "# Faces: MORPH against DIRECT",
        "",
        "Made by `python experiments/faces.py`; it says how.",
        "",
        f"Found and aligned: {taken} of {photos} photos ({taken / photos:.1%}). Left out: "
        + "; ".join(f"{number} because {reason}" for reason, number in result["left_out"].items()) + ".",
        "",
        "Recognizers on untouched faces (rank-1, a second photo of each person against one of everybody): "
        + ", ".join(f"{name} {figures['rank1']:.3f}" for name, figures in result["calibration"].items()) + ".",
    ]  # fmt: skip
    for setting, table in result["settings"].items():
        dlib = "dlib" in next(iter(table["cells"].values()))
        heads = ["k", "pictures", "FID floor", "FID DIRECT", "FID MORPH", "bound (1/k)", "rank-1 ArcFace D / M"]
        heads += ["rank-1 FaceNet D / M", "found D / M"] + (["dlib ≤ 0.6 D / M", "strangers ≤ 0.6 D / M"] if dlib else [])
        lines += ["", f"## {TITLES[setting]}: {table['photos']} photos of {table['people']} people", ""]
        lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for k in sorted({entry["k"] for entry in table["cells"].values()}):
            d, m = (table["cells"][f"{name}-{k}"] for name in ("direct", "morph"))
            cells = [str(k), str(m["pictures"]), f"{m['fid_floor']:.1f}", f"{d['fid']:.1f}", f"{m['fid']:.1f}"]
            cells.append(f"{m['arcface']['bound']:.4f}")
            cells += [f"{d[name]['rank1']:.4f} / {m[name]['rank1']:.4f}" for name in ("arcface", "facenet")]
            cells.append(f"{d['found']:.1%} / {m['found']:.1%}")
            cells += [f"{d['dlib'][x]:.1%} / {m['dlib'][x]:.1%}" for x in (("within", "others") if dlib else ())]
            lines.append(f"| {' | '.join(cells)} |")
        lines += ["", f"Chance of a guess: {table['cells'][next(iter(table['cells']))]['arcface']['chance']:.5f}."]
        if setting == "one" and "other_photo" in next(iter(table["cells"].values())):
            lines += ["", "The attacker has another photo of each person, not the one that was anonymized (rank-1):", ""]
            lines += ["| k | ArcFace DIRECT | ArcFace MORPH | FaceNet DIRECT | FaceNet MORPH |", "|---|---|---|---|---|"]
            for k in sorted({entry["k"] for entry in table["cells"].values()}):
                d, m = (table["cells"][f"{name}-{k}"]["other_photo"] for name in ("direct", "morph"))
                lines.append(f"| {k} | {d['arcface']:.4f} | {m['arcface']:.4f} | {d['facenet']:.4f} | {m['facenet']:.4f} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw_plot(result: dict[str, Any], path: Path) -> None:
    """FID with its floor, rank-1 with its bound, and dlib's share, over k."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3, squeeze=False)
    colours = {"direct": "#b5651d", "morph": "#1d6fb5"}
    for line, (setting, table) in enumerate(result["settings"].items()):
        ks = sorted({entry["k"] for entry in table["cells"].values()})
        for name, colour in colours.items():
            cells = [table["cells"][f"{name}-{k}"] for k in ks]
            label = name.upper()
            axes[line, 0].plot(ks, [c["fid"] for c in cells], "o-", color=colour, label=label)
            axes[line, 1].plot(ks, [c["arcface"]["rank1"] for c in cells], "o-", color=colour, label=f"{label} ArcFace")
            axes[line, 1].plot(ks, [c["facenet"]["rank1"] for c in cells], "s:", color=colour, label=f"{label} FaceNet")
            if "dlib" in cells[0]:
                axes[line, 2].plot(ks, [c["dlib"]["within"] for c in cells], "o-", color=colour, label=label)
                axes[line, 2].plot(ks, [c["dlib"]["others"] for c in cells], ":", color=colour, label=f"{label}, strangers")
            else:
                axes[line, 2].plot(ks, [c["arcface"]["member_cosine"] for c in cells], "o-", color=colour, label=label)
                axes[line, 2].plot(ks, [c["arcface"]["other_cosine"] for c in cells], ":", color=colour, label=f"{label}, others")
        last = [table["cells"][f"morph-{k}"] for k in ks]
        axes[line, 0].plot(ks, [c["fid_floor"] for c in last], "--", color="grey", label="floor")
        axes[line, 1].plot(ks, [c["arcface"]["bound"] for c in last], "--", color="grey", label="1/k bound")
        axes[line, 0].set_ylabel(f"{TITLES[setting]}\n\nFID")
        axes[line, 1].set_ylabel("rank-1 re-identification")
        axes[line, 1].set_yscale("log")
        axes[line, 2].set_ylabel("dlib distance ≤ 0.6" if "dlib" in last[0] else "ArcFace cosine with members")
        for ax in axes[line]:
            ax.set_xscale("log", base=2)
            ax.set_xticks(ks, [str(k) for k in ks])
            ax.set_xlabel("k")
            ax.spines[["top", "right"]].set_visible(False)
            ax.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=80)


def draw_grid(work: Path, quick: bool, path: Path) -> None:
    """Eight originals before the calm ground, and below what became of each as k grows: DIRECT and MORPH in turn."""
    import cv2
    from face_groups import drawn, grouped
    from faces import KS, faces_of

    from omokage.faces.image import decoded, encode_picture
    from omokage.faces.maps.ground import ground
    from omokage.faces.store import FaceStore

    faces, people = faces_of(work, quick)
    store = FaceStore(faces, work)
    chosen = np.linspace(0, len(faces) - 1, 8).astype(int)
    side = 112
    crops = [faces[i].portrait() for i in chosen]
    rows = [np.hstack([cv2.resize(np.round(p.on(ground(p.size))).astype(np.uint8), (side, side), interpolation=cv2.INTER_AREA)
                       for p in crops])]  # fmt: skip
    for k in KS[:2] if quick else KS:
        for name in ("direct", "morph"):
            labels = grouped(store, people, k)
            made = drawn(store, people, labels, name)
            shown = [decoded(made[labels[i]].read_bytes()) for i in chosen]
            rows.append(np.hstack([cv2.resize(p, (side, side), interpolation=cv2.INTER_AREA) for p in shown]))
    path.write_bytes(encode_picture(np.vstack(rows), ".jpg", quality=80))
