"""Groups and pictures of faces, as the product makes them: what the experiments on faces share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from omokage.base.matrix import Labels
from omokage.faces.maps import make_face_map
from omokage.faces.store import FaceStore
from omokage.method.anonymizer import group_people
from omokage.method.fitting import seeded
from omokage.method.grouping import parse_grouper
from omokage.method.unify import Mean


def grouped(
    store: FaceStore, people: Labels, k: int, group: str = "recognition", grouping: str = "cells", steps: int = 0, size: int = 256
) -> Labels:
    """A group of at least k people for every face."""
    codes = store.codes(store.fitted(make_face_map(group, group=True, size=size, steps=steps)))
    return group_people(codes.astype(np.float64), people, seeded(parse_grouper(grouping, k), 0))


def drawn(store: FaceStore, people: Labels, labels: NDArray[np.int64], synthesis: str, steps: int = 0) -> list[Path]:
    """The picture of every group."""
    fitted = store.fitted(make_face_map(synthesis, size=256, texture=1.0, steps=steps))
    return store.pictures(fitted, labels, people, Mean())
