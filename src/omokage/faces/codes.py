"""Faces as numbers of a map, made once and kept beside their records: what is dear to make serves grouping and averaging."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.files import write_whole
from ..base.workers import spread
from .maps import CODED, OURS, Networks, face_map, group_map
from .survey import Found
from .work_folder import inner

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Code:
    """A map whose numbers are kept: its name, and what they depend on."""

    name: str
    size: int
    steps: int = 0
    networks: Networks = OURS

    @property
    def folder(self) -> str:
        own = "".join(f"-{digest[:12]}" for digest in self.networks.digests.values())
        return f"{self.name}-{self.size}-{self.steps}{own}"


def kept_codes(found: list[Found], code: Code, work: Path, workers: int, progress: Progress) -> list[Path]:
    """A file of numbers for every face; those that are there are not made again."""
    place = inner(work, "codes", code.folder)
    targets = [place / f"{face.record.stem}-{face.number}.npy" for face in found]
    tasks = [(f.record, f.number, code, t) for f, t in zip(found, targets, strict=True) if not t.exists()]
    done = len(found) - len(tasks)
    stage = f"mapping faces ({code.name})"
    progress(stage, done, len(found))
    for _ in spread(_code_one, tasks, workers):
        done += 1
        progress(stage, done, len(found))
    return targets


@lru_cache(maxsize=2)
def _map(code: Code) -> Any:
    if code.name in CODED:
        return face_map(code.name, code.size, steps=code.steps, networks=code.networks).fit([])
    return group_map(code.name, code.networks)


def _code_one(record: Path, number: int, code: Code, target: Path) -> None:
    vector = _map(code).encode(Found(0, record, number, np.zeros(0, np.float32)).portrait())
    sink = io.BytesIO()
    np.save(sink, np.asarray(vector, np.float32))
    write_whole(target, sink.getvalue(), private=True)


def load_codes(paths: list[Path]) -> NDArray[np.float32]:
    """All numbers as a matrix, a face in each row."""
    return np.stack([np.load(path, allow_pickle=False) for path in paths])
