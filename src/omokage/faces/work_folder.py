"""The faces' work folder: what a run has found so far, kept beside the output until the release is written.

It holds crops of the original faces, so nobody else may read it, or have put anything into it: it is used only if it is a real
folder, ours, private, and holds nothing but what a run writes there:

- ``seed``;
- ``records/….npz``, a photo each; ``codes/MAP/….npy``, a face each; ``pictures/….png``, a group each;
- ``.NAME.omokage-stage`` beside any of these, where a killed run was writing it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base.files import claimed
from ..errors import OutputError

_FILES = (
    r"seed",
    r"records/[0-9a-f]{32}\.npz",
    r"codes/[a-z]+-[0-9a-f]{16}/[0-9a-f]{32}-[0-9]+\.npy",
    r"pictures/[0-9a-f]{64}\.(png|jpg|webp)",
)
_TO_NFS = ".nfs"  # what an NFS client calls a file that was deleted while somebody has it open
_FOLDERS = re.compile(r"records|codes|codes/[a-z]+-[0-9a-f]{16}|pictures")
_OURS = re.compile("|".join(f"({each})" for each in _FILES))
_STAGE = re.compile(r"(?P<above>(?:.*/)?)\.(?P<name>[^/]+)\.omokage-stage(?P<inside>/(?:lock|new|ready-[0-9]+))?")


def work_of(output: Path) -> Path:
    """Where the work of an output is kept."""
    place = output.resolve()
    return place.parent / f".{place.name}.omokage-faces"


@contextmanager
def opened(work: Path) -> Iterator[Path]:
    """The work folder, made if it is not there; at the end of the block it must still be the same folder.

    Raises
    ------
    OutputError
        If something is there that is not ours alone, or somebody exchanged the folder meanwhile.
    """
    with _writing(work):
        work.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(work):
            work.mkdir(mode=0o700)
        _require_ours(work)
        before = work.lstat()
    try:
        yield work
    except BaseException:
        _require_same(work, before)  # a file that is missing from it is missing for this reason
        if all(name == "seed" for name, _ in _walk(work)):  # nothing was found yet
            remove(work)
        raise
    _require_same(work, before)


def _require_same(work: Path, before: os.stat_result) -> None:
    with _writing(work):
        if not os.path.samestat(before, work.lstat()):
            raise OutputError(f"{work} was exchanged for another folder while it was in use: choose an output elsewhere")


def inner(work: Path, *names: str) -> Path:
    """A folder in the work folder, as private as that one."""
    with _writing(work):
        for name in names:
            work = work / name
            work.mkdir(exist_ok=True, mode=0o700)
    return work


@contextmanager
def _writing(work: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{work} cannot be written: {error.strerror or type(error).__name__}") from None


def is_kept(output: Path) -> bool:
    """Whether a work folder of ours is there."""
    work = work_of(output)
    try:
        _require_ours(work)
    except OSError:  # and OutputError, which is one
        return False
    return True


def forget(output: Path) -> Path | None:
    """Remove the work folder of an output; None if there is none.

    Raises
    ------
    OutputError
        If a run is using it, or it is not ours alone: then nothing is removed.
    """
    work = work_of(output)
    if not os.path.lexists(work):
        return None
    with claimed(output):
        _require_ours(work)
        remove(work)
    return work


def remove(work: Path) -> None:
    """Remove a work folder that was opened."""
    try:
        shutil.rmtree(work)
    except OSError as error:
        raise OutputError(f"{work} cannot be removed ({error.strerror}): remove it yourself, it holds faces") from None


def _require_ours(work: Path) -> None:
    """Refuse a folder that somebody else made, can read, or has put anything into."""
    state = work.lstat()
    if not stat.S_ISDIR(state.st_mode) or not _is_private(state):
        raise OutputError(f"{work} is not a private folder of yours: remove it, or choose another output")
    for name, state in _walk(work):
        folder, file = stat.S_ISDIR(state.st_mode), stat.S_ISREG(state.st_mode)
        staged = _is_stage(name, state)
        if not staged and not (folder and _FOLDERS.fullmatch(name)) and not (file and _OURS.fullmatch(name)):
            raise OutputError(f"{work} holds files that Omokage did not write: move them away, or choose another output")
        if not _is_private(state, staged and file):
            raise OutputError(f"{work} holds files that others can read or have written: remove it, or choose another output")


def _is_private(state: os.stat_result, readable: bool = False) -> bool:
    """Whether it is ours and nobody else can read it; a staged file gets its mode last, and lies in a private folder."""
    return os.name == "nt" or (state.st_uid == os.geteuid() and (readable or not state.st_mode & 0o077))


def _is_stage(name: str, state: os.stat_result) -> bool:
    """What a killed run leaves of a file that it was writing."""
    found = _STAGE.fullmatch(name)
    if found is None or not _OURS.fullmatch(found["above"] + found["name"]):
        return False
    return stat.S_ISREG(state.st_mode) if found["inside"] else stat.S_ISDIR(state.st_mode)


def _walk(folder: Path, above: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a folder, by its name there; links are not followed."""
    for entry in list(os.scandir(folder)):
        if entry.name.startswith(_TO_NFS):
            continue
        try:
            state = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # a stage whose file another process has just finished
            continue
        yield above + entry.name, state
        if stat.S_ISDIR(state.st_mode):
            yield from _walk(folder / entry.name, f"{above}{entry.name}/")
