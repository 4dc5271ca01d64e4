"""Quick forms of the experiments with faces and of benchmarks/photos.py: they end, and what they say holds together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_experiment(celeba, judges, tmp_path):
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


def test_every_pair_of_maps(celeba, judges, tmp_path):
    command = [sys.executable, "experiments/miku.py", "--quick", "--results", tmp_path / "r", "--work", tmp_path / "w"]
    subprocess.run([*map(str, command), "--workers", "1"], check=True, cwd=ROOT, capture_output=True)
    result = json.loads((tmp_path / "r" / "miku.json").read_text())
    assert set(result["pairs"]) == {
        f"{pair}-{k}" for pair in ("direct-direct", "attribute-latent", "recognition-morph") for k in (2, 4)
    }
    for name, cell in result["pairs"].items():
        assert 1 < cell["pictures"] <= result["faces"] / int(name.rsplit("-", 1)[1])
        assert cell["arcface"]["rank1"] <= cell["arcface"]["bound"] + 1e-9
    for k in (2, 4):
        here = result["labels"][f"attribute-{k}"]["All"]
        assert 0 < here["distance"] < here["one_group"]
    assert result["unaveraged"]["direct"]["arcface"] > 0.9  # a face that was only cut out is itself
    files = {"miku.json", "miku.md", "miku_fid.png", "miku_parts.png", "miku_labels.png", "miku_ks.jpg", "miku_pairs.jpg"}
    assert {p.name for p in (tmp_path / "r").iterdir()} == files | {"miku_swiss_roll.png"}


def test_spread(celeba, judges, tmp_path):
    command = [sys.executable, "experiments/latent_spread.py", "--quick", "--results", tmp_path / "r", "--work", tmp_path / "w"]
    done = subprocess.run([*map(str, command), "--workers", "1"], check=True, cwd=ROOT, capture_output=True, text=True).stdout
    assert "spread 0.85" in done
    assert "128 pixels" in done
    assert not list((tmp_path / "r").iterdir())


def test_marks(celeba, tmp_path):
    command = [sys.executable, "experiments/marks.py", "--quick", "--results", tmp_path / "r", "--work", tmp_path / "w"]
    done = subprocess.run([*map(str, command), "--workers", "1"], check=True, cwd=ROOT, capture_output=True, text=True).stdout
    lines = done.strip().splitlines()
    assert [line.split(":")[0] for line in lines] == ["k =  4 face", "k =  4 skin"]
    assert all(" 0.0% keep more than 2/k" in line for line in lines)


def test_attackers(celeba, judges, tmp_path):
    command = [sys.executable, "experiments/face_attacks.py", "--quick", "--results", tmp_path / "r", "--work", tmp_path / "w"]
    done = subprocess.run([*map(str, command), "--workers", "1"], check=True, cwd=ROOT, capture_output=True, text=True).stdout
    assert "recognition-morph-4: strongest " in done
    assert done.count("| RECOGNITION, MORPH | 4 | 25.0% |") == 7


def test_benchmark(celeba):
    done = subprocess.run(
        [sys.executable, "benchmarks/photos.py", "--quick"], check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert "MORPH there" in done
    assert "faces a second" in done
