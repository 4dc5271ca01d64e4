"""The one writer of files: whole or not at all, one run at a time, and nothing is replaced that is not ours."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from omokage.base import claims, files, renaming
from omokage.base.files import claimed, publish_folder, require_apart, write_new, write_whole
from omokage.errors import OutputError

MARK = b"ours: "


def ours(content: bytes) -> bool:
    return content.startswith(MARK)


def our_folder(folder: Path) -> None:
    """A toy of a release: ``list.json`` names all that lies in the folder."""
    try:
        listed = set(json.loads((folder / "list.json").read_text()))
    except (OSError, ValueError):
        raise OutputError(f"{folder} is not a toy: choose another place") from None
    if listed | {"list.json"} != {path.name for path in folder.iterdir()}:
        raise OutputError(f"{folder} holds more than a toy: choose another place")


def toy(text: str):
    def fill(stage: Path) -> None:
        (stage / "data.csv").write_text(text)
        (stage / "list.json").write_text('["data.csv"]')

    return fill


def publish(target: Path, text: str = "x", *, overwrite: bool = False, **hooks) -> Path:
    return publish_folder(target, toy(text), overwrite=overwrite, ours=our_folder, **hooks)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------- single files


def test_a_file_is_written_whole_and_alone(tmp_path):
    write_whole(tmp_path / "new" / "a.bin", b"one")
    write_whole(tmp_path / "new" / "a.bin", b"two")
    write_whole(tmp_path / "new" / "b.bin", lambda path: path.write_bytes(b"three"))
    assert (tmp_path / "new" / "a.bin").read_bytes() == b"two"
    assert (tmp_path / "new" / "b.bin").read_bytes() == b"three"
    assert names(tmp_path / "new") == ["a.bin", "b.bin"]


def test_modes_follow_the_umask_unless_private(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "open", b"")
        write_whole(tmp_path / "key", b"", private=True)
        publish(tmp_path / "out")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750


def test_what_is_replaced_keeps_its_mode(tmp_path):
    (tmp_path / "out").mkdir(mode=0o700)
    publish(tmp_path / "out")
    write_whole(tmp_path / "page", MARK)
    (tmp_path / "page").chmod(0o600)
    write_new(tmp_path / "page", MARK, overwrite=True, ours=ours)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("out", "page")] == [0o700, 0o600]


def test_a_stage_is_private(tmp_path):
    seen = []

    def look(stage: Path) -> None:
        seen.append(stat.S_IMODE(stage.parent.stat().st_mode))
        toy("x")(stage)

    publish_folder(tmp_path / "out", look, overwrite=False, ours=our_folder)
    write_whole(tmp_path / "file", lambda path: (path.write_bytes(b""), seen.append(stat.S_IMODE(path.parent.stat().st_mode))))
    assert seen == [0o700, 0o700]


def test_new_files_replace_nothing_unasked_and_nothing_foreign(tmp_path):
    path = tmp_path / "page.html"
    write_new(path, MARK + b"1", overwrite=False, ours=ours)
    with pytest.raises(OutputError, match="exists"):
        write_new(path, MARK + b"2", overwrite=False, ours=ours)
    write_new(path, MARK + b"3", overwrite=True, ours=ours)
    assert path.read_bytes() == MARK + b"3"
    path.write_bytes(b"my own notes")
    with pytest.raises(OutputError, match="not written by this command"):
        write_new(path, MARK + b"4", overwrite=True, ours=ours)
    assert path.read_bytes() == b"my own notes"
    assert names(tmp_path) == ["page.html"]


def test_key_in_place_of_the_input_with_overwrite(tmp_path):
    """``--key in.csv --overwrite`` replaced the input: what does not parse as a key is left as it is."""
    table = tmp_path / "in.csv"
    table.write_text("zip,age\n1,2\n")
    with pytest.raises(OutputError, match="not replaced"):
        write_new(table, b"{}", overwrite=True, ours=lambda content: content.startswith(b"{"), private=True)
    assert table.read_text() == "zip,age\n1,2\n"


def test_a_file_that_appears_while_we_write_is_kept(tmp_path):
    path = tmp_path / "page.html"

    def slow(stage: Path) -> None:
        stage.write_bytes(MARK)
        path.write_bytes(b"foreign")

    for overwrite in (False, True):
        path.unlink(missing_ok=True)
        with pytest.raises(OutputError):
            write_new(path, slow, overwrite=overwrite, ours=ours)
        assert path.read_bytes() == b"foreign"
    assert names(tmp_path) == ["page.html"]


def test_a_file_that_appears_at_the_last_moment_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    real = files.rename_new
    monkeypatch.setattr(files, "rename_new", lambda a, b: (path.write_bytes(b"foreign"), real(a, b)))
    with pytest.raises(OutputError, match="appeared"):
        write_new(path, MARK, overwrite=False, ours=ours)
    assert path.read_bytes() == b"foreign"
    real_exchange = files.exchange
    path.write_bytes(MARK)

    def swap(a: Path, b: Path) -> None:
        if path.read_bytes() == MARK:
            path.write_bytes(b"foreign")
        real_exchange(a, b)

    monkeypatch.setattr(files, "exchange", swap)
    with pytest.raises(OutputError, match="not replaced"):
        write_new(path, MARK + b"2", overwrite=True, ours=ours)
    assert path.read_bytes() == b"foreign"
    assert names(tmp_path) == ["page.html"]


def test_folders_devices_and_pipes_are_not_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OutputError, match="is not a file"):
            write_new(tmp_path / name, MARK, overwrite=True, ours=ours)
        with pytest.raises(OutputError, match="is not a file"):
            write_whole(tmp_path / name, MARK)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/page.html")
    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "page.html").read_bytes() == b"x"


def test_names_of_any_length_and_kind(tmp_path):
    for name in ("x" * 255, "ü" * 120, "a b\n", ".hidden"):
        write_whole(tmp_path / name, b"x")
    assert len(names(tmp_path)) == 4


def test_an_output_is_never_an_input(tmp_path):
    (tmp_path / "in").mkdir()
    table = tmp_path / "in" / "table.csv"
    table.write_text("a")
    os.link(table, tmp_path / "same.csv")
    for output in (table, tmp_path / "same.csv", tmp_path / "in", tmp_path):
        with pytest.raises(OutputError, match="input"):
            require_apart(output, None, table)
    require_apart(tmp_path / "out", table, tmp_path / "nothing")


def test_no_place(tmp_path, monkeypatch):
    for place in ("/proc/omokage-file", "/"):
        with pytest.raises(OutputError, match="cannot be written"):
            write_whole(place, b"")
    monkeypatch.setattr(os.path, "ismount", lambda place: place == tmp_path / "volume")
    with pytest.raises(OutputError, match="mounted there: choose a file or folder in it"):
        publish(tmp_path / "volume")
    publish(tmp_path / "volume" / "out")


def test_folders_that_were_made_for_nothing_are_removed(tmp_path):
    def fail(stage: Path) -> None:
        raise OutputError("no")

    (tmp_path / "mine").mkdir()
    for out in (tmp_path / "a" / "b" / "out", tmp_path / "mine" / "out"):
        with pytest.raises(OutputError):
            publish_folder(out, fail, overwrite=False, ours=our_folder)
    assert names(tmp_path) == ["mine"]


# ---------------------------------------------------------------------- folders


def test_a_folder_is_published_whole_and_alone(tmp_path):
    assert publish(tmp_path / "deep" / "out") == tmp_path / "deep" / "out"
    with pytest.raises(OutputError, match="exists"):
        publish(tmp_path / "deep" / "out", "other")
    publish(tmp_path / "deep" / "out", "other", overwrite=True)
    assert (tmp_path / "deep" / "out" / "data.csv").read_text() == "other"
    assert names(tmp_path / "deep") == ["out"]


def test_a_failure_leaves_the_old_one_and_nothing_else(tmp_path):
    publish(tmp_path / "out", "old")

    def fail(stage: Path) -> None:
        toy("new")(stage)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutputError, match="No space left"):
        publish_folder(tmp_path / "out", fail, overwrite=True, ours=our_folder)
    assert (tmp_path / "out" / "data.csv").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_all_times_are_alike(tmp_path):
    def fill(stage: Path) -> None:
        (stage / "faces").mkdir()
        for name in "cab":
            (stage / "faces" / name).write_text(name)
            time.sleep(0.01)
        toy("x")(stage)

    publish_folder(tmp_path / "out", fill, overwrite=False, ours=our_folder)
    inside = [*(tmp_path / "out").rglob("*"), tmp_path / "out"]
    assert len(inside) == 7
    assert len({path.stat().st_mtime_ns for path in inside} | {path.stat().st_atime_ns for path in inside if path.is_file()}) == 1


def test_thesis_folder_with_a_certificate_of_its_own(tmp_path):
    """A folder that holds something called like ours was deleted with ``--overwrite``, and the thesis in it was lost."""
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter1.txt").write_text("ten years of work")
    (thesis / "list.json").write_text("{}")
    publish(tmp_path / "out")
    (tmp_path / "out" / "chapter1.txt").write_text("ten years of work")
    for place in (thesis, tmp_path / "out"):
        with pytest.raises(OutputError, match="holds more"):
            publish_folder(place, lambda _: pytest.fail("refused too late"), overwrite=True, ours=our_folder)
    assert (thesis / "chapter1.txt").exists()
    assert (tmp_path / "out" / "chapter1.txt").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_appears_while_we_write_is_kept(tmp_path, overwrite):
    out = tmp_path / "out"

    def fill(stage: Path) -> None:
        toy("x")(stage)
        out.mkdir()
        (out / "work.txt").write_text("foreign")

    with pytest.raises(OutputError):
        publish_folder(out, fill, overwrite=overwrite, ours=our_folder)
    assert names(out) == ["work.txt"]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_appears_at_the_last_moment_is_kept(tmp_path):
    """``before`` runs after the last look at the target: what appears then meets the rename itself."""
    out, undone = tmp_path / "out", []

    def appear() -> None:
        out.mkdir()
        (out / "work.txt").write_text("foreign")

    with pytest.raises(OutputError, match="appeared"):
        publish(out, before=appear, undo=lambda: undone.append(True))
    assert names(out) == ["work.txt"]
    assert undone == [True]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_changes_at_the_last_moment_is_exchanged_back(tmp_path):
    out, undone = publish(tmp_path / "out", "old"), []
    with pytest.raises(OutputError, match="holds more"):
        publish(
            out, "new", overwrite=True, undo=lambda: undone.append(True),
            before=lambda: (out / "work.txt").write_text("foreign"),
        )  # fmt: skip
    assert names(out) == ["data.csv", "list.json", "work.txt"]
    assert (out / "data.csv").read_text() == "old"
    assert undone == [True]
    assert names(tmp_path) == ["out"]


def test_hooks_run_around_the_one_rename(tmp_path):
    out, seen = tmp_path / "out", []

    def look() -> None:
        seen.append((out / "data.csv").read_text() if out.exists() else None)

    publish(out, "1", before=look, after=look)
    publish(out, "2", overwrite=True, before=look, after=look)
    assert seen == [None, "1", "1", "2"]


def test_undo_is_not_called_once_the_folder_is_in_its_place(tmp_path, monkeypatch):
    """An interrupt that comes just after the rename must not take the new key away."""
    real, undone = files._sync, []

    def interrupted(path: Path) -> None:
        real(path)
        if path == tmp_path:
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "_sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "out", undo=lambda: undone.append(True))
    assert (tmp_path / "out" / "data.csv").exists()
    assert undone == []


# ---------------------------------------------------------------------- systems without renameat2


@pytest.fixture
def old_system(monkeypatch):
    monkeypatch.setattr(renaming, "_flagged", lambda a, b, how: False)


def test_without_renameat2_nothing_is_replaced_either(tmp_path, old_system):
    publish(tmp_path / "out")
    write_new(tmp_path / "page", MARK, overwrite=False, ours=ours)
    (tmp_path / "empty").mkdir()
    publish(tmp_path / "empty")
    for before in ("folder", "file"):

        def appear(kind: str = before) -> None:
            (tmp_path / kind).mkdir() if kind == "folder" else (tmp_path / kind).write_text("foreign")
            if kind == "folder":
                (tmp_path / kind / "work.txt").write_text("foreign")

        with pytest.raises(OutputError, match="appeared"):
            publish(tmp_path / before, before=appear)
    with pytest.raises(FileExistsError):
        renaming.rename_new(tmp_path / "page", tmp_path / "file")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "work.txt").read_text() == "foreign"
    assert names(tmp_path) == ["empty", "file", "folder", "out", "page"]


def test_without_exchange_files_are_replaced_and_folders_are_not(tmp_path, old_system):
    out = publish(tmp_path / "out", "old")
    with pytest.raises(OutputError, match="in one step"):
        publish(out, "new", overwrite=True)
    assert (out / "data.csv").read_text() == "old"
    write_new(tmp_path / "page", MARK, overwrite=False, ours=ours)
    write_new(tmp_path / "page", MARK + b"2", overwrite=True, ours=ours)
    assert (tmp_path / "page").read_bytes() == MARK + b"2"
    assert names(tmp_path) == ["out", "page"]


# ---------------------------------------------------------------------- claims

HOLD = """
import sys, time
from omokage.base.files import claimed
with claimed(sys.argv[1]) as claim:
    claim.new.mkdir()
    (claim.new / "secret").write_text("secret")
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that writes ``out``."""
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait(timeout=30)
    child.stdout.close()


def test_a_second_run_to_one_output_is_refused_at_once(tmp_path, holder):
    for write in (publish, lambda path: write_new(path, MARK, overwrite=True, ours=ours)):
        with pytest.raises(OutputError, match="another run is writing"):
            write(tmp_path / "out")
    write_whole(tmp_path / "other", b"not held")


def test_what_a_killed_run_left_is_cleared_by_the_next(tmp_path, holder):
    holder.kill()
    holder.wait(timeout=30)
    assert names(tmp_path) == [".out.omokage-stage"]
    publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_a_stage_is_judged_by_its_lock_and_not_by_a_process_number(tmp_path):
    """In another container the same number is another process: a live one here says nothing about who wrote there."""
    stage = tmp_path / ".out.omokage-stage"
    stage.mkdir(mode=0o700)
    (stage / "lock").write_text(str(os.getppid()))
    (stage / "new").mkdir()
    (stage / "new" / "secret").write_text("secret")
    publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_a_claim_may_be_nested_and_is_shared_by_threads(tmp_path):
    with claimed(tmp_path / "out"):
        with claimed(tmp_path / "link" / ".." / "out"):
            publish(tmp_path / "out", "1")
        workers = [
            threading.Thread(target=publish, args=(tmp_path / "out", str(i)), kwargs={"overwrite": True}) for i in range(8)
        ]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        assert names(tmp_path) == [".out.omokage-stage", "out"]
    assert names(tmp_path) == ["out"]


def test_waiting_for_a_claim(tmp_path, holder):
    threading.Timer(0.3, holder.kill).start()
    write_whole(tmp_path / "out", b"x")
    assert names(tmp_path) == ["out"]


def test_a_forked_process_does_not_hold_its_parents_claims(tmp_path):
    with claimed(tmp_path / "out"):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                publish(tmp_path / "out")
            except OutputError:
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_a_lock_that_was_removed_meanwhile_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    """Opened just before its holder removed it, an old lock can be had by anybody, while another run holds the new one."""
    import filelock

    stage, real, others = tmp_path / ".out.omokage-stage", filelock.lock_descriptor, []

    def meanwhile(handle: int, *, blocking: bool) -> bool:
        if not others:
            shutil.rmtree(stage)
            stage.mkdir(mode=0o700)
            others.append(os.open(stage / "lock", os.O_CREAT | os.O_RDWR))
            assert real(others[0], blocking=False)
        return real(handle, blocking=blocking)

    monkeypatch.setattr(filelock, "lock_descriptor", meanwhile)
    with pytest.raises(OutputError, match="another run is writing"):
        publish(tmp_path / "out")
    os.close(others[0])
    publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("what", ["link", "foreign", "foreign beside a lock", "file"])
def test_a_stage_that_is_not_ours_is_refused(tmp_path, what):
    stage = tmp_path / ".out.omokage-stage"
    if what == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        stage.symlink_to("elsewhere")
    elif what == "file":
        stage.write_text("")
    else:
        stage.mkdir(mode=0o700)
    if what.startswith("foreign"):
        (stage / "thesis.txt").write_text("ten years of work")
    if what == "foreign beside a lock":
        (stage / "lock").touch()
    with pytest.raises(OutputError, match="omokage-stage"):
        publish(tmp_path / "out")
    assert not what.startswith("foreign") or (stage / "thesis.txt").exists()


def test_a_stage_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / ".out.omokage-stage").mkdir(mode=0o700)
    monkeypatch.setattr(claims.os, "geteuid", lambda: 4711)
    with pytest.raises(OutputError, match="not a folder of yours"):
        publish(tmp_path / "out")


def test_a_stage_that_is_open_to_others_is_closed_and_emptied(tmp_path):
    stage, seen = tmp_path / ".out.omokage-stage", []
    stage.mkdir()
    stage.chmod(0o777)
    (stage / "lock").touch()
    (tmp_path / "elsewhere").mkdir()
    (stage / "new").symlink_to("../elsewhere")  # by another user, who would like to read what we write

    def fill(inner: Path) -> None:
        seen.append((stat.S_IMODE(stage.stat().st_mode), inner.is_symlink()))
        toy("x")(inner)

    publish_folder(tmp_path / "out", fill, overwrite=False, ours=our_folder)
    assert seen == [(0o700, False)]
    assert names(tmp_path / "elsewhere") == []


def test_a_file_system_without_owners_and_modes_can_be_written_to(tmp_path, monkeypatch):
    """A USB stick, or a network volume that gives all files to nobody: a stage that we have just made is ours."""
    monkeypatch.setattr(claims.os, "geteuid", lambda: 4711)
    publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_what_was_exchanged_out_by_a_killed_run_is_deleted_only_if_it_is_ours(tmp_path):
    stage = tmp_path / ".out.omokage-stage"
    for foreign in (False, True):
        publish(tmp_path / "out", overwrite=True)
        stage.mkdir(mode=0o700)
        (stage / "lock").touch()
        publish(stage / "ready-1", "old")
        if foreign:
            (stage / "ready-1" / "thesis.txt").write_text("ten years of work")
            with pytest.raises(OutputError, match="set aside by an interrupted run"):
                publish(tmp_path / "out", overwrite=True)
            assert (stage / "ready-1" / "thesis.txt").exists()
            assert (stage / "lock").exists()
        else:
            publish(tmp_path / "out", "new", overwrite=True)
            assert names(tmp_path) == ["out"]


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    import filelock

    def unsupported(handle: int, *, blocking: bool) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock, "lock_descriptor", unsupported)
    with pytest.raises(OutputError, match="without file locks"):
        publish(tmp_path / "out")
