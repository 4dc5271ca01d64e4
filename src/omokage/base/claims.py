"""One run at a time for an output: a hidden folder beside it that is both the lock and the place to stage.

``.NAME.omokage-stage`` is readable by its owner alone and holds

- ``lock``, which the run holds with the system's file lock: it is released when the process ends, however it ends, and
  it works between containers that share the volume, because no process number is compared;
- ``new``, what is being written, or is about to be deleted: the next run deletes it;
- ``ready-N``, what is about to be exchanged with the output; N is its inode, so that the next run can tell it from the
  earlier output that an exchange puts in its place.

The folder is removed at the end. Whoever opened the lock just before that finds it removed and starts over.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import OutputError
from .renaming import WINDOWS

_SUFFIX, _LOCK, _NEW = ".omokage-stage", "lock", "new"
_READY = re.compile(r"ready-[0-9]+")
_PAUSE = 0.05  # seconds between two looks at a lock that another process holds
_TO_NFS = ".nfs"  # what an NFS client calls a file that was deleted while somebody has it open


class _BusyError(OutputError):
    """Another process holds the output."""


class Claim:
    """An output that only this process may write; see :func:`claimed`."""

    def __init__(self, place: Path) -> None:
        missing = [folder for folder in place.parents if not folder.exists()]
        self._handle = _lock(place)
        self._made = missing  # folders above the output, the innermost first
        self.place = place
        self.stage = stage_of(place)
        self.new = self.stage / _NEW
        self.writing = threading.RLock()  # threads of one process share the claim and take turns to write
        self._users = 0

    def ready(self) -> Path:
        """Move what is staged to a name that tells it from what an exchange will leave there."""
        path = self.stage / f"ready-{self.new.lstat().st_ino}"
        os.rename(self.new, path)
        return path

    def left_ready(self) -> Path | None:
        """What a killed run was about to exchange, or had exchanged out: if it is the former, it is deleted here."""
        for name in os.listdir(self.stage):
            path = self.stage / name
            if _READY.fullmatch(name):
                if path.lstat().st_ino != int(name.removeprefix("ready-")):
                    return path
                self.discard(path)
        return None

    def discard(self, path: Path) -> None:
        """Delete something in the stage; a run that is killed meanwhile leaves it as ``new``, for the next to delete."""
        if path != self.new:
            remove(self.new)
            os.rename(path, self.new)
        remove(self.new)

    def _release(self) -> None:
        done = False
        try:
            remove(self.new)
            done = not any(_READY.fullmatch(name) for name in os.listdir(self.stage))
            if done and not WINDOWS:
                os.unlink(self.stage / _LOCK)  # while it is held: others look whether the lock they got is still there
        finally:
            os.close(self._handle)
        if done and WINDOWS:  # which deletes nothing that is open, so it refuses if another run has opened the lock meanwhile
            os.unlink(self.stage / _LOCK)
        os.rmdir(self.stage)  # refused if another run has taken the folder over meanwhile
        if not os.path.lexists(self.place):
            for folder in self._made:
                os.rmdir(folder)  # refused if anything is in it


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    try:
        folder = stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if folder:
        shutil.rmtree(path)
    else:
        path.unlink()


def stage_of(place: Path) -> Path:
    """The hidden folder of an output."""
    name = place.name if len(os.fsencode(place.name)) <= 200 else hashlib.sha256(os.fsencode(place.name)).hexdigest()
    return place.with_name(f".{name}{_SUFFIX}")


def places_of_stages(folder: Path, pattern: str) -> list[Path]:
    """The outputs whose names fit the pattern and whose stages lie in a folder: of runs that go on, or were killed."""
    return [folder / left.name[1:].removesuffix(_SUFFIX) for left in folder.glob(f".{pattern}{_SUFFIX}")]


_held: dict[Path, Claim] = {}
_guard = threading.Lock()


@contextmanager
def claimed(target: str | Path, *, wait: bool = False) -> Iterator[Claim]:
    """Hold an output for as long as the block runs, so that no other run writes it meanwhile.

    May be nested and is shared by the threads of a process: a command claims its outputs before it does any work, and what
    writes them later claims them again. A link is followed. Folders above the output are made, and
    removed again if nothing is written.

    Parameters
    ----------
    target : the file or folder that will be written
    wait : wait for another process that holds it, instead of refusing

    Raises
    ------
    OutputError
        If another run holds the output, the place cannot be written, or what lies at the stage's place is not ours.
    """
    claim = _claim(Path(os.path.realpath(target)), wait)
    try:
        yield claim
    finally:
        with _guard:
            claim._users -= 1
            if not claim._users and _held.get(claim.place) is claim:
                del _held[claim.place]
                with suppress(OSError):  # what cannot be deleted now is deleted by the next run
                    claim._release()


def _claim(place: Path, wait: bool) -> Claim:
    while True:
        try:
            with _guard:
                claim = _ours(place)
                if claim is None:
                    claim = _held[place] = Claim(place)
                claim._users += 1
                return claim
        except _BusyError:
            if not wait:
                raise
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"{place} cannot be written: {error.strerror or type(error).__name__}") from None
        time.sleep(_PAUSE)


def _ours(place: Path) -> Claim | None:
    """The claim that this process has on an output, also where the file system takes ``Out`` and ``out`` for one name."""
    if place in _held or not place.name:
        return _held.get(place)
    stage = stage_of(place)
    return next((claim for claim in _held.values() if _is_one(claim.stage, stage)), None)


def _is_one(stage: Path, other: Path) -> bool:
    try:
        return os.path.samestat(stage.lstat(), other.lstat())  # a link is not followed: it could lead to another claim
    except OSError:
        return False


def _lock(place: Path) -> int:
    """Make the stage and take its lock; what a killed run was writing there is deleted."""
    if not place.name or os.path.ismount(place):
        raise OutputError(f"{place} cannot be written as a whole, for something is mounted there: choose a file or folder in it")
    stage = stage_of(place)
    while True:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            if not _made(stage):
                _require_ours(stage)
            handle = os.open(stage / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileNotFoundError:  # the run that had it has just ended, and removed it
            continue
        try:
            if _locked(handle, place):
                remove(stage / _NEW)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _locked(handle: int, place: Path) -> bool:
    """Take the lock; False if the run that had it has removed it meanwhile."""
    from filelock import lock_descriptor  # takes 70 ms, which reading commands need not spend

    try:
        taken = lock_descriptor(handle, blocking=False)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK):
            raise OutputError(f"{place.parent} is on a file system without file locks: choose another place") from None
        raise
    if not taken:
        raise _BusyError(f"another run is writing {place}: wait for it, or choose another place")
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(stage_of(place) / _LOCK))
    except FileNotFoundError:
        return False


def _made(stage: Path) -> bool:
    """Make the stage; False if one is there, or has just been removed with the folder it was in."""
    try:
        os.mkdir(stage, 0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:
        if stage.parent.exists():  # a file system that takes no new names
            raise NotADirectoryError(errno.ENOTDIR, "No new names are possible there") from None
        raise
    return True


def _require_ours(stage: Path) -> None:
    """Refuse what lies at the stage's place if another user made it, or if it holds anything else; close it to others."""
    state = os.lstat(stage)
    if not stat.S_ISDIR(state.st_mode) or (hasattr(os, "geteuid") and state.st_uid != os.geteuid()):
        raise OutputError(f"{stage} is not a folder of yours: remove it, or choose another place")
    if state.st_mode & 0o077:
        os.chmod(stage, 0o700)  # without effect where modes are not kept, as on a USB stick
    names = {name for name in os.listdir(stage) if not name.startswith(_TO_NFS)}
    if names - {_LOCK, _NEW} - {name for name in names if _READY.fullmatch(name)} or (names and _LOCK not in names):
        raise OutputError(f"{stage} holds files that Omokage did not write: move them away, or choose another place")


def _forget_in_child() -> None:
    """A forked process does not hold what its parent holds: not even by a handle that would outlive the parent."""
    global _guard
    _guard = threading.Lock()
    for claim in _held.values():
        with suppress(OSError):
            os.close(claim._handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
