"""Quick forms of the experiments with faces and of benchmarks/photos.py: they end, and what they say holds together.

They are run on people who do not exist, in the form of the data set that they expect, and share what they have looked at.
"""

from __future__ import annotations

import csv
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

from omokage.evaluate.faces import evaluation
from omokage.faces.image import encode_picture, read_photo

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(people, tmp_path_factory) -> Path:
    """A folder for OMOKAGE_DATA: eight people, two of them in a second photo, with labels."""
    place = tmp_path_factory.mktemp("data")
    folder = place / "celeba_test200"
    (folder / "images").mkdir(parents=True)
    rows = []
    for number in range(10):
        person = number % 8
        photo = cv2.resize(read_photo(people[person]), (256, 256), interpolation=cv2.INTER_AREA)
        if number >= 8:  # another photo: mirrored, and brighter
            photo = np.clip(photo[:, ::-1].astype(int) + 12, 0, 255).astype(np.uint8)
        (folder / "images" / f"{number:06d}.jpg").write_bytes(encode_picture(photo, ".jpg"))
        rows.append(
            {"image": f"{number:06d}.jpg", "identity": person, "Male": (-1, 1)[person % 2], "Smiling": (-1, 1)[person // 4]}
        )
    with (folder / "labels_derived.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return place


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """What one experiment has looked at, the next one finds."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def script(data, work, tmp_path, monkeypatch, capsys) -> Callable[..., str]:
    """Runs a script of a folder with ``--quick``, in this process, so that networks are loaded once; gives what it printed."""
    monkeypatch.setenv("OMOKAGE_DATA", str(data))
    monkeypatch.setattr(evaluation, "SAMPLE", evaluation.SAMPLE)  # face_attacks sets it; it is put back

    def run(folder: str, name: str, *arguments: object, **sizes: object) -> str:
        monkeypatch.syspath_prepend(str(ROOT / folder))
        module: ModuleType = importlib.import_module(name)
        for setting, value in sizes.items():
            monkeypatch.setattr(module, setting, value)
        monkeypatch.setattr(sys, "argv", [name, "--quick", *map(str, arguments)])
        capsys.readouterr()
        module.main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def experiment(script, work, tmp_path):
    places = ("--results", tmp_path / "r", "--work", work, "--workers", 1)
    return lambda name, **sizes: script("experiments", name, *places, **sizes)


def test_experiment(experiment, judges, tmp_path):
    experiment("faces")
    result = json.loads((tmp_path / "r" / "faces.json").read_text())
    assert result["photos"] == 10
    assert result["taken"] >= 0.9 * result["photos"]
    for table in result["settings"].values():
        for cell in table["cells"].values():
            assert cell["fid"] > cell["fid_mean_part"] > 0
            assert cell["arcface"]["rank1"] <= cell["arcface"]["bound"] + 1e-9
    for cell in result["settings"]["one"]["cells"].values():
        assert cell["dlib"]["within"] >= cell["dlib"]["others"] - 0.2
    assert {p.name for p in (tmp_path / "r").iterdir()} == {"faces.json", "faces.md", "faces.png", "faces_grid.jpg"}
    assert "| 4 |" in (tmp_path / "r" / "faces.md").read_text()


def test_every_pair_of_maps(experiment, judges, tmp_path):
    experiment("miku", ALONE=4)
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


def test_spread(experiment, judges, tmp_path):
    done = experiment("latent_spread", K=4)
    assert "spread 0.85" in done
    assert "128 pixels" in done
    assert not list((tmp_path / "r").iterdir())


def test_marks(experiment, tmp_path):
    lines = experiment("marks").strip().splitlines()
    assert [line.split(":")[0] for line in lines] == ["k =  4 face", "k =  4 skin"]
    assert all(" 0.0% keep more than 2/k" in line for line in lines)


def test_attackers(experiment, judges, tmp_path):
    done = experiment("face_attacks")
    assert "recognition-morph-4: strongest " in done
    assert done.count("| RECOGNITION, MORPH | 4 | 25.0% |") == 7


def test_benchmark(script):
    done = script("benchmarks", "photos", K=4)
    assert "MORPH there" in done
    assert "faces a second" in done
