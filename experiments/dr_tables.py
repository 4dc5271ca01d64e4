"""Tables 1–13 of the DR paper (Yamazoe & Omote) on Otto, ours beside the paper's.

    python experiments/dr_tables.py            # all; resumes where it was stopped
    python experiments/dr_tables.py --quick    # 1,500 rows and a few cells, for the tests; writes nothing

Tables 1–5: re-identification of k-anonymized data (no map, PCA, LPP, autoencoder, NMF); 6–10: of noisy data; 11–13: utility.
k-anonymized releases are attacked by exact assignment at full size, noisy ones on a sample of rows (``--noise-rows``).
Results are kept in ``experiments/results/dr_tables.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omokage import Anonymizer, Laplace
from omokage.base.files import write_whole
from omokage.evaluate import Utility, reidentify, utility
from omokage.grouping import parse_grouper
from omokage.maps import parse_map
from omokage.tables.datasets import otto

RESULTS = Path(__file__).parent / "results"
KS = (3, 10, 50, 100)
PAPER_K = {  # accuracy of re-identification, k = 3, 10, 50, 100
    "none": (0.331, 0.094, 0.018, 0.009),
    "pca:30": (0.246, 0.059, 0.011, 0.004), "pca:50": (0.251, 0.059, 0.012, 0.006), "pca:70": (0.253, 0.065, 0.008, 0.005),
    "lpp:30": (0.081, 0.005, 0.003, 0.003), "lpp:50": (0.146, 0.020, 0.001, 0.001), "lpp:70": (0.210, 0.029, 0.004, 0.001),
    "ae:30": (0.255, 0.061, 0.008, 0.004), "ae:50": (0.257, 0.054, 0.005, 0.003), "ae:70": (0.258, 0.053, 0.007, 0.003),
    "nmf:30": (0.261, 0.061, 0.012, 0.007), "nmf:50": (0.253, 0.062, 0.008, 0.006), "nmf:70": (0.255, 0.055, 0.007, 0.007),
}  # fmt: skip
PAPER_NOISE = {  # φ: accuracy of re-identification
    "none": {2.5: 0.529, 3.5: 0.163, 4.5: 0.075, 5.5: 0.03, 6.5: 0.015},
    "pca:30": {1.0: 0.737, 1.5: 0.492, 2.5: 0.235, 3.5: 0.146}, "pca:50": {1.0: 0.851, 1.5: 0.641, 2.5: 0.346, 3.5: 0.182},
    "pca:70": {1.0: 0.878, 1.5: 0.693, 2.5: 0.406, 3.5: 0.227},
    "lpp:30": {0.001: 0.336, 0.003: 0.087, 0.005: 0.032, 0.01: 0.006},
    "lpp:50": {0.001: 0.699, 0.003: 0.303, 0.005: 0.096, 0.01: 0.019},
    "lpp:70": {0.001: 0.933, 0.003: 0.632, 0.005: 0.257, 0.01: 0.054},
    "ae:30": {0.1: 0.983, 0.3: 0.845, 0.5: 0.486, 1.0: 0.139}, "ae:50": {0.1: 0.993, 0.3: 0.906, 0.5: 0.653, 1.0: 0.228},
    "ae:70": {0.1: 0.997, 0.3: 0.986, 0.5: 0.864, 1.0: 0.396},
    "nmf:30": {0.1: 0.431, 0.3: 0.067, 0.5: 0.014, 1.0: 0.003}, "nmf:50": {0.1: 0.613, 0.3: 0.098, 0.5: 0.021, 1.0: 0.002},
    "nmf:70": {0.1: 0.687, 0.3: 0.104, 0.5: 0.022, 1.0: 0.004},
}  # fmt: skip
PAPER_UTILITY = {  # (table, what is done, map): accuracy, F, precision, recall
    (11, "k=10", "none"): (0.487, 0.353, 0.438, 0.469), (11, "φ=4.5", "none"): (0.594, 0.371, 0.653, 0.394),
    (11, "k=10", "pca:70"): (0.739, 0.577, 0.655, 0.637), (11, "φ=3.5", "pca:30"): (0.747, 0.600, 0.702, 0.608),
    (11, "k=3", "lpp:30"): (0.595, 0.474, 0.465, 0.564), (11, "φ=0.003", "lpp:50"): (0.571, 0.455, 0.447, 0.516),
    (11, "k=10", "ae:30"): (0.594, 0.399, 0.446, 0.498), (11, "φ=1.0", "ae:30"): (0.702, 0.612, 0.592, 0.637),
    (11, "k=10", "nmf:50"): (0.583, 0.417, 0.511, 0.514), (11, "φ=0.3", "nmf:50"): (0.545, 0.326, 0.529, 0.355),
    (12, "k=3", "pca:30"): (0.733, 0.581, 0.600, 0.637), (12, "k=3", "lpp:70"): (0.593, 0.389, 0.420, 0.518),
    (12, "k=3", "ae:30"): (0.653, 0.545, 0.522, 0.596), (13, "φ=3.5", "pca:70"): (0.733, 0.614, 0.764, 0.608),
    (13, "φ=0.005", "lpp:70"): (0.521, 0.424, 0.407, 0.508), (13, "φ=1.0", "ae:50"): (0.720, 0.629, 0.604, 0.653),
}  # fmt: skip
# Beyond the paper: the logarithm says who is alike, the counts themselves are averaged.
BEYOND = (  # what, grouper, group map, synthesis map, unifier
    ("k=10", "cells", "log+pca:50", "none", "mean"),
    ("k=10", "cells", "log+pca:50", "none", "spread"),
    ("k=10", "mdav", "log+pca:50", "none", "mean"),
    ("k=15", "cells", "log+pca:50", "none", "mean"),
    ("k=6", "cells", "log+pca:50", "none", "mean"),
)
GROUPERS = ("mondrian", "mondrian:variance", "mondrian:variance,multiple", "mdav", "cells")
GRID_GROUPER = "cells"
# Not in the paper, which does not say whether columns were standardized before PCA: its figures for PCA fit these.
STANDARDIZED = {f"std+{name}": rates for name, rates in PAPER_K.items() if name.startswith("pca")}
STANDARDIZED_UTILITY = (("k=10", "std+pca:70"), ("k=3", "std+pca:30"))


class Fitted:
    """A map that is already fitted to the data at hand: the same map serves every k and φ."""

    def __init__(self, part: Any, z: NDArray[Any]) -> None:
        self.part, self.z = part, z

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"part": self.part, "z": self.z}

    def set_params(self, **_: Any) -> Fitted:
        return self

    def __sklearn_clone__(self) -> Fitted:
        return self

    def fit(self, x: Any, y: Any = None) -> Fitted:
        return self

    def fit_transform(self, x: Any, y: Any = None) -> NDArray[Any]:
        return self.z

    def inverse_transform(self, z: Any) -> NDArray[Any]:
        back: NDArray[Any] = self.part.inverse_transform(z)
        return back


class Store:
    """Cells that are done, kept after each one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.cells: dict[str, dict[str, Any]] = json.loads(path.read_text())["cells"] if path and path.exists() else {}

    def run(self, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.cells:
            begun = time.perf_counter()
            self.cells[key] = {**work(), "wall": round(time.perf_counter() - begun, 1)}
            print(f"{key}: {self.cells[key]}", flush=True)
            if self.path:
                kept = json.dumps({"cells": self.cells}, indent=1, ensure_ascii=False) + "\n"
                write_whole(self.path, kept.encode())
        return self.cells[key]


def attacked(x: NDArray[Any], anonymizer: Anonymizer, sample: int | None) -> dict[str, Any]:
    release = anonymizer.release(x)
    found = reidentify(x, release, sample=sample, max_seconds=1200 if sample is None else 120)
    near = reidentify(x, release, attack="nearest", sample=sample)
    return {
        "rate": round(found.rate, 5), "interval": [round(v, 5) for v in found.interval], "nearest": round(near.rate, 5),
        "rows": found.rows, "exact": found.exact, "gap": found.gap, "seconds": round(found.seconds, 1),
    }  # fmt: skip


_BASELINE: list[Utility] = []  # learning from the originals is done once a run


def learned(x: NDArray[Any], y: NDArray[Any], anonymizer: Anonymizer) -> dict[str, Any]:
    result = utility(x, y, anonymizer, splits=1, baseline=_BASELINE[0] if _BASELINE else None)
    _BASELINE[:] = [result]
    out: dict[str, Any] = {"model": result.model, "original": {n: round(s.mean, 4) for n, s in result.original.items()}}
    out["released"] = {n: round(s.mean, 4) for n, s in result.released.items()}
    if result.through_map is not None:
        out["through map"] = {n: round(s.mean, 4) for n, s in result.through_map.items()}
    return out


def anonymizer_for(what: str, mapping: str, grouper: str = GRID_GROUPER, group_map: str | None = None) -> Anonymizer:
    """``k=10`` or ``φ=3.5`` in a map."""
    amount = what.split("=")[1]
    maps: dict[str, Any] = {
        "synthesis_map": None if mapping == "none" else parse_map(mapping),
        "group_map": None if group_map is None else parse_map(group_map),
    }
    if what.startswith("k"):
        return Anonymizer(parse_grouper(grouper, int(amount)), random_state=0, **maps)
    return Anonymizer(noise=Laplace(float(amount), random_state=0), random_state=0, **maps)


def fitted_anonymizer(what: str, ready: Fitted | None) -> Anonymizer:
    made = anonymizer_for(what, "none")
    made.synthesis_map = ready
    return made


def reidentification(store: Store, x: NDArray[Any], noise_rows: int | None, maps: list[str], ks: tuple[int, ...]) -> None:
    """Tables 1–10, one map after the other."""
    for mapping in maps:
        ready: Fitted | None = None
        for what, sample in _settings(mapping, ks, noise_rows):
            key = f"reidentification {what} {mapping}" + (" all" if what.startswith("φ") and sample is None else "")
            if key in store.cells:
                continue
            if ready is None and mapping != "none":
                part = parse_map(mapping)
                ready = Fitted(part, part.fit_transform(x))
            store.run(key, partial(attacked, x, fitted_anonymizer(what, ready), sample))


def _settings(mapping: str, ks: tuple[int, ...], noise_rows: int | None) -> Iterator[tuple[str, int | None]]:
    for k in sorted(ks, reverse=True):
        yield f"k={k}", None
    for phi in PAPER_NOISE.get(mapping, {}):
        yield f"φ={phi}", noise_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1,500 rows, few cells, nothing written")
    parser.add_argument("--noise-rows", type=int, default=5000, help="rows of a noisy release that are attacked; 0 for all")
    parser.add_argument("--maps", help="only these maps in tables 1–10, separated by commas")
    parser.add_argument("--only", choices=("groupers", "reidentification", "utility", "report"), help="one part only")
    options = parser.parse_args()
    x, y = otto()
    if options.quick:
        rows = np.random.default_rng(0).choice(len(x), 1500, replace=False)
        quick(x[rows], y[rows])
        return
    RESULTS.mkdir(exist_ok=True)
    store = Store(RESULTS / "dr_tables.json")
    if options.only in (None, "groupers"):
        for grouper in GROUPERS:
            made = anonymizer_for("k=10", "none", grouper)
            store.run(f"grouper {grouper}", partial(attacked, x, made, None))
    if options.only in (None, "utility"):
        for what, grouper, group, mapping, unifier in BEYOND:
            made = anonymizer_for(what, mapping, grouper, group)
            made.unifier = unifier
            store.run(f"beyond attack {what} {grouper} {group} {unifier}", partial(attacked, x, made, None))
            store.run(f"beyond utility {what} {grouper} {group} {unifier}", partial(learned, x, y, made))
        for table, what, mapping in PAPER_UTILITY:
            store.run(f"utility {table} {what} {mapping}", partial(learned, x, y, anonymizer_for(what, mapping)))
        for what, mapping in STANDARDIZED_UTILITY:
            store.run(f"utility {what} {mapping}", partial(learned, x, y, anonymizer_for(what, mapping)))
    if options.only in (None, "reidentification"):
        maps = options.maps.split(",") if options.maps else [*PAPER_K, *STANDARDIZED]
        reidentification(store, x, options.noise_rows or None, maps, KS)
    (RESULTS / "dr_tables.md").write_text(report(store.cells))


def quick(x: NDArray[Any], y: NDArray[Any]) -> None:
    store = Store(None)
    reidentification(store, x, 300, ["none", "pca:30"], (10,))
    store.run("utility 11 k=10 pca:70", lambda: learned(x, y, anonymizer_for("k=10", "pca:70")))
    print(report(store.cells))


def report(cells: dict[str, dict[str, Any]]) -> str:
    """The tables in Markdown: ours (paper's)."""
    lines = ["# The DR paper's tables, ours beside the paper's", "", "Made by `python experiments/dr_tables.py`.", ""]
    if (READING := Path(__file__).parent / "results" / "dr_tables_reading.md").exists():
        lines += [READING.read_text(), ""]
    if any(key.startswith("grouper") for key in cells):
        lines += [
            "## Which k-anonymizer? k = 10 without a map (paper 0.094)",
            "",
            "| grouper | assignment | nearest |",
            "|---|---|---|",
        ]
        lines += [
            f"| {g} | {cells[f'grouper {g}']['rate']:.4f} | {cells[f'grouper {g}']['nearest']:.4f} |"
            for g in GROUPERS
            if f"grouper {g}" in cells
        ] + [""]
    lines += ["## Tables 1–5: re-identification of k-anonymized data, all rows, ours (paper)", ""]
    lines += ["| map | " + " | ".join(f"k = {k}" for k in KS) + " |", "|---" * (len(KS) + 1) + "|"]
    for mapping, paper in {**PAPER_K, **STANDARDIZED}.items():
        shown = [_cell(cells.get(f"reidentification k={k} {mapping}"), p) for k, p in zip(KS, paper, strict=True)]
        lines.append(f"| {mapping} | " + " | ".join(shown) + " |")
    lines += [
        "",
        "## Tables 6–10: re-identification of noisy data, ours (paper)",
        "",
        "| map | φ | rate | rows attacked | rate, all rows |",
        "|---|---|---|---|---|",
    ]
    for mapping, noise in PAPER_NOISE.items():
        for phi, value in noise.items():
            cell = cells.get(f"reidentification φ={phi} {mapping}")
            whole = cells.get(f"reidentification φ={phi} {mapping} all")
            shown_whole = f"{whole['rate']:.4f}" if whole else ""
            lines.append(f"| {mapping} | {phi} | {_cell(cell, value)} | {cell['rows'] if cell else ''} | {shown_whole} |")
    lines += ["", "## Tables 11–13: utility, gradient boosting, one split of 80 : 20", ""]
    base = next((cell for key, cell in cells.items() if "utility" in key), None)
    lines += [f"Accuracy / F / precision / recall, macro-averaged. Learned from originals: {_row(base, 'original')}.", ""]
    lines += ["| table | what | map | tested on originals | tested through the map | paper |", "|---|---|---|---|---|---|"]
    for (table, what, mapping), row in PAPER_UTILITY.items():
        found = cells.get(f"utility {table} {what} {mapping}")
        paper_row = " / ".join(f"{v:.3f}" for v in row)
        lines.append(f"| {table} | {what} | {mapping} | {_row(found, 'released')} | {_row(found, 'through map')} | {paper_row} |")
    for what, mapping in STANDARDIZED_UTILITY:
        found = cells.get(f"utility {what} {mapping}")
        lines.append(f"| – | {what} | {mapping} | {_row(found, 'released')} | {_row(found, 'through map')} | |")
    lines += [
        "",
        "## Beyond the paper",
        "",
        "| what | grouper | grouped in | unified by | re-identification | tested on originals | from originals |",
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for what, grouper, group, _, unifier in BEYOND:
        attack, found = (
            cells.get(f"beyond attack {what} {grouper} {group} {unifier}"),
            cells.get(f"beyond utility {what} {grouper} {group} {unifier}"),
        )
        rate = f"{attack['rate']:.4f}" if attack else ""
        lines.append(
            f"| {what} | {grouper} | {group} | {unifier} | {rate} | {_row(found, 'released')} | {_row(found, 'original')} |"
        )
    return "\n".join(lines) + "\n"


def _cell(cell: dict[str, Any] | None, paper: float) -> str:
    return (
        f"({paper})" if cell is None else f"{cell['rate']:.4f} ({paper})" + ("" if cell["exact"] else f", gap {cell['gap']:.0e}")
    )


def _row(cell: dict[str, Any] | None, part: str) -> str:
    return " / ".join(f"{v:.3f}" for v in cell[part].values()) if cell and part in cell else ""


if __name__ == "__main__":
    main()
