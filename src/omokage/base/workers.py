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

_MOST_ON_WINDOWS = 61  # processes that it can wait for at once


def _one_thread() -> None:
    """Photos are spread over the cores, not pixels and layers."""
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)


def spread(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Results of the tasks as they are done, on several processes; few tasks wait at a time, so memory is bounded.

    A handful of tasks is done here: starting processes and loading networks in each would take longer.
    """
    workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers
    queue: Iterator[tuple[Any, ...] | None] = iter(tasks)
    first = list(islice(queue, 8 * workers))
    if workers <= 1 or len(first) < 8 * workers:
        for task in chain(first, queue):
            yield work(*(task or ()))
        return
    queue = chain(first, queue)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        waiting: set[Future[Any]] = set()
        try:
            while True:
                while len(waiting) < 3 * workers and (task := next(queue, None)) is not None:
                    waiting.add(pool.submit(work, *task))
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
