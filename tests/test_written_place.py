"""The place a release is written to: whole or not at all, an earlier release kept, the key apart."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from test_release import ROLES, frame_of, sample

from omokage import Anonymizer, Cells, Mondrian, Roles, verify
from omokage.errors import InputError, OutputError
from omokage.method.maps import PCA


def released():
    return Anonymizer(Mondrian(3), random_state=0).release(frame_of(), roles=ROLES)


def test_an_earlier_release_is_kept_unless_asked(tmp_path):
    out = released().write(tmp_path / "out")
    before = (out / "data.csv").read_bytes()
    with pytest.raises(OutputError, match="holds an earlier release"):
        Anonymizer(Mondrian(9)).release(frame_of(), roles=ROLES).write(out)
    assert (out / "data.csv").read_bytes() == before
    Anonymizer(Mondrian(9)).release(frame_of(), roles=ROLES).write(out, overwrite=True)
    assert (out / "data.csv").read_bytes() != before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert verify(out).passed


def test_what_is_not_a_release_is_never_replaced(tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("ten years of work")
    (tmp_path / "file").write_text("x")
    for place in (folder, tmp_path / "file"):
        with pytest.raises(OutputError, match="is not a release"):
            released().write(place, overwrite=True)
    assert (folder / "chapter1.txt").read_text() == "ten years of work"
    (tmp_path / "empty").mkdir()
    assert verify(released().write(tmp_path / "empty")).passed


def test_the_key_is_written_only_on_request_and_elsewhere(tmp_path):
    release = released()
    with pytest.raises(OutputError, match="must not lie in its folder"):
        release.write(tmp_path / "out", key=tmp_path / "out" / "key.json")
    out = release.write(tmp_path / "out", key=tmp_path / "key.json")
    key = json.loads((tmp_path / "key.json").read_text())
    assert key["key"]["groups"] == release.key.groups.tolist()
    assert (tmp_path / "key.json").stat().st_mode & 0o077 == 0
    assert verify(out, key=tmp_path / "key.json").passed
    with pytest.raises(OutputError, match="give the key another place"):
        release.write(tmp_path / "other", key=tmp_path / "key.json")


def test_verify_counts_persons_with_the_key(tmp_path):
    frame = pl.DataFrame({"who": [f"p{i // 3}" for i in range(30)], "v": np.arange(30) // 3})
    release = Anonymizer(Mondrian(2), random_state=0).release(frame, roles=Roles(quasi=["v"], person="who"))
    out = release.write(tmp_path / "out", key=tmp_path / "key.json")
    assert verify(out, key=tmp_path / "key.json").found.k == 2
    assert verify(out).exit_code == 2
    assert any("not counted" in check.detail for check in verify(out).checks)
    key = json.loads((tmp_path / "key.json").read_text())
    key["key"]["persons"] = [0] * 30
    (tmp_path / "key.json").write_text(json.dumps(key))
    assert not verify(out, key=tmp_path / "key.json").passed
    (tmp_path / "key.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be read as a key"):
        verify(out, key=tmp_path / "key.json")


def test_a_full_disk_leaves_nothing_and_the_earlier_release(tmp_path):
    out = released().write(tmp_path / "out")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    big = Anonymizer(Mondrian(3)).release(frame_of(20_000), roles=ROLES)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # the system refuses to write on, as a full disk does
    try:
        with pytest.raises(OutputError, match="File too large"):
            big.write(out, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


KILLED = """
import sys, time
import omokage.base.files as files
from omokage import Anonymizer, Mondrian, Roles
import polars as pl
frame = pl.DataFrame({"v": list(range(50))})
release = Anonymizer(Mondrian(5)).release(frame, roles=Roles(quasi=["v"]))
def slow(claim, check):
    print("staged", flush=True)
    time.sleep(60)
files._exchange = slow
release.write(sys.argv[1], overwrite=True)
"""


def test_a_killed_process_leaves_the_earlier_release_and_its_rubbish_is_cleared(tmp_path):
    out = released().write(tmp_path / "out")
    before = (out / "data.csv").read_bytes()
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(out)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "staged\n"
    finally:
        child.kill()
        child.wait(timeout=30)
        child.stdout.close()
    assert (out / "data.csv").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2
    time.sleep(0.05)
    released().write(out, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_no_permission(tmp_path):
    if os.geteuid() == 0:
        place = Path("/proc/omokage-release")  # even root cannot write here
    else:
        (tmp_path / "locked").mkdir(mode=0o500)
        place = tmp_path / "locked" / "out"
    with pytest.raises(OutputError, match="cannot be written"):
        released().write(place)


def test_arrays_are_written_as_npy(tmp_path):
    x = sample()
    release = Anonymizer(Cells(4), synthesis_map=PCA(3), random_state=0).release(x)
    out = release.write(tmp_path / "out")
    assert (np.load(out / "data.npy", allow_pickle=False) == release.data).all()
    assert verify(out).passed
