"""Data sets that are not part of the package: looked for in the folder that OMOKAGE_DATA names (see docs/data.md)."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import TableError


def otto() -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Otto Group products: 61,878 × 93 counts, and the class of each."""
    folder = os.environ.get("OMOKAGE_DATA")
    if not folder:
        raise TableError("set OMOKAGE_DATA to the folder that holds otto/train.csv.zip (see docs/data.md)")
    path = Path(folder) / "otto" / "train.csv.zip"
    try:
        with zipfile.ZipFile(path) as archive:
            frame = pl.read_csv(io.BytesIO(archive.read(archive.namelist()[0])))
    except (OSError, zipfile.BadZipFile, pl.exceptions.PolarsError):
        raise TableError("otto/train.csv.zip cannot be read in the folder that OMOKAGE_DATA names") from None
    features = frame.select(pl.selectors.starts_with("feat_")).to_numpy().astype(np.float32, order="C")
    return features, np.asarray(frame["target"].to_list(), dtype=str)
