"""How far a long run is: one signature for everything that takes time."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with what is being done, and where it can be counted, how much of it is done."""

    def __call__(self, stage: str, done: int = 0, total: int = 0, /) -> None: ...


def silent(stage: str, done: int = 0, total: int = 0, /) -> None:
    """Say nothing."""
