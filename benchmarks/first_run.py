"""What the first run of a command costs: kernels are compiled then, and taken from the cache afterwards.

    python benchmarks/first_run.py            # five rows, a small table of numbers, Otto (or counts like it), evaluation
    python benchmarks/first_run.py --quick    # without Otto

Every command runs twice in processes of its own, with a cache of compiled kernels that is empty the first time. Seconds are
wall time, and CPU seconds of all threads. Then come the kernels that the first run compiled, with the seconds that each took
without the kernels that it calls, longest first; "× 2" says that a kernel was compiled for two kinds of arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PATIENTS = """id,zip,age,gender,disease
t1,0123,22,F,Cancer
t2,0124,24,M,Flu
t3,0125,26,M,Aids
t4,1220,31,M,Cold
t5,1221,39,M,Flu
"""
RECORDED = "OMOKAGE_FIRST_RUN"  # where a run under measurement writes what it compiled


@dataclass(frozen=True)
class Cost:
    """One run: wall and CPU seconds, and each compiled kernel with its own seconds."""

    wall: float
    cpu: float
    compiled: list[tuple[str, float]]


def run(arguments: list[str], cache: Path) -> Cost:
    """The command in a process of its own."""
    cache.mkdir(exist_ok=True)
    record = cache / "compiled.json"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), RECORDED: str(record)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, __file__, *arguments], env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"omokage {' '.join(arguments)} failed:\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, json.loads(record.read_text()))


def recorded(arguments: list[str], record: Path) -> None:
    """Run the command line in this process and write down what numba compiles."""
    compiled: list[tuple[str, float]] = []
    inner: dict[int, list[float]] = {}  # by thread: seconds in kernels that the present one calls

    def listen() -> None:
        from numba.core import event as numba_event

        event: Any = numba_event

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                inner.setdefault(threading.get_ident(), []).extend([time.perf_counter(), 0.0])

            def on_end(self, event: Any) -> None:
                stack = inner[threading.get_ident()]
                within, begun = stack.pop(), stack.pop()
                whole = time.perf_counter() - begun
                if stack:
                    stack[-1] += whole
                function = event.data["dispatcher"].py_func
                compiled.append((f"{function.__module__.rpartition('.')[2]}.{function.__name__}", whole - within))

        event.register("numba:compile", Listener())

    from omokage.base import compiling
    from omokage.cli import main

    kernel = compiling.kernel
    listening: list[bool] = []

    def listened(**options: Any) -> Any:
        """Listen from the first kernel on: a run that needs none must not pay for importing numba."""
        if not listening:
            listening.append(True)
            listen()
        return kernel(**options)

    compiling.kernel = listened
    try:
        main(arguments)
    finally:
        record.write_text(json.dumps(compiled))


def commands(folder: Path, quick: bool) -> dict[str, list[str]]:
    """The commands to measure, by a name for the table; later ones may use what earlier ones wrote."""
    patients, numbers = folder / "patients.csv", folder / "numbers.csv"
    patients.write_text(PATIENTS)
    values = np.random.default_rng(0).normal(size=(2000, 6)).round(3)
    numbers.write_text("\n".join(["a,b,c,d,e,f", *(",".join(map(str, row)) for row in values.tolist())]) + "\n")
    key, other = folder / "key", folder / "key2"
    roles = ["--identifier", "id", "--quasi", "zip,age,gender", "--sensitive", "disease"]
    found = {
        "table, 5 rows": ["table", str(patients), *roles, "--k", "2", "-o", str(folder / "five"), "--key", str(key)],
        "evaluate, 5 rows": ["evaluate", str(patients), str(folder / "five"), "--key", str(key)],
        "table, 2,000 × 6": ["table", str(numbers), "--quasi", "*", "--k", "5", "-o", str(folder / "cells"), "--key", str(other)],
        "evaluate, 2,000 × 6": ["evaluate", str(numbers), str(folder / "cells"), "--key", str(other)],
    }
    if not quick:
        found["table, Otto"] = ["table", str(_otto(folder)), "--quasi", "x*", "--k", "10", "-o", str(folder / "otto")]
    return found


def _otto(folder: Path) -> Path:
    from omokage.errors import TableError
    from omokage.tables.datasets import otto

    try:
        values: Any = otto()[0]
    except TableError:
        values = np.random.default_rng(0).negative_binomial(0.1, 0.1, (61_878, 93)).astype(np.float32)
    names = ",".join(f"x{j}" for j in range(values.shape[1]))
    np.savetxt(folder / "otto.csv", values, fmt="%g", delimiter=",", header=names, comments="")
    return folder / "otto.csv"


def kernels(compiled: list[tuple[str, float]]) -> list[str]:
    """A line per kernel, longest first."""
    seconds: dict[str, float] = {}
    times = Counter(name for name, _ in compiled)
    for name, each in compiled:
        seconds[name] = seconds.get(name, 0.0) + each
    longest = sorted(seconds, key=lambda name: -seconds[name])
    return [f"    {seconds[name]:6.2f} s  {name}" + (f" × {times[name]}" if times[name] > 1 else "") for name in longest]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="measure only commands whose name holds this")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        costs = {}
        for number, (name, command) in enumerate(commands(folder, options.quick).items()):
            first = run(command, folder / f"cache{number}")
            if options.only is None or options.only in name:
                again = [
                    part + "-again" if "-o" in command and part == command[command.index("-o") + 1] else part for part in command
                ]
                if "--key" in again and "-o" in again:
                    again[again.index("--key") + 1] += "-again"
                costs[name] = first, run(again, folder / f"cache{number}")
    print(f"{'command':<22} {'first run':>22} {'second run':>22}  compiled")
    for name, (first, second) in costs.items():
        shown = [f"{cost.wall:6.1f} s, {cost.cpu:6.1f} CPU s" for cost in (first, second)]
        print(
            f"{name:<22} {shown[0]:>22} {shown[1]:>22}  {len(first.compiled)} kernels, {sum(s for _, s in first.compiled):.1f} s"
        )
    for name, (first, _) in costs.items():
        print(f"\n{name}")
        print("\n".join(kernels(first.compiled)))


if __name__ == "__main__":
    if RECORDED in os.environ:
        recorded(sys.argv[1:], Path(os.environ.pop(RECORDED)))
    else:
        main()
