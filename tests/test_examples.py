"""Examples and the quick forms of the benchmarks run, and say what they should."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from omokage import verify

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(path, capsys, zoo):
    runpy.run_path(str(path), run_name="__main__")
    assert "at least" in capsys.readouterr().out


@pytest.mark.slow
def test_grouping_benchmark_quick():
    command = [sys.executable, str(ROOT / "benchmarks" / "grouping.py"), "--quick"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    assert "NumPy Mondrian (yardstick)" in out
    assert "Cells" in out


def test_demo_ends_with_three_plain_lines(run, tmp_path, zoo, monkeypatch):
    monkeypatch.setattr("omokage.cli.demo.CROWD", 8)
    result = run("demo", "-o", tmp_path / "demo")
    assert result.code == 0, result.err
    lines = result.out.strip().splitlines()[-3:]
    assert [line.split()[0] for line in lines] == ["released", "found", "look"]
    assert "k = 5 on the written bytes" in lines[1]
    assert lines[2].endswith("report.html")
    assert (tmp_path / "demo" / "digits.png").stat().st_size > 10_000
    assert (tmp_path / "demo" / "faces.png").stat().st_size > 100_000
    assert verify(tmp_path / "demo" / "faces").passed
    assert "proved optimal" in (tmp_path / "demo" / "report.html").read_text()
    assert run("demo", "-o", tmp_path / "demo").code == 2
    assert run("demo", "-o", tmp_path / "demo", "--overwrite").code == 0
    assert run("verify", tmp_path / "demo" / "patients").code == 0


@pytest.mark.data
@pytest.mark.slow
def test_dr_tables_quick(data_folder):
    command = [sys.executable, str(ROOT / "experiments" / "dr_tables.py"), "--quick"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    assert "| pca:30 | (0.246) | 0." in out  # k = 3 left out, k = 10 attacked
    assert "Tables 11–13" in out


@pytest.mark.data
@pytest.mark.slow
def test_strongest_quick(data_folder):
    """The attacker who measures in the published map links more than raw units show, in groups and in noise."""
    command = [sys.executable, str(ROOT / "experiments" / "strongest.py"), "--quick"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    rows = [line.split(" | ") for line in out.splitlines() if line.startswith("| ") and "**" in line]
    assert [name.split()[1] for name, *_ in rows] == ["patients", "Otto", "Otto"]
    for _, _, raw, strongest, by, _ in rows:
        assert float(strongest.strip("*")) > float(raw) + 0.02, by
    assert "group space log+pca:50" in rows[1][4]
    assert "noise likelihood in lpp:30" in rows[2][4]
