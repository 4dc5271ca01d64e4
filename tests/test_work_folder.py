"""The faces' work folder: nobody else's, nobody else can read it, and it does not stay unnoticed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from drawn import DrawnEyes, at, draw_photos, interrupt, release_faces

from omokage import verify
from omokage.errors import OutputError
from omokage.faces import crowd as crowd_module
from omokage.faces import work_folder as module
from omokage.faces.work_folder import forget, inner, is_kept, opened, work_of

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes"),
    pytest.mark.usefixtures("drawn_eyes"),
]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    draw_photos(tmp_path / "photos", 6)
    return tmp_path / "photos"


def run_to(output: Path, photos: Path, **options: Any) -> None:
    release_faces(photos, output, k=2, seed=1, **options)


@pytest.fixture
def stopped(photos: Path, tmp_path: Path) -> Path:
    """The output of a run that was interrupted while it made faces; its work is kept."""
    with pytest.raises(KeyboardInterrupt):
        run_to(tmp_path / "out", photos, progress=at("making faces", 1, interrupt))
    return tmp_path / "out"


def everything(folder: Path) -> list[Path]:
    return [folder, *folder.rglob("*")]


# ---------------------------------------------------------------------- whose it is


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o750, 0o710])
def test_a_folder_made_beforehand_for_others_to_read_is_refused(photos, tmp_path, mode):
    """The attack: another user makes the work folder 0777 and waits for crops of faces."""
    work = tmp_path / ".out.omokage-faces"
    work.mkdir()
    work.chmod(mode)
    with pytest.raises(OutputError, match="is not a private folder of yours: remove it"):
        run_to(tmp_path / "out", photos)
    assert not list(work.iterdir())
    assert not (tmp_path / "out").exists()


def test_a_link_is_not_followed(photos, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / ".out.omokage-faces").symlink_to(elsewhere)
    with pytest.raises(OutputError, match="is not a private folder of yours"):
        run_to(tmp_path / "out", photos)
    assert not list(elsewhere.iterdir())
    with pytest.raises(OutputError, match="is not a private folder of yours"):
        forget(tmp_path / "out")
    assert elsewhere.exists()


def test_another_users_folder_is_refused(photos, tmp_path, monkeypatch):
    (tmp_path / ".out.omokage-faces").mkdir(mode=0o700)
    mine = os.geteuid()
    monkeypatch.setattr(module.os, "geteuid", lambda: mine + 1)
    with pytest.raises(OutputError, match="is not a private folder of yours"), opened(tmp_path / ".out.omokage-faces"):
        pass


@pytest.mark.parametrize("where", ["records", "codes", "pictures", "codes/latent-0123456789abcdef"])
def test_inner_folders_are_looked_at_too(stopped, photos, where):
    """A link, or a folder that others can read, within one that they cannot: left from a time when they could."""
    inside = inner(work_of(stopped), *where.split("/"))
    inside.chmod(0o777)
    with pytest.raises(OutputError, match="others can read or have written"):
        run_to(stopped, photos)
    inside.chmod(0o700)
    aside = inside.rename(stopped.parent / "aside")
    inside.symlink_to(aside)
    with pytest.raises(OutputError, match="holds files that Omokage did not write"):
        run_to(stopped, photos)


@pytest.mark.parametrize(
    "name", ["notes.txt", "records/thesis.docx", "pictures/me.png", "codes/x", "records/.x.omokage-stage/new"]
)
def test_what_is_not_ours_is_neither_used_nor_removed(stopped, photos, name):
    other = work_of(stopped) / name
    other.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    other.write_text("mine")
    other.chmod(0o600)
    for attempt in (lambda: run_to(stopped, photos), lambda: forget(stopped)):
        with pytest.raises(OutputError, match="holds files that Omokage did not write: move them away"):
            attempt()
    assert other.read_text() == "mine"
    assert is_kept(stopped) is False


def test_a_pipe_in_it_does_not_hang(stopped, photos):
    (next((work_of(stopped) / "records").iterdir())).unlink()
    os.mkfifo(work_of(stopped) / "records" / f"{'0' * 32}.npz", 0o600)
    with pytest.raises(OutputError, match="did not write"):
        run_to(stopped, photos)


def test_a_folder_exchanged_meanwhile_is_noticed(photos, tmp_path):
    """In a folder that others can write to, they can move ours away and put theirs in its place."""
    work = work_of(tmp_path / "out")

    def exchange() -> None:
        work.rename(tmp_path / "taken")
        work.mkdir(mode=0o700)

    with pytest.raises(OutputError, match="was exchanged for another folder"):
        run_to(tmp_path / "out", photos, progress=at("making faces", 3, exchange))  # six photos, k = 2
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------------- what is left, and how it goes


def test_nothing_in_it_can_be_read_by_others(stopped):
    found = everything(work_of(stopped))
    assert len(found) > 10
    assert [path for path in found if path.lstat().st_mode & 0o077] == []


def test_a_killed_run_leaves_nothing_that_others_can_read(photos, tmp_path):
    """Killed while it writes a record: what is staged lies in private folders, and the next run goes on."""
    out = tmp_path / "out"
    code = (
        "import os, sys; sys.path[:0] = sys.argv[3:]; os.umask(0)\n"
        "from pathlib import Path\n"
        "import pytest; from drawn import release_faces, use_drawn_eyes\n"
        "from omokage.base import files\n"
        "use_drawn_eyes(pytest.MonkeyPatch())\n"
        "sync, done = files._sync, []\n"
        "def slow(path):\n"
        "    done.append(path)\n"
        "    if len(done) == 8: print('writing', flush=True); os.read(0, 1)\n"
        "    sync(path)\n"
        "files._sync = slow\n"
        "release_faces(Path(sys.argv[1]), Path(sys.argv[2]), k=2)\n"
    )
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(photos), str(out), here], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    work = work_of(out)
    assert [p for p in everything(work) if p.is_dir() and p.lstat().st_mode & 0o077] == []
    assert any(p.name.endswith(".omokage-stage") for p in everything(work))
    assert is_kept(out)
    run_to(out, photos)
    assert verify(out).passed
    assert not work.exists()


def test_a_folder_that_cannot_be_removed_is_named_with_the_release(photos, tmp_path, monkeypatch):
    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(module.shutil, "rmtree", refuse)
    with pytest.raises(OutputError, match=r"the release is written, but .* remove it yourself, it holds faces"):
        run_to(tmp_path / "out", photos)
    monkeypatch.undo()
    assert verify(tmp_path / "out").passed


def test_forget_removes_it(stopped, run):
    told = run("faces", "forget", stopped)
    assert told.code == 0, told.err
    assert told.out.startswith("removed ")
    assert not work_of(stopped).exists()
    again = run("faces", "forget", stopped)
    assert (again.code, again.out) == (0, f"nothing is kept for {stopped}\n")


@contextmanager
def held(output: Path) -> Iterator[None]:
    """Another process is writing the output."""
    code = "import sys; from omokage.base.files import claimed\nwith claimed(sys.argv[1]): print('held', flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", code, str(output)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    try:
        yield
    finally:
        other.communicate("\n")


def test_forget_does_not_disturb_a_run(stopped):
    with held(stopped), pytest.raises(OutputError, match="another run is writing"):
        forget(stopped)
    assert forget(stopped) == work_of(stopped)


def test_two_runs_to_one_output_are_refused(photos, tmp_path, run):
    """The second is refused before it looks at a photo, and leaves the first one's work alone."""
    out = tmp_path / "out"
    with held(out):
        with pytest.raises(OutputError, match="another run is writing"):
            run_to(out, photos)
        told = run("faces", photos, "-o", out, "--k", 2)
    assert told.code == 2
    assert "another run is writing" in told.err
    assert not work_of(out).exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_after_a_stop_it_is_said_where_faces_are_kept(photos, tmp_path, monkeypatch, capsys, error):
    from omokage.cli import main

    def stop(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(DrawnEyes, "see", stop)
    out = tmp_path / "o ut"
    with pytest.raises((SystemExit, RuntimeError)):
        main(["faces", str(photos), "-o", str(out), "--k", "2", "--size", "64", "--workers", "1"])
    told = capsys.readouterr().err
    assert str(work_of(out)) in told
    assert f"omokage faces forget '{out}'" in told
    assert stat.S_IMODE(work_of(out).stat().st_mode) == 0o700


def test_where_nothing_is_kept_nothing_is_said(tmp_path, run):
    told = run("faces", tmp_path, "-o", tmp_path / "out", "--k", 2)
    assert told.code == 2
    assert "holds no photos" in told.err
    assert "forget" not in told.err


# ---------------------------------------------------------------------- the crowd of people who do not exist


def test_a_crowd_that_others_can_write_to_is_refused(tmp_path, monkeypatch):
    """Or somebody could put photos of people who exist among those who do not."""
    monkeypatch.setattr(crowd_module.networks, "home", lambda: tmp_path)
    monkeypatch.setattr(crowd_module, "DRAWN", 3)
    place = tmp_path / "crowd" / f"mobilestylegan-{crowd_module.SEED}-{crowd_module.SIDE}"
    draw_photos(place, 5)
    for number, path in enumerate(sorted(place.iterdir())[:3]):
        path.rename(place / f"{number:04d}.png")
    place.chmod(0o777)
    with pytest.raises(OutputError, match="its people may exist"):
        crowd_module.gather(None, tmp_path, 64, 1, lambda *_: None, 2)
    place.chmod(0o755)
    found = crowd_module.gather(None, tmp_path, 64, 1, lambda *_: None, 2)
    assert len(found) == 3  # the two that were put there by another name are nobody's
    assert stat.S_IMODE((place / ".records").stat().st_mode) == 0o700
