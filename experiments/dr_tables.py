"""Tables 1–13 of the DR paper (Yamazoe & Omote) on Otto, ours beside the paper's.

    python experiments/dr_tables.py            # all; resumes where it was stopped
    python experiments/dr_tables.py --quick    # 1,500 rows and a few cells, for the tests; writes nothing

Tables 1–5: re-identification of k-anonymized data (no map, PCA, LPP, autoencoder, NMF); 6–10: of noisy data; 11–13: utility.
k-anonymized releases are attacked by exact assignment at full size, noisy ones on a sample of rows (``--noise-rows``), in raw
units, as the paper seems to have done, and in the map, as somebody does who has read the certificate.
Results are kept in ``experiments/results/dr_tables.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dr_paper import KS, PAPER_K, PAPER_NOISE, PAPER_UTILITY
from numpy.typing import NDArray

from omokage import Anonymizer, Laplace
from omokage.base.files import write_whole
from omokage.evaluate import Utility, hold_out, link, reidentify, utility
from omokage.method.grouping import parse_grouper
from omokage.method.maps import parse_map
from omokage.tables.datasets import otto

RESULTS = Path(__file__).parent / "results"
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
IN_MAP_K = 10  # the k for which the groups of every map are attacked in the map too
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
    both = link(x, anonymizer.release(x))
    found = reidentify(both, sample=sample, max_seconds=1200 if sample is None else 120)
    near = reidentify(both, matching="nearest", sample=sample)
    return {
        "rate": round(found.rate, 5), "interval": [round(v, 5) for v in found.interval], "nearest": round(near.rate, 5),
        "rows": found.rows, "exact": found.exact, "gap": found.gap, "seconds": round(found.seconds, 1),
    }  # fmt: skip


def attacked_in_map(x: NDArray[Any], anonymizer: Anonymizer, sample: int | None, part: Any) -> dict[str, Any]:
    """The same attack measured where the release was made; ``part`` is the fitted map."""
    both = replace(link(x, anonymizer.release(x)), group_map=part, synthesis_map=part)
    out: dict[str, Any] = {}
    for attack in ("group",) if anonymizer.noise is None else ("synthesis", "likelihood"):
        found = reidentify(both, attack=attack, sample=sample, max_seconds=1200 if sample is None else 120)
        out[attack] = {"rate": round(found.rate, 5), "exact": found.exact, "gap": found.gap, "rows": found.rows}
    return out


_BASELINE: list[Utility] = []  # learning from the originals is done once a run


def learned(x: NDArray[Any], y: NDArray[Any], anonymizer: Anonymizer) -> dict[str, Any]:
    train, test = hold_out(y)
    both = link(x[train], anonymizer.release(x[train]))
    result = utility(both, target=y[train], held_out=(x[test], y[test]), baseline=_BASELINE[0] if _BASELINE else None)
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
            whole = " all" if what.startswith("φ") and sample is None else ""
            raw, own = f"reidentification {what} {mapping}{whole}", f"in the map {what} {mapping}{whole}"
            measured_there = what.startswith("φ") or (what == f"k={IN_MAP_K}" and mapping != "none")
            if raw in store.cells and (own in store.cells or not measured_there):
                continue
            if ready is None and mapping != "none":
                part = parse_map(mapping)
                ready = Fitted(part, part.fit_transform(x))
            made = fitted_anonymizer(what, ready)
            store.run(raw, partial(attacked, x, made, sample))
            if measured_there:
                store.run(own, partial(attacked_in_map, x, made, sample, ready and ready.part))


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
            fitted = parse_map(group).fit(x)
            store.run(f"beyond in the map {what} {grouper} {group} {unifier}", partial(attacked_in_map, x, made, None, fitted))
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
    lines += _groups(cells) + _noise(cells)
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
        "| what | grouper | grouped in | unified by | raw units | in the group map | tested on originals | from originals |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for what, grouper, group, _, unifier in BEYOND:
        attack, found = (
            cells.get(f"beyond attack {what} {grouper} {group} {unifier}"),
            cells.get(f"beyond utility {what} {grouper} {group} {unifier}"),
        )
        own = cells.get(f"beyond in the map {what} {grouper} {group} {unifier}")
        rates = f"{attack['rate']:.4f} | {own['group']['rate']:.4f}" if attack and own else " | "
        lines.append(
            f"| {what} | {grouper} | {group} | {unifier} | {rates} | {_row(found, 'released')} | {_row(found, 'original')} |"
        )
    return "\n".join(lines) + "\n"


def _groups(cells: dict[str, dict[str, Any]]) -> list[str]:
    """Tables 1–5, in raw units, and for one k in the map."""
    lines = ["## Tables 1–5: re-identification of k-anonymized data, all rows, in raw units, ours (paper)", ""]
    lines += [f"| map | {' | '.join(f'k = {k}' for k in KS)} | k = {IN_MAP_K}, in the map |", "|---" * (len(KS) + 2) + "|"]
    for mapping, paper in {**PAPER_K, **STANDARDIZED}.items():
        shown = [_cell(cells.get(f"reidentification k={k} {mapping}"), p) for k, p in zip(KS, paper, strict=True)]
        kind = "reidentification" if mapping == "none" else "in the map"  # without a map, groups were made in raw units
        own = cells.get(f"{kind} k={IN_MAP_K} {mapping}")
        rate = "" if own is None else f"{own.get('group', own)['rate']:.4f}"
        lines.append(f"| {mapping} | " + " | ".join(shown) + f" | {rate} |")
    return [*lines, ""]


def _noise(cells: dict[str, dict[str, Any]]) -> list[str]:
    """Tables 6–10, in raw units, in the map, and by the noise's likelihood in the map."""
    lines = ["## Tables 6–10: re-identification of noisy data, ours (paper)", ""]
    lines += [
        "| map | φ | raw units | in the map | likelihood | rows attacked | raw units, all rows |",
        "|---|---|---|---|---|---|---|",
    ]
    for mapping, noise in PAPER_NOISE.items():
        for phi, value in noise.items():
            cell = cells.get(f"reidentification φ={phi} {mapping}")
            own = cells.get(f"in the map φ={phi} {mapping}", {})
            measured = [f"{own[ruler]['rate']:.4f}" if own else "" for ruler in ("synthesis", "likelihood")]
            whole = cells.get(f"reidentification φ={phi} {mapping} all")
            shown_whole = f"{whole['rate']:.4f}" if whole else ""
            rows = cell["rows"] if cell else ""
            lines.append(f"| {mapping} | {phi} | {_cell(cell, value)} | {' | '.join(measured)} | {rows} | {shown_whole} |")
    return lines


def _cell(cell: dict[str, Any] | None, paper: float) -> str:
    return (
        f"({paper})" if cell is None else f"{cell['rate']:.4f} ({paper})" + ("" if cell["exact"] else f", gap {cell['gap']:.0e}")
    )


def _row(cell: dict[str, Any] | None, part: str) -> str:
    return " / ".join(f"{v:.3f}" for v in cell[part].values()) if cell and part in cell else ""


if __name__ == "__main__":
    main()
