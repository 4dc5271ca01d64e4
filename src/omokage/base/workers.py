"""Worker processes: tasks spread over the cores, a few waiting at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any

from ..errors import OmokageError

_FEW = 8  # tasks for each worker below which starting processes would take longer than doing the work here
_here: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []  # in a worker: what to do, and what all tasks share
_MOST_ON_WINDOWS = 61  # processes that it can wait for at once


def in_parallel(
    work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int, shared: tuple[Any, ...] = ()
) -> Iterator[Any]:
    """``work(*shared, *task)`` for every task, on several processes; results come as they are done.

    ``shared`` goes to each process once. Few tasks wait at a time, so memory is bounded. A handful of tasks is done here:
    starting processes and loading networks in each would take longer.
    """
    workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers
    queue: Iterator[tuple[Any, ...] | None] = iter(tasks)
    first = list(islice(queue, _FEW * workers))
    if workers <= 1 or len(first) < _FEW * workers:
        for task in chain(first, queue):
            yield work(*shared, *(task or ()))
        return
    queue = chain(first, queue)
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, (work, shared)) as pool:
        waiting: set[Future[Any]] = set()
        try:
            while True:
                while len(waiting) < 3 * workers and (task := next(queue, None)) is not None:
                    waiting.add(pool.submit(_do, task))
                if not waiting:
                    return
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for each in ready:
                    yield each.result()
        except BrokenProcessPool:
            raise OmokageError("a worker process was stopped, perhaps for want of memory: try --workers 1") from None
        finally:
            for each in waiting:
                each.cancel()


def _begin(work: Callable[..., Any], shared: tuple[Any, ...]) -> None:
    """In a new worker: one thread, as tasks are spread over the cores, not pixels and layers."""
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    _here[:] = [(work, shared)]


def _do(task: tuple[Any, ...]) -> Any:
    work, shared = _here[0]
    return work(*shared, *task)
