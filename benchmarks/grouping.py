"""Groupers against their peers, in one run: seconds, ratios, information loss and what a nearest-record attacker finds.

    python benchmarks/grouping.py            # 5,000 × 10, 30,000 × 10, Otto (or a table like it), 5,722 × 9,216
    python benchmarks/grouping.py --quick    # small sizes, for the tests
    python benchmarks/grouping.py --huge DIR # also 200,000 × 9,216, memory-mapped from a file written to DIR

CPU seconds of all threads, best of several for what is quick. Loss is SSE/SST of group means. "nearest" is one quick attack: each
original is taken for the nearest group mean in raw units, and the expected share of right guesses is counted; chance is 1/n.
Other attackers find more: ``experiments/strongest.py`` tries them all.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omokage.errors import TableError
from omokage.method.grouping import MDAV, Cells, Mondrian
from omokage.method.unify import Mean
from omokage.tables.datasets import otto

Matrix = NDArray[np.float32]
Labels = NDArray[np.int64]
K = 10


def synthetic(n: int, d: int, seed: int = 0) -> Matrix:
    """Correlated normal columns."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, max(2, d // 2))) @ rng.normal(size=(max(2, d // 2), d))).astype(np.float32)


def otto_or_like_it() -> tuple[str, Matrix]:
    """Otto's table where OMOKAGE_DATA has it, else sparse counts of the same size."""
    try:
        return "Otto", otto()[0]
    except TableError:
        counts = np.random.default_rng(0).negative_binomial(0.1, 0.1, (61_878, 93))
        return "sparse counts (no Otto here)", counts.astype(np.float32)


def plain_mondrian(x: Matrix, k: int) -> Labels:
    """The yardstick: Algorithm 1 in plain NumPy."""
    labels, stack, group = np.empty(len(x), np.int64), [np.arange(len(x))], 0
    while stack:
        rows = stack.pop()
        if len(rows) < 2 * k:
            labels[rows] = group
            group += 1
            continue
        part = x[rows]
        order = np.argsort(part[:, int(np.ptp(part, axis=0).argmax())], kind="stable")
        half = (len(rows) + 1) // 2
        stack += [rows[order[half:]], rows[order[:half]]]
    return labels


def from_groups(groups: Any, n: int) -> Labels:
    labels = np.empty(n, np.int64)
    for g, rows in enumerate(groups):
        labels[np.asarray(rows)] = g
    return labels


def anonypy(x: Matrix, k: int) -> Labels:
    import pandas as pd
    from anonypy.mondrian import Mondrian as Peer

    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])])
    return from_groups(Peer(frame, list(frame.columns)).partition(k), len(x))


def anonypyx(x: Matrix, k: int) -> Labels:
    import pandas as pd
    from anonypyx.models import kAnonymity
    from anonypyx.mondrian import Mondrian as Peer

    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])])
    return from_groups(Peer(frame, list(frame.columns)).partition([kAnonymity(k)]), len(x))


def anonypyx_mdav(x: Matrix, k: int) -> Labels:
    import pandas as pd
    from anonypyx.microaggregation import MDAVGeneric

    if len(x) > 10_000:
        raise MemoryError("it holds all n × n distances")
    frame = pd.DataFrame(x.astype(float), columns=[f"c{j}" for j in range(x.shape[1])])
    return from_groups(MDAVGeneric(frame, list(frame.columns)).partition(k), len(x))


OURS: dict[str, Callable[[Matrix, int], Labels]] = {
    "Mondrian": lambda x, k: Mondrian(k).fit_predict(x),
    "Mondrian, variance": lambda x, k: Mondrian(k, spread="variance").fit_predict(x),
    "Mondrian, variance, multiples of k": lambda x, k: Mondrian(k, spread="variance", cut="multiple").fit_predict(x),
    "Mondrian, standardized": lambda x, k: Mondrian(k, standardize=True).fit_predict(x),
    "Cells, no swaps": lambda x, k: Cells(k, sweeps=0, random_state=0).fit_predict(x),
    "Cells": lambda x, k: Cells(k, random_state=0).fit_predict(x),
    "MDAV": lambda x, k: MDAV(k).fit_predict(x),
}
PEERS: dict[str, Callable[[Matrix, int], Labels]] = {
    "NumPy Mondrian (yardstick)": plain_mondrian,
    "anonypy Mondrian": anonypy,
    "anonypyx Mondrian": anonypyx,
    "anonypyx MDAV": anonypyx_mdav,
}


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def best_of(work: Callable[[], Any], seconds: float) -> tuple[float, float, Any]:
    """Best wall and CPU seconds of up to nine runs that fit in ``seconds``."""
    runs = [timed(work)]
    while len(runs) < 9 and sum(r[0] for r in runs) < seconds:
        runs.append(timed(work))
    return min(r[0] for r in runs), min(r[1] for r in runs), runs[0][2]


def loss_and_nearest(x: Matrix, labels: Labels) -> tuple[float, float]:
    means = Mean().unify(x, labels).astype(np.float32)
    gap = float(((x - means[labels]) ** 2).sum() / ((x - x.mean(axis=0, dtype=np.float64)) ** 2).sum())
    share = 1.0 / np.bincount(labels)
    lengths = (means * means).sum(axis=1)
    right = 0.0
    for a in range(0, len(x), 2048):
        nearest = (lengths - 2 * (x[a : a + 2048] @ means.T)).argmin(axis=1)
        own = labels[a : a + 2048]
        right += float(share[own][nearest == own].sum())
    return gap, right / len(x)


def bandwidth(x: Matrix) -> float:
    """Bytes a second when one thread adds up the matrix."""
    return x.nbytes / min(timed(lambda: x.sum())[0] for _ in range(5))


def compare(name: str, x: Matrix, peer_seconds: float, pace: dict[str, float], attack: bool = True) -> None:
    n, d = x.shape
    levels = max(1, math.ceil(math.log2(n / (2 * K)) + 1))
    speed = bandwidth(x)
    print(f"\n## {name}: {n:,} × {d:,}, k = {K}")
    print(f"reading the matrix once: {1000 * x.nbytes / speed:.1f} ms at {speed / 1e9:.1f} GB/s; Mondrian has {levels} levels")
    print(f"{'':38} {'wall s':>9} {'CPU s':>9} {'ratio':>8} {'loss':>7} {'nearest':>8}")
    reference = None
    for label, work in {**OURS, **PEERS}.items():
        peer = label in PEERS
        if peer and pace.get(label, 0.0) * n * d > peer_seconds:
            print(f"{label:38} left out: would take about {pace[label] * n * d:,.0f} s")
            continue
        try:
            if not peer:
                work(x[: 4 * K], K)  # compiled before it is timed
            wall, cpu, labels = best_of(lambda work=work: work(x, K), 0.0 if peer else 2.0)  # type: ignore[misc]
        except (ImportError, MemoryError, ValueError) as error:
            print(f"{label:38} left out: {error}")
            continue
        pace[label] = cpu / (n * d)
        reference = reference or cpu
        loss, found = loss_and_nearest(x, labels) if attack else (float("nan"), float("nan"))
        print(f"{label:38} {wall:9.4f} {cpu:9.4f} {cpu / reference:7.1f}× {loss:7.4f} {found:8.5f}", flush=True)


def wide(x: Matrix, k: int = K) -> None:
    """Wide data: how far from the time it takes to read the touched bytes."""
    n, d = x.shape
    levels = math.ceil(math.log2(n / (2 * k)) + 1)
    Mondrian(k).fit_predict(np.zeros((4 * k, d), np.float32))
    read = min(timed(lambda: x.max())[0] for _ in range(2))
    wall, cpu, _ = best_of(lambda: Mondrian(k).fit_predict(x), 5.0)
    print(f"\n## wide: {n:,} × {d:,} ({x.nbytes / 1e9:.2f} GB), k = {k}, all dimensions searched")
    print(f"reading once {read:.3f} s, {levels} levels ({levels * x.nbytes / 1e9:.1f} GB) {levels * read:.2f} s, on one thread")
    print(f"Mondrian: {wall:.3f} s wall, {cpu:.3f} s CPU = {cpu / (levels * read):.2f} × the reading time")
    wall, cpu, _ = best_of(lambda: Mondrian(k, d // 16, random_state=0).fit_predict(x), 5.0)
    print(f"Mondrian, {d // 16} random dimensions a set: {wall:.3f} s wall, {cpu:.3f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--peer-seconds", type=float, default=60.0, help="leave a peer out where it would take longer")
    parser.add_argument("--huge", type=Path, metavar="DIR", help="also 200,000 × 9,216, memory-mapped from DIR")
    options = parser.parse_args()
    pace: dict[str, float] = {}
    if options.quick:
        compare("normal", synthetic(1000, 6), 5.0, pace)
        wide(synthetic(300, 512))
        return
    compare("normal", synthetic(5_000, 10), options.peer_seconds, pace)
    compare("normal", synthetic(30_000, 10), options.peer_seconds, pace)
    compare(*otto_or_like_it(), options.peer_seconds, pace)
    wide(np.random.default_rng(0).random((5_722, 9_216), dtype=np.float32))
    if options.huge:
        path = options.huge / "omokage-huge.npy"
        mapped = np.lib.format.open_memmap(path, "w+", np.float32, (200_000, 9_216))
        try:
            for a in range(0, 200_000, 10_000):
                mapped[a : a + 10_000] = np.random.default_rng(a).random((10_000, 9_216), dtype=np.float32)
            mapped.flush()
            wide(np.load(path, mmap_mode="r"))
        finally:
            path.unlink()


if __name__ == "__main__":
    main()
