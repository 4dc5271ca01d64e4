"""Threads for kernels that release the GIL, and how much work one of them gets at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .parameters import THREADS

T = TypeVar("T")

ELEMENTS = 1 << 20  # numbers in one piece of work; fixed, so that sums do not depend on the number of threads


def pieces(n: int, width: int) -> list[tuple[int, int]]:
    """Stretches of rows that each hold about ``ELEMENTS`` numbers."""
    step = max(64, ELEMENTS // max(width, 1))
    return [(a, min(a + step, n)) for a in range(0, n, step)]


def all_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Threads for kernels that release the GIL; with one thread, no pool at all."""

    def __init__(self, n_jobs: int | None) -> None:
        THREADS.check("n_jobs", n_jobs)
        self.threads = n_jobs or all_cores()
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
