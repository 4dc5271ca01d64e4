"""Linux, macOS and Windows: what one of them lacks is not taken for granted, and what we write is the same everywhere."""

from __future__ import annotations

import ast
import errno
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omokage.base import claims, files, renaming, workers
from omokage.base.reading import read_regular
from omokage.base.threads import Pool
from omokage.errors import InputError, OutputError

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "omokage"
MODULES = sorted(SOURCE.rglob("*.py"))
POSIX_ONLY = {
    "chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getloadavg", "getpgid",
    "getpgrp", "getpriority", "getuid", "killpg", "lchown", "mkfifo", "mknod", "nice", "openpty", "posix_fadvise",
    "posix_fallocate", "pread", "pwrite", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sendfile", "setpriority",
    "setsid", "setuid", "statvfs", "sync", "sysconf", "uname", "wait3", "wait4", "WNOHANG", "O_CLOEXEC", "O_DIRECTORY",
    "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_TMPFILE", "kill", "link",
}  # fmt: skip
POSIX_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty", "crypt", "spwd"}


def trees():
    for path in MODULES:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_what_only_posix_has_is_asked_for_first():
    """Every ``os.geteuid`` stands in a module that says ``hasattr(os, "geteuid")``; no module of POSIX alone is imported."""
    for path, tree in trees():
        asked = {
            call.args[1].value
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("hasattr", "getattr")
            and len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr not in POSIX_ONLY - asked, f"{path.relative_to(ROOT)}:{node.lineno} uses os.{node.attr}"
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not POSIX_MODULES & {name.split(".")[0] for name in names}, path
        assert "/proc/" not in path.read_text(encoding="utf-8")


def test_text_files_have_one_encoding_and_one_line_end():
    """Windows would write its own code page and CRLF, and a digest counted on the bytes would differ."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            given = {keyword.arg for keyword in node.keywords}
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if name == "write_text":
                assert {"encoding", "newline"} <= given, where
            if name == "read_text":
                assert "encoding" in given or node.args, where
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if name == "open" and any(re.fullmatch("[rwax][+]?t?", mode) for mode in texts):
                assert "encoding" in given, where


def test_names_in_the_repository_work_everywhere():
    """No two names that differ in case alone, none that Windows reserves, none that it cannot hold."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.splitlines()
    if listed.returncode or not names:
        pytest.skip("not a checkout")
    places = {str(folder) for name in names for folder in Path(name).parents} | set(names)
    assert len({name.casefold() for name in places}) == len(places)
    reserved = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
    for name in names:
        assert len(name) < 150
        for part in name.split("/"):
            assert not reserved.fullmatch(part), name
            assert not re.search(r'[<>:"\\|?*\x00-\x1f]|[. ]$', part), name


@pytest.fixture
def windows(monkeypatch):
    """What our writer sees on Windows, as far as it can be had here: no renames with flags, no links' times, no users."""
    for module in (claims, files, renaming):
        monkeypatch.setattr(module, "WINDOWS", True)
    monkeypatch.setattr(renaming, "_system_call", lambda: (None, {}))
    monkeypatch.setattr(os, "supports_follow_symlinks", set())
    monkeypatch.delattr(os, "geteuid", raising=False)
    monkeypatch.delattr(os, "link")
    monkeypatch.setattr(shutil, "_use_fd_functions", False)
    keep_open, keep_utime, keep_rename = os.open, os.utime, os.rename

    def opened(path, flags, *rest, **options):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return keep_open(path, flags, *rest, **options)

    def utime(path, *rest, follow_symlinks=True, **options):
        if not follow_symlinks:
            raise NotImplementedError("utime: follow_symlinks unavailable on this platform")
        keep_utime(path, *rest, **options)

    def rename(source, target):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists")
        keep_rename(source, target)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "utime", utime)
    monkeypatch.setattr(os, "rename", rename)


def fill(text):
    def write(stage):
        (stage / "inside").mkdir()
        (stage / "inside" / "data.txt").write_text(text)

    return write


def test_outputs_are_written_without_what_windows_lacks(windows, tmp_path):
    files.write_new(tmp_path / "a.txt", b"one", overwrite=False, ours=lambda content: True)
    files.write_new(tmp_path / "a.txt", b"two", overwrite=True, ours=lambda content: content == b"one")
    files.write_whole(tmp_path / "key.json", b"secret", private=True)
    files.publish_folder(tmp_path / "out", fill("new"), overwrite=False, ours=lambda folder: None)
    assert (tmp_path / "a.txt").read_bytes() == b"two"
    assert (tmp_path / "out" / "inside" / "data.txt").read_text() == "new"
    with pytest.raises(OutputError, match="cannot be replaced in one step on this file system: remove it yourself"):
        files.publish_folder(tmp_path / "out", fill("newer"), overwrite=True, ours=lambda folder: None)
    assert (tmp_path / "out" / "inside" / "data.txt").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "key.json", "out"]


def test_windows_keeps_the_lock_beside_what_is_left(windows, tmp_path):
    """Without it the next run would take the folder for somebody else's."""
    with claims.claimed(tmp_path / "out") as claim:
        (claim.stage / "ready-0").write_text("set aside by an interrupted run")
    assert sorted(path.name for path in claim.stage.iterdir()) == ["lock", "ready-0"]
    with claims.claimed(tmp_path / "out"):
        pass


@pytest.mark.parametrize("why", [errno.EPERM, errno.ENOTSUP, errno.EMLINK, None])
def test_a_new_file_where_hard_links_are_unknown(monkeypatch, tmp_path, why):
    """exFAT and some network volumes have neither links nor a rename that refuses."""

    def no_link(source, target):
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(renaming, "_system_call", lambda: (None, {}))
    if why is None:
        monkeypatch.delattr(os, "link")
    else:
        monkeypatch.setattr(os, "link", no_link)
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("new")
    two.write_text("there before")
    with pytest.raises(FileExistsError):
        renaming.rename_new(one, two)
    assert two.read_text() == "there before"
    two.unlink()
    renaming.rename_new(one, two)
    assert two.read_text() == "new"
    assert not one.exists()


def test_other_errors_of_a_link_are_not_hidden(monkeypatch, tmp_path):
    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(renaming, "_system_call", lambda: (None, {}))
    monkeypatch.setattr(os, "link", full)
    (tmp_path / "one").write_text("new")
    with pytest.raises(OSError, match="No space"):
        renaming.rename_new(tmp_path / "one", tmp_path / "two")


def test_two_spellings_of_one_name_are_one_claim(monkeypatch, tmp_path):
    """On a file system that ignores case, ``Out`` within ``out`` would wait for itself for ever."""
    keep = claims.stage_of
    monkeypatch.setattr(claims, "stage_of", lambda place: keep(place.with_name(place.name.lower())))
    with claims.claimed(tmp_path / "out") as one, claims.claimed(tmp_path / "Out", wait=True) as two:
        assert one is two
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_to_another_claims_stage_is_no_claim(tmp_path):
    with claims.claimed(tmp_path / "a") as one:
        claims.stage_of(tmp_path / "b").symlink_to(one.stage)
        with pytest.raises(OutputError, match="not a folder of yours"), claims.claimed(tmp_path / "b"):
            pass


def test_folders_that_cannot_be_synced_do_not_stop_a_run(monkeypatch, tmp_path):
    keep = os.fsync

    def fsync(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}") or not os.path.isfile(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        keep(handle)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux tells what a handle is")
    monkeypatch.setattr(os, "fsync", fsync)
    files.publish_folder(tmp_path / "out", fill("new"), overwrite=False, ours=lambda folder: None)
    assert (tmp_path / "out" / "inside" / "data.txt").read_text() == "new"


@pytest.mark.parametrize("system", ["linux", "darwin", "win32", "freebsd14"])
def test_the_call_for_a_rename_is_looked_up_by_system(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)
    call, flags = renaming._system_call.__wrapped__()
    assert flags == {"linux": renaming._LINUX, "darwin": renaming._MACOS}.get(system, {})
    assert (call is not None) == (system == "linux" and platform.system() == "Linux")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links_are_refused_where_opening_cannot_refuse_them(monkeypatch, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    for name in ("O_NOFOLLOW", "O_NONBLOCK"):
        monkeypatch.delattr(os, name, raising=False)
    with pytest.raises(InputError, match="link is not a regular file"):
        read_regular(tmp_path / "link", 100)
    assert read_regular(tmp_path / "secret", 100) == b"secret"


def test_cores_are_counted_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    with Pool(None) as pool:
        assert pool.threads == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    with Pool(None) as pool:
        assert pool.threads == 1


def test_windows_gets_no_more_processes_than_it_can_wait_for(monkeypatch):
    asked = []

    class Pool:
        def __init__(self, count, *_):
            asked.append(count)
            raise KeyboardInterrupt

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Pool)
    for system, expected in (("win32", 61), ("linux", 100)):
        monkeypatch.setattr(sys, "platform", system)
        with pytest.raises(KeyboardInterrupt):
            list(workers.in_parallel(print, ((i,) for i in range(800)), 100))
        assert asked.pop() == expected


WITHOUT = """
import os, sys
import filelock, numba, polars, pydantic, scipy.stats, sklearn.cluster, typer, cryptography.hazmat.primitives
import shutil, subprocess, tempfile, tarfile
for name in %r:
    if hasattr(os, name):
        delattr(os, name)
from omokage.base import claims, files, renaming
renaming._system_call = lambda: (None, {})
claims.WINDOWS = files.WINDOWS = renaming.WINDOWS = True
from omokage.cli import main
main(sys.argv[1:])
"""


def test_a_table_is_released_and_verified_without_posix(patients, tmp_path):
    """In a process whose ``os`` has nothing that only POSIX has, and whose output is not Unicode."""
    code = WITHOUT % sorted(POSIX_ONLY - {"O_CLOEXEC", "O_TMPFILE", "O_NOFOLLOW", "O_DIRECTORY"})  # tempfile and shutil read them

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
        )  # fmt: skip

    made = run("table", "patients.csv", "-o", "out", "--k", "2", "--identifier", "id", "--quasi", "zip,age,gender",
               "--sensitive", "disease", "--key", "key.json")  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert b"\r" not in b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    checked = run("verify", "out")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["out"]


def test_signs_that_a_pipe_cannot_show_do_not_stop_a_command():
    code = "from omokage.cli import main; main(['models', 'list'])"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert shown.returncode == 0, shown.stderr
    assert b"scrfd" in shown.stdout
