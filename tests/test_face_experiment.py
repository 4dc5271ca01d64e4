"""The quick form of experiments/faces.py and benchmarks/photos.py: they run to the end, and what they say holds together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def judges(celeba) -> None:
    from omokage import models

    for name in ("facenet", "inception"):
        models.get(name)


def test_experiment(judges, tmp_path):
    command = [sys.executable, "experiments/faces.py", "--quick", "--results", tmp_path / "r", "--work", tmp_path / "w"]
    subprocess.run([*map(str, command), "--workers", "1"], check=True, cwd=ROOT, capture_output=True)
    result = json.loads((tmp_path / "r" / "faces.json").read_text())
    assert result["taken"] >= 0.9 * result["photos"]
    for table in result["settings"].values():
        for cell in table["cells"].values():
            assert cell["fid"] > cell["fid_mean_part"] > 0
            assert cell["arcface"]["rank1"] <= cell["arcface"]["bound"] + 1e-9
    for cell in result["settings"]["one"]["cells"].values():
        assert cell["dlib"]["within"] >= cell["dlib"]["others"] - 0.2
    assert {p.name for p in (tmp_path / "r").iterdir()} == {"faces.json", "faces.md", "faces.png", "faces_grid.jpg"}
    assert "| 4 |" in (tmp_path / "r" / "faces.md").read_text()


def test_benchmark(celeba):
    done = subprocess.run(
        [sys.executable, "benchmarks/photos.py", "--quick"], check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert "MORPH there" in done
    assert "faces a second" in done
