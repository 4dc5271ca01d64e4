"""What a grouper takes: a finite matrix of floats, used where it lies, and enough rows for k."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, NotEnoughPeople
from .mondrian_kernels import all_finite

Matrix = NDArray[np.float32] | NDArray[np.float64]
Labels = NDArray[np.int64]
T = TypeVar("T")

ELEMENTS = 1 << 20  # numbers in one piece of work; fixed, so that sums do not depend on the number of threads


def as_matrix(data: Any, k: int) -> Matrix:
    """A read-only view of ``data`` as an (n, d) matrix of float32 or float64; copied only if it is something else."""
    k = check_k(k)
    x = np.asarray(data)
    if x.ndim != 2 or x.shape[1] == 0:
        raise InputError(f"a matrix of rows × columns is needed, but the data have shape {x.shape}")
    if x.dtype.kind in "iub":
        small = x.dtype.itemsize <= 2 or (x.size > 0 and x.min() >= -(2**24) and x.max() <= 2**24)
        x = x.astype(np.float32 if small else np.float64)
    if x.dtype not in (np.float32, np.float64):
        if x.dtype.kind != "f":
            raise InputError(f"numbers are needed, but the data are of type {x.dtype}: encode them first")
        x = x.astype(np.float64)
    if not (x.flags.c_contiguous or x.flags.f_contiguous):
        x = np.ascontiguousarray(x)
    if len(x) < k:
        raise NotEnoughPeople(f"k = {k} needs at least {k} rows, but there are {len(x)}: lower k or add rows")
    x = x.view()
    x.flags.writeable = False  # one compiled kernel serves arrays and memory-mapped files
    return x


def check_k(k: Any) -> int:
    """k as an int of at least 2."""
    if not isinstance(k, Integral) or isinstance(k, bool):
        raise InputError(f"k must be a whole number, but it is of type {type(k).__name__}")
    if k < 2:
        raise InputError(f"k must be at least 2, but it is {k}: a group of one person hides nobody")
    return int(k)


def pieces(n: int, width: int) -> list[tuple[int, int]]:
    """Stretches of rows that each hold about ``ELEMENTS`` numbers."""
    step = max(64, ELEMENTS // max(width, 1))
    return [(a, min(a + step, n)) for a in range(0, n, step)]


def require_finite(x: Matrix, pool: Pool) -> None:
    """Refuse NaN and infinity."""
    if not all(pool.map(lambda part: all_finite(x, *part), pieces(*x.shape))):
        refuse_not_finite(x)


def refuse_not_finite(x: Matrix) -> None:
    """Say how many rows and which columns hold NaN or infinity."""
    bad = np.zeros(x.shape[1], dtype=bool)
    rows = 0
    for a, b in pieces(*x.shape):
        wrong = ~np.isfinite(x[a:b])
        bad |= wrong.any(axis=0)
        rows += int(wrong.any(axis=1).sum())
    columns = np.flatnonzero(bad)
    raise InputError(
        f"{rows} of {len(x)} rows hold NaN or infinity (first in column {columns[0]}, {len(columns)} columns in all): "
        "fill them in or leave those rows out"
    )


def seed_from(random_state: int | None) -> int:
    """A 64-bit seed; ``None`` draws one from the operating system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InputError(f"random_state must be None or a whole number from 0, but it is {random_state!r}")
    return int(random_state) & 0xFFFFFFFFFFFFFFFF


class Pool:
    """Threads for kernels that release the GIL; with one thread, no pool at all."""

    def __init__(self, n_jobs: int | None) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if n_jobs is not None and n_jobs < 1:
            raise InputError(f"n_jobs must be None (all cores) or at least 1, but it is {n_jobs}")
        self.threads = n_jobs or available
        self._executor = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor:
            self._executor.shutdown()

    def map(self, work: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """``work`` on every item; results in the items' order."""
        items = list(items)
        if self._executor is None or len(items) < 2:
            return [work(item) for item in items]
        return list(self._executor.map(work, items))
