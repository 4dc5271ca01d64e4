"""What leaves the checkout: the two wheels, the lock, the versions, the workflows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import omokage

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
OLDEST = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")


def name_of(requirement):
    """The name of a requirement as indexes compare it."""
    return re.sub("[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def pinned(lines):
    return {name_of(line): line.partition("==")[2].split(";")[0].strip(" \\") for line in lines if re.match(r"[\w.-]+==", line)}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both wheels, built as pip builds them."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    for place in (ROOT, ROOT / "packages" / "omokage-weights"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        made = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
    return {path.name.partition("-")[0]: path for path in out.glob("*.whl")}


def inside(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_is_small_and_holds_code_alone(wheels):
    assert wheels["omokage"].stat().st_size < 1_000_000
    content = inside(wheels["omokage"])
    info = f"omokage-{omokage.__version__}.dist-info/"
    assert {name for name in content if name.startswith(f"{info}licenses")} == {
        f"{info}licenses/LICENSE",
        f"{info}licenses/NOTICE",
    }
    rest = {name for name in content if not name.startswith(info)}
    assert {Path(name).suffix for name in rest} <= {".py", ".typed", ".html", ".css", ".js"}
    assert "omokage/py.typed" in rest
    listed = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert {name for name in rest if name.endswith(".py")} == listed


def test_the_wheel_says_what_it_is(wheels):
    content = inside(wheels["omokage"])
    metadata = next(text.decode() for name, text in content.items() if name.endswith("METADATA"))
    assert f"\nVersion: {omokage.__version__}\n" in metadata
    pythons = [f"Classifier: Programming Language :: Python :: 3.{n}" for n in (11, 12, 13)]
    for line in ("Requires-Python: >=3.11", "License-Expression: Apache-2.0", *pythons, "Provides-Extra: faces"):
        assert f"\n{line}\n" in metadata
    entry = next(text.decode() for name, text in content.items() if name.endswith("entry_points.txt"))
    assert "omokage = omokage.cli:main" in entry


def test_the_weights_travel_with_their_cards_and_terms(wheels):
    content = inside(wheels["omokage_weights"])
    for name in ("attributes", "encoder"):
        for suffix in ("safetensors", "md"):
            assert content[f"omokage_weights/{name}.{suffix}"]
    assert "omokage_weights/py.typed" in content
    terms = next(text.decode() for name, text in content.items() if name.endswith("LICENSE.md"))
    assert "CelebA" in terms
    assert "FFHQ" in terms


def test_versions_agree():
    assert PROJECT["version"] == omokage.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {omokage.__version__}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {omokage.__version__} " in changes
    assert changes.index("## Unreleased") < changes.index(f"## {omokage.__version__} ")
    assert all(len(line) < 120 for line in changes.splitlines())


def test_the_lock_holds_every_pin_with_hashes():
    entries = re.split(r"\n(?=[A-Za-z0-9])", LOCK.strip())
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    locked, pins = pinned(LOCK.splitlines()), pinned(PINS)
    assert locked.items() - pins.items() == {(name, locked[name]) for name in locked if name not in pins}
    build = {"hatchling", "editables", "trove-classifiers", "tomlkit"}
    systems = {name_of(entry) for entry in entries if ";" in entry.splitlines()[0]}
    assert set(locked) - set(pins) <= build | systems
    assert "torch" not in locked
    assert "torch" in pins
    for file in (LOCK, *PINS, OLDEST):
        assert "://" not in file


def requirements(*extras):
    asked = [*PROJECT["dependencies"], *(each for extra in extras for each in PROJECT["optional-dependencies"][extra])]
    return [each for each in asked if not each.startswith("omokage[")]


def test_every_direct_dependency_is_locked():
    locked = pinned(LOCK.splitlines())
    extras = ("neural", "pandas", "report", "dp", "faces", "docs", "dev")
    missing = {name_of(each) for each in requirements(*extras)} - set(locked)
    assert missing == {"torch"}


def test_the_oldest_versions_are_the_lower_bounds():
    """constraints-oldest.txt is what was tested; a bound that is lowered without a test is noticed here."""
    oldest = pinned(OLDEST.splitlines())
    for each in requirements("pandas", "report", "dp"):
        bound = re.search(r">=([\d.]+)", each)[1].split(".")
        tested = oldest[name_of(each)].split(".")
        assert tested[: len(bound)] == bound, each


def test_workflows_are_valid_and_name_files_that_exist():
    yaml = pytest.importorskip("yaml")
    (path,) = (ROOT / ".github" / "workflows").glob("*.yml")
    text = path.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert set(jobs) == {"matrix", "base", "wheel", "oldest"}
    matrix = jobs["matrix"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == supported
    for job in jobs.values():
        assert job["timeout-minutes"] <= 60
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    for name in re.findall(r"(?:tests/\w+\.py|[\w-]+\.(?:txt|lock)|\.ci/\w+|packages/[\w-]+)", text):
        assert (ROOT / name).exists(), name
