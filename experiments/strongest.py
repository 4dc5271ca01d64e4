"""How much a release gives away depends on the attacker's ruler: every attack on releases of Otto, and on the demo's patients.

    python experiments/strongest.py            # all; resumes where it was stopped
    python experiments/strongest.py --quick    # 1,000 rows of Otto, few settings, for the tests; writes nothing

Groups are attacked on all 61,878 rows, noise on a sample of 5,000. Results are kept in ``experiments/results/strongest.json`` and
``.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dr_tables import Store, anonymizer_for
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from omokage import Anonymizer
from omokage.evaluate import attack_all, link
from omokage.tables.datasets import otto

RESULTS = Path(__file__).parent / "results"
NOISE_ROWS = 5000
GROUPS = (  # what, group map, synthesis map
    ("k=6", "log+pca:50", "none"),
    ("k=10", "log+pca:50", "none"),
    ("k=10", "std+pca:50", "std+pca:50"),
    ("k=10", "none", "none"),
)
GROUPERS = ("mondrian", "mondrian:variance", "mondrian:variance,multiple", "mondrian:standard", "mdav")  # k = 10, no map
NOISES = (("φ=0.003", "lpp:70"), ("φ=0.005", "lpp:70"))


def _say(what: str, done: int = 0, total: int = 0, /) -> None:
    print(what, flush=True)


def attacked(x: NDArray[Any], anonymizer: Anonymizer, sample: int | None) -> dict[str, Any]:
    tried = attack_all(link(x, anonymizer.release(x)), sample=sample, progress=_say)
    best = tried.strongest
    return {
        "strongest": best.name, "rate": round(best.rate, 5), "interval": [round(v, 5) for v in best.interval],
        "bound": best.bound, "rows": best.rows,
        "attacks": {
            name: {"rate": round(r.rate, 5), "exact": r.exact, "seconds": round(r.seconds, 1)}
            for name, r in tried.results.items()
        },
        "missing": tried.missing,
    }  # fmt: skip


def run(store: Store, x: NDArray[Any], groups: Sequence[Any], noises: Sequence[Any], groupers: Sequence[str]) -> None:
    patients = load_breast_cancer().data
    store.run("patients k=5 in std+pca:10", partial(attacked, patients, anonymizer_for("k=5", "std+pca:10"), None))
    for what, group, synthesis in groups:
        made = anonymizer_for(what, synthesis, group_map=None if group == synthesis else group)
        place = group if group == synthesis else f"{group}, averaged in {synthesis}"
        store.run(f"Otto {what} grouped in {place}", partial(attacked, x, made, None))
    for what, mapping in noises:
        store.run(f"Otto {what} noise in {mapping}", partial(attacked, x, anonymizer_for(what, mapping), NOISE_ROWS))
    for grouper in groupers:
        store.run(f"Otto k=10 by {grouper}", partial(attacked, x, anonymizer_for("k=10", "none", grouper), None))


def report(cells: dict[str, dict[str, Any]]) -> str:
    """A table of all settings, and one of every attack."""
    lines = ["# The strongest attacker, who has read the certificate", "", "Made by `python experiments/strongest.py`.", ""]
    if (reading := RESULTS / "strongest_reading.md").exists():
        lines += [reading.read_text(), ""]
    lines += ["| release | rows attacked | raw units | strongest | by | 1/k |", "|---|---|---|---|---|---|"]
    for name, cell in cells.items():
        raw = cell["attacks"]["optimal assignment, raw units"]["rate"]
        bound = "" if cell["bound"] is None else f"{cell['bound']:.3f}"
        lines.append(f"| {name} | {cell['rows']:,} | {raw:.4f} | **{cell['rate']:.4f}** | {cell['strongest']} | {bound} |")
    for name, cell in cells.items():
        lines += ["", f"## {name}", "", "| attack | linked | s |", "|---|---|---|"]
        for attack, found in cell["attacks"].items():
            lines.append(f"| {attack} | {found['rate']:.4f}{'' if found['exact'] else ', not proved'} | {found['seconds']} |")
        lines += [f"| {attack} | not tried: {reason} | |" for attack, reason in cell["missing"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1,000 rows of Otto, few settings, nothing written")
    options = parser.parse_args()
    x = otto()[0]
    if options.quick:
        store = Store(None)
        run(store, x[np.random.default_rng(0).choice(len(x), 1000, replace=False)], GROUPS[:1], (("φ=0.005", "lpp:30"),), ())
        print(report(store.cells))
        return
    RESULTS.mkdir(exist_ok=True)
    store = Store(RESULTS / "strongest.json")
    run(store, x, GROUPS, NOISES, GROUPERS)
    (RESULTS / "strongest.md").write_text(report(store.cells))


if __name__ == "__main__":
    main()
