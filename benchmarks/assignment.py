"""Optimal assignment: ours beside SciPy, lapx and POT, for k-anonymous and noisy releases, as n grows.

    python benchmarks/assignment.py            # n = 1k, 2k, 5k, 10k; peers up to 5k (--peers 10000 for more: minutes)
    python benchmarks/assignment.py --full     # also the whole table, ours only
    python benchmarks/assignment.py --quick    # a few seconds

Data: Otto (otto/train.csv.zip in the folder that OMOKAGE_DATA names), else counts drawn to look like it. SciPy and lapx get
the n × n costs; POT gets the same n × G transport problem as we do. All times include the costs. "excess" is how much more a
peer's assignment costs than ours, relative: zero up to rounding, or one of us is wrong.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from omokage.errors import TableError
from omokage.evaluate.assignment.transport import distinct_rows, solve_transport
from omokage.method.grouping import Mondrian
from omokage.method.unify import Mean
from omokage.tables.datasets import otto

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Peer = Callable[[Floats, Floats, Ints, Ints], float]  # rows, centres, capacities, centre of every released row → cost


def load() -> tuple[str, Floats]:
    """The Otto features, or a synthetic table of the same shape."""
    try:
        return "Otto", otto()[0].astype(np.float64)
    except TableError:
        rng = np.random.default_rng(0)
        rate = rng.gamma(0.2, 1.0, (61_878, 12)) @ rng.gamma(0.3, 1.0, (12, 93))
        return "synthetic counts", rng.poisson(rate).astype(np.float64)


def group_means(x: Floats, k: int) -> Floats:
    """A k-anonymous release of the raw rows by Mondrian."""
    labels = Mondrian(k).fit_predict(x)
    return Mean().unify(x, labels)[labels]


def scipy_cost(x: Floats, centers: Floats, capacity: Ints, which: Ints) -> float:
    """SciPy's linear_sum_assignment on the n × n costs."""
    costs = cdist(x, centers[which], "sqeuclidean")
    return float(costs[linear_sum_assignment(costs)].sum())


def peers() -> dict[str, Peer]:
    """The peers that are installed; a line for each that is not."""
    found: dict[str, Peer] = {"scipy": scipy_cost}
    try:
        import lap  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        print("lapx is not installed, skipped: pip install lapx")
    else:

        def lapx_cost(x: Floats, centers: Floats, capacity: Ints, which: Ints) -> float:
            return float(lap.lapjv(cdist(x, centers[which], "sqeuclidean"))[0])

        found["lapx"] = lapx_cost
    try:
        import ot  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        print("POT is not installed, skipped: pip install pot")
    else:

        def pot_cost(x: Floats, centers: Floats, capacity: Ints, which: Ints) -> float:
            costs = cdist(x, centers, "sqeuclidean")
            masses = np.ones(len(x)), capacity.astype(np.float64)
            return float(ot.emd2(*masses, costs, numItermax=10_000_000))

        found["POT"] = pot_cost
    return found


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, wall seconds and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def run(name: str, x: Floats, release: Floats, others: dict[str, Peer]) -> None:
    """One line: ours, its certificate, and every peer's time as a multiple of ours."""
    centers, which, capacity = distinct_rows(release)
    ours, wall, cpu = timed(lambda: solve_transport(x, centers, capacity))
    rate = float(((ours.column == which) / capacity[which]).mean())
    line = f"{name:<10} {len(x):>6} {len(centers):>6} {wall:>8.2f} {cpu:>8.2f}  {ours.gap / ours.cost:>8.1e} "
    line += f"{'exact' if ours.exact else 'bound':<6} {rate:>7.4f}"
    for peer, solve in others.items():
        cost, _, peer_cpu = timed(lambda solve=solve: solve(x, centers, capacity, which))  # type: ignore[misc]
        line += f"  {peer} {peer_cpu / cpu:>6.1f}× (excess {cost / ours.cost - 1:+.0e})"
    print(line, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description="Optimal assignment: ours beside SciPy, lapx and POT.")
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--full", action="store_true", help="also the whole table, ours only")
    parser.add_argument("--peers", type=int, default=5000, metavar="N", help="largest n the peers have to solve")
    options = parser.parse_args(arguments)
    source, table = load()
    sizes = [200, 400] if options.quick else [1000, 2000, 5000, 10_000]
    sizes += [len(table)] if options.full else []
    others = peers()
    for memory in (6 << 30, 0):  # compile both ways before the clock runs
        solve_transport(table[:200], table[:200] + 0.5, np.ones(200, np.int64), memory=memory)
    print(f"{source}; times in seconds, peers as multiples of our CPU time")
    print(f"{'release':<10} {'n':>6} {'G':>6} {'wall':>8} {'CPU':>8}  {'gap/cost':>8} {'':<6} {'re-id':>7}")
    rng = np.random.default_rng(1)
    for n in sizes:
        x = table if n == len(table) else table[rng.choice(len(table), n, replace=False)]
        beside = others if n <= options.peers else {}
        for k in (3, 10):
            run(f"k = {k}", x, group_means(x, k), beside)
        run("noise 4.5", x, x + rng.laplace(0, 4.5, x.shape), beside)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
