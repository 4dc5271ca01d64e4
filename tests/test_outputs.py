"""Outputs of commands: one run at a time, never an input, never in place of what is not ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from crashing import Events
from test_files import names, our_folder, publish, toy

from omokage.base import claims
from omokage.base.files import claimed, publish_folder, write_whole
from omokage.base.scratch import scratch
from omokage.errors import OutputError

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

# ---------------------------------------------------------------------- two runs at once


def at_once(number: int, work) -> list[int]:
    """Exit codes of processes that start together: 0 done, 1 refused, 2 anything else."""
    ready, go = os.pipe()
    children = []
    for i in range(number):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)  # until the parent closes it
            code = 2
            try:
                work(i)
                code = 0
            except OutputError:
                code = 1
            finally:
                os._exit(code)
        children.append(child)
    os.close(ready)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


@pytest.mark.parametrize("slow", [0.0, 0.1])
def test_two_runs_to_one_output_release_once(tmp_path, slow):
    """Two runs of ``faces`` to one output both said "released"."""
    for turn in range(1 if slow else 12):
        out = tmp_path / f"out{turn}"

        def work(i: int, out: Path = out) -> None:
            def fill(stage: Path) -> None:
                time.sleep(slow)
                toy(f"run {i}")(stage)

            publish_folder(out, fill, overwrite=False, ours=our_folder)

        codes = at_once(2, work)
        assert sorted(codes) == [0, 1]
        assert (out / "data.csv").read_text() == f"run {codes.index(0)}"
    assert all(name.startswith("out") for name in names(tmp_path))


def test_two_runs_that_replace_one_output_take_turns(tmp_path):
    for turn in range(8):
        publish(tmp_path / "out", "old", overwrite=bool(turn))
        codes = at_once(3, lambda i: publish(tmp_path / "out", f"run {i}", overwrite=True))
        assert 0 in codes
        assert set(codes) <= {0, 1}
        our_folder(tmp_path / "out")
        assert codes[int((tmp_path / "out" / "data.csv").read_text()[-1])] == 0
        assert names(tmp_path) == ["out"]


def test_a_lock_that_is_removed_keeps_others_out(tmp_path, monkeypatch):
    """Each run removes the lock at its end; nobody may come in through one that is gone."""
    probe = tmp_path / "probe"

    def work(i: int) -> None:
        for _ in range(60):
            with claimed(tmp_path / "out", wait=True):
                os.close(os.open(probe, os.O_CREAT | os.O_EXCL))  # fails if another is here, too
                os.unlink(probe)

    monkeypatch.setattr(claims, "_PAUSE", 0.0)
    assert at_once(4, work) == [0] * 4
    assert names(tmp_path) == []


# ---------------------------------------------------------------------- on the disk before it is in its place


def events_of(work) -> list[tuple[str, str]]:
    """What the work does to the file system, in order; done in a process of its own, which is patched."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        events = Events()
        events.install()
        work()
        with os.fdopen(writing, "w") as file:
            file.write(json.dumps(events.log))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        log = json.load(file)
    os.waitpid(child, 0)
    return [tuple(each) for each in log]


def test_everything_is_on_the_disk_before_the_rename_and_the_rename_before_what_follows(tmp_path):
    out, key = publish(tmp_path / "out", "old"), tmp_path / "keys" / "key.json"

    def work() -> None:
        publish(
            out, "new", overwrite=True,
            before=lambda: write_whole(key, b"both", private=True), after=lambda: write_whole(key, b"new", private=True),
        )  # fmt: skip

    log = events_of(work)
    stage = tmp_path / ".out.omokage-stage" / "new"
    commit = next(i for i, (name, _) in enumerate(log) if name == "exchange")
    for path in (stage / "data.csv", stage / "list.json", stage):
        synced = [i for i, each in enumerate(log[:commit]) if each == ("fsync", str(path))]
        changed = [i for i, (name, what) in enumerate(log[:commit]) if what.startswith(str(path)) and name in ("write", "utime")]
        assert synced, path
        assert max(changed) < max(synced), path
    keys = [i for i, (name, what) in enumerate(log) if name == "replace" and str(key) in what]
    assert len(keys) == 2
    assert ("fsync", str(key.parent)) in log[keys[0] : commit]  # the key that opens both, before the folder
    assert ("fsync", str(tmp_path)) in log[commit : keys[1]]  # the folder, before the key that opens the new one alone
    assert ("fsync", str(key.parent)) in log[keys[1] :]


# ---------------------------------------------------------------------- scratch

LEFT = """
import tempfile, sys, time
from omokage.base.scratch import scratch
tempfile.tempdir = sys.argv[1]
with scratch() as folder:
    (folder / "crop.png").write_bytes(b"an original")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_originals_in_scratch_folders_of_killed_runs_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", LEFT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    place = Path(child.stdout.readline().strip())
    try:
        assert place.parent.stat().st_mode & 0o077 == 0
        with scratch() as mine:
            (mine / "x").touch()
            assert (place / "crop.png").exists()  # its run goes on
    finally:
        child.kill()
        child.wait(timeout=30)
        child.stdout.close()
    assert names(tmp_path) == [place.parent.name]
    with scratch():
        assert not place.exists()
    assert names(tmp_path) == []


# ---------------------------------------------------------------------- pictures


@pytest.fixture
def photos(tmp_path):
    from omokage.faces.group_photo import PhotoRelease
    from omokage.faces.group_photo_files import write_photo

    def write(grey: int, *, overwrite: bool = False) -> Path:
        release = PhotoRelease(np.full((4, 4, 3), grey, np.uint8), "nearest", grey, "", 9, True, ())
        return write_photo(release, tmp_path / "party.png", overwrite=overwrite)

    return write


def test_a_picture_is_replaced_only_if_its_report_names_it(tmp_path, photos):
    out = tmp_path / "party.png"
    report = photos(1)
    with pytest.raises(OutputError, match="exists"):
        photos(2)
    photos(2, overwrite=True)
    assert json.loads(report.read_text())["k"] == 2
    out.write_bytes(b"the only photo of my grandmother")
    with pytest.raises(OutputError, match="not replaced"):
        photos(3, overwrite=True)
    assert out.read_bytes() == b"the only photo of my grandmother"
    assert json.loads(report.read_text())["k"] == 2
    out.unlink()
    photos(4)  # a report without a picture does not stand in the way
    out.unlink()
    report.write_text("my own notes")
    with pytest.raises(OutputError, match="not replaced"):
        photos(5, overwrite=True)
    assert names(tmp_path) == ["party.png.json"]


def test_a_report_does_not_stay_without_its_picture(tmp_path, photos, monkeypatch):
    from omokage.faces import group_photo_files as photo_files

    real = photo_files.write_new

    def foreign(path: Path, *given, **options) -> None:
        if path.suffix == ".png":
            path.write_bytes(b"foreign")
        real(path, *given, **options)

    for before in (None, 1):
        if before:
            (tmp_path / "party.png").unlink()
            photos(before)
        monkeypatch.setattr(photo_files, "write_new", foreign)
        with pytest.raises(OutputError):
            photos(2, overwrite=True)
        monkeypatch.setattr(photo_files, "write_new", real)
        assert (tmp_path / "party.png").read_bytes() == b"foreign"
        told = tmp_path / "party.png.json"
        assert (json.loads(told.read_text())["k"] == before) if before else not told.exists()


def test_previews_are_known_by_their_report(tmp_path):
    from omokage.faces.group_photo_files import write_preview

    for grey in (1, 2):
        write_preview(np.full((4, 4, 3), grey, np.uint8), [], tmp_path / "numbers.png", overwrite=grey == 2)
    (tmp_path / "numbers.png").write_bytes(b"foreign")
    with pytest.raises(OutputError, match="not replaced"):
        write_preview(np.zeros((4, 4, 3), np.uint8), [], tmp_path / "numbers.png", overwrite=True)


# ---------------------------------------------------------------------- commands


def test_the_key_never_replaces_the_input(patients, tmp_path, run):
    """``--key in.csv --overwrite`` replaced the input."""
    before = patients.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(patients)
    hard = tmp_path / "hard.csv"
    os.link(patients, hard)
    for key in (patients, link, hard):
        result = run("table", patients, "-o", tmp_path / "out", "--k", 2, "--quasi", "age", "--rest", "drop", "--key", key,
                     "--overwrite")  # fmt: skip
        assert result.code == 2
        assert "is an input of this command" in result.err
    assert patients.read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_release_never_replaces_a_folder_with_the_input(tmp_path, patients, run):
    """The input lay in the folder that ``--overwrite`` deleted."""
    out = tmp_path / "out"
    assert run("table", patients, "-o", out, "--k", 2, "--quasi", "age", "--rest", "drop").code == 0
    before = (out / "data.csv").read_bytes()
    result = run("table", out / "data.csv", "-o", out, "--k", 2, "--quasi", "age", "--overwrite")
    assert result.code == 2
    assert "an input of this command" in result.err
    assert (out / "data.csv").read_bytes() == before


def test_a_command_is_refused_at_once_while_another_writes_there(tmp_path, patients, run):
    command = ("table", patients, "-o", tmp_path / "out", "--k", 2, "--quasi", "age", "--rest", "drop")
    held = "from omokage.base.files import claimed; import sys\nwith claimed(sys.argv[1]): print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", held, tmp_path / "out"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        result = run(*command)
        assert result.code == 2
        assert "another run is writing" in result.err
        other.stdin.close()
    assert run(*command).code == 0
    assert names(tmp_path) == ["out", "patients.csv"]


def test_reports_replace_no_foreign_file_and_stay_out_of_releases(tmp_path, patients, patients_release, run):
    written = patients_release.copy(tmp_path)
    out, key = written.release, written.key
    thesis = tmp_path / "thesis.html"
    thesis.write_text("<p>ten years of work")
    judge = ("evaluate", patients, out, "--key", key)
    for options, why in (
        (("--html", thesis), "not written by this command"),
        (("--json", thesis), "not written by this command"),
        (("--html", out / "report.html"), "lies in the release"),
        (("--html", patients), "is an input"),
        (("--json", key), "is an input"),
        (("--html", tmp_path / "a", "--json", tmp_path / "a"), "the same place"),
    ):
        result = run(*judge, *options)
        assert result.code == 2, options
        assert why in result.err
    assert thesis.read_text() == "<p>ten years of work"
    assert names(tmp_path) == ["key.json", "out", "patients.csv", "thesis.html"]


def test_predictions_replace_only_predictions(tmp_path, run):
    from test_learn_saving import SCHEMA

    from omokage.learn import DPSGD, save_model

    table = tmp_path / "table.csv"
    rows = [{"x": i / 40, "c": "ab"[i % 2], "t": ["no", "yes"][i > 20]} for i in range(40)]
    table.write_text("x,c,t\n" + "".join(f"{r['x']},{r['c']},{r['t']}\n" for r in rows))
    import polars as pl

    frame = pl.read_csv(table)
    save_model(DPSGD(schema=SCHEMA, epochs=1, hidden=()).fit(frame.drop("t"), frame["t"].to_numpy()), tmp_path / "model")
    before = table.read_bytes()
    predict = ("predict", tmp_path / "model", table, "-o")
    assert "is an input" in run(*predict, table, "--overwrite").err
    assert "is an input" in run(*predict, tmp_path / "model", "--overwrite").err
    assert run(*predict, tmp_path / "answers.csv").code == 0
    assert "exists" in run(*predict, tmp_path / "answers.csv").err
    assert run(*predict, tmp_path / "answers.csv", "--overwrite").code == 0
    (tmp_path / "notes.csv").write_text("prediction\nrain\n")
    result = run(*predict, tmp_path / "notes.csv", "--overwrite")
    assert result.code == 2
    assert "not written by this command" in result.err
    assert table.read_bytes() == before
    assert names(tmp_path) == ["answers.csv", "model", "notes.csv", "table.csv"]
