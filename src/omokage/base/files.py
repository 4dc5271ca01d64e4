"""The one writer of files: whole or not at all, and nothing is replaced that is not ours.

Everything is written into a private stage beside its place (see :mod:`.claims`), brought to the disk, and put in its place
by one rename. A rename to a free place refuses a target that has appeared meanwhile. To replace an earlier output, the two
are exchanged in one step, what came out is looked at once more, and if it is not what was accepted before, they are
exchanged back. A process that is killed at any moment leaves the old output or the new one, and the next run to the same
place clears what else it left.

Folders are not replaced where the file system cannot exchange two names in one step (NFS, Windows): moving the old one
away first would leave a moment in which neither is there.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import OutputError
from .claims import Claim, claimed
from .renaming import WINDOWS, NoExchange, exchange, rename_new

__all__ = ["claimed", "publish_folder", "require_apart", "require_file", "require_folder", "write_new", "write_whole"]

Content = bytes | Callable[[Path], object]  # or what writes the file at the path it is given


def write_whole(path: str | Path, content: Content, *, private: bool = False) -> None:
    """Write a file whole or not at all, in place of what is there: for work files, caches and keys.

    Parameters
    ----------
    path : the file
    content : its bytes, or a function that writes them to the path it is given
    private : readable by its owner alone
    """
    with claimed(path, wait=True) as claim, _writing(claim):
        if os.path.lexists(claim.place):
            _require_file(claim.place)
        _stage_file(claim, content, private)
        os.replace(claim.new, claim.place)
        _sync(claim.place.parent)


def write_new(
    path: str | Path, content: Content, *, overwrite: bool, ours: Callable[[bytes], bool], private: bool = False
) -> None:
    """Write a single output file of the user whole or not at all.

    Parameters
    ----------
    path : the file
    content : its bytes, or a function that writes them to the path it is given
    overwrite : replace a file that is there, if it is ours
    ours : whether the bytes of a file that is there are an earlier output of this kind
    private : readable by its owner alone

    Raises
    ------
    OutputError
        If a file is there that must not be replaced, also if it appears while this one is written.
    """
    with claimed(path) as claim, _writing(claim):
        _clear(claim, lambda left: _require_our_file(left, ours))
        require_file(claim.place, overwrite=overwrite, ours=ours)
        _stage_file(claim, content, private)
        if not os.path.lexists(claim.place):
            _place_new(claim)
        else:
            if not private:
                claim.new.chmod(stat.S_IMODE(claim.place.stat().st_mode))
            _exchange(claim, lambda old: _require_our_file(old, ours))


def publish_folder(
    target: str | Path,
    fill: Callable[[Path], object],
    *,
    overwrite: bool,
    ours: Callable[[Path], None],
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
    undo: Callable[[], None] = lambda: None,
) -> Path:
    """Let ``fill`` write a folder, and put it in the target's place in one step.

    A second file elsewhere that belongs to the folder, such as the key of a release, becomes part of the same transaction by
    the three functions. With ``old`` the key that is there (or none) and ``new`` the one that ``fill`` made:

    - ``before`` writes a key file that holds both, with :func:`write_whole`;
    - the one rename of the folder commits: before it the old release is there, after it the new one, and the key file
      opens either;
    - ``after`` writes the key file with ``new`` alone;
    - ``undo`` writes ``old`` back, or deletes the file if there was none.

    Killed at any moment, the key file opens the release that is there, and running the command again leaves one key. Claim the
    key's place as well (:func:`claimed`), around the whole of it.

    Parameters
    ----------
    target : the folder; it may be there if it is empty
    fill : writes the content into the folder it is given
    overwrite : replace a folder that is there, if it is ours
    ours : raises an ``OutputError`` if a folder must not be replaced: it does not parse as an earlier output of this kind, or
        holds anything else
    before : called when the folder is complete, just before the rename that commits
    after : called just after it
    undo : called if nothing was committed although ``before`` was called

    Returns
    -------
    Path
        The target.

    Raises
    ------
    OutputError
        If a folder is there that must not be replaced, also if it appears meanwhile, or if it cannot be written.
    """
    with claimed(target) as claim, _writing(claim):
        _clear(claim, ours)
        require_folder(claim.place, overwrite=overwrite, ours=ours)
        claim.new.mkdir()
        fill(claim.new)
        replacing = require_folder(claim.place, overwrite=overwrite, ours=ours)
        if claim.place.is_dir():
            claim.new.chmod(stat.S_IMODE(claim.place.stat().st_mode))
        _settle(claim.new)
        mine = claim.new.lstat()
        try:
            before()
            if replacing:
                _exchange(claim, ours)
            else:
                _place_new(claim)
        except BaseException:
            if not _is_there(claim.place, mine):
                undo()
            raise
        after()
    return Path(target)


def require_file(path: str | Path, *, overwrite: bool, ours: Callable[[bytes], bool]) -> None:
    """Refuse a place that :func:`write_new` would refuse, before any work is done."""
    place = Path(path)
    if not os.path.lexists(place):
        return
    if not overwrite:
        raise OutputError(f"{place} exists: choose another place, or allow replacing it with --overwrite")
    _require_our_file(place, ours)


def require_folder(target: str | Path, *, overwrite: bool, ours: Callable[[Path], None]) -> bool:
    """Refuse a place that :func:`publish_folder` would refuse, before any work is done; True if something is replaced."""
    place = Path(target)
    if not os.path.lexists(place):
        return False
    if not place.is_dir():
        raise OutputError(f"{place} exists and is not a folder: choose another place")
    if not any(place.iterdir()):
        return False
    ours(place)
    if not overwrite:
        raise OutputError(f"{place} exists: choose another place, or allow replacing it with --overwrite")
    return True


def require_apart(output: str | Path, *inputs: str | Path | None) -> None:
    """Refuse an output that is one of the inputs of the same command, or a folder that holds one of them."""
    for given in inputs:
        if given is None:
            continue
        place = Path(given).resolve()
        if _same(place, Path(output)):
            raise OutputError(f"{output} is an input of this command: choose another place")
        if any(_same(folder, Path(output)) for folder in place.parents):
            raise OutputError(f"{output} holds {place.name}, an input of this command: choose another place")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


@contextmanager
def _writing(claim: Claim) -> Iterator[None]:
    """One thread at a time; errors of the system become ours; what is half-written is removed."""
    with claim.writing:
        try:
            yield
        except NoExchange:
            raise OutputError(
                f"{claim.place} cannot be replaced in one step on this file system: remove it yourself, or choose another place"
            ) from None
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"{claim.place} cannot be written: {error.strerror or type(error).__name__}") from None
        finally:
            with suppress(OSError):
                claim.discard(claim.new)
                claim.left_ready()


def _clear(claim: Claim, check: Callable[[Path], None]) -> None:
    """Delete what a killed run had exchanged out, if it is ours."""
    while (left := claim.left_ready()) is not None:
        try:
            check(left)
        except OutputError:
            raise OutputError(f"{left} was set aside by an interrupted run and is not ours to delete: move it away") from None
        claim.discard(left)


def _stage_file(claim: Claim, content: Content, private: bool) -> None:
    """Write the staged file, whole and on the disk."""
    if callable(content):
        content(claim.new)
    else:
        with claim.new.open("xb") as file:
            file.write(content)
    if private:
        claim.new.chmod(0o600)
    _sync(claim.new)


def _place_new(claim: Claim) -> None:
    """Put what is staged in a place that is free, or an empty folder."""
    try:
        if claim.new.is_dir() and claim.place.is_dir():
            claim.place.rmdir()  # refused if it is not empty
        rename_new(claim.new, claim.place)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise OutputError(f"{claim.place} appeared while it was being written, and was left as it is") from None
        raise
    _sync(claim.place.parent)


def _exchange(claim: Claim, check: Callable[[Path], None]) -> None:
    """Exchange what is staged with what is there, and back again if that is not what was checked before."""
    ready = claim.ready()
    try:
        exchange(ready, claim.place)
    except NoExchange:
        if ready.is_dir():
            raise
        os.replace(ready, claim.place)
        _sync(claim.place.parent)
        return
    try:
        check(ready)
    except BaseException:
        exchange(ready, claim.place)
        raise
    _sync(claim.place.parent)
    claim.discard(ready)


def _require_file(path: Path) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):  # a folder, a device, a pipe, which would be waited for
        raise OutputError(f"{path} exists and is not a file: choose another place")


def _require_our_file(path: Path, ours: Callable[[bytes], bool]) -> None:
    _require_file(path)
    if not ours(path.read_bytes()):
        raise OutputError(f"{path} was not written by this command and is not replaced: choose another place")


def _is_there(place: Path, mine: os.stat_result) -> bool:
    try:
        return os.path.samestat(place.lstat(), mine)
    except OSError:
        return False


def _settle(folder: Path) -> None:
    """Give all files and folders one time, so that times do not tell the order of writing, and bring them to the disk."""
    now = int(time.time())
    inside = sorted(Path(place, name) for place, folders, files in os.walk(folder) for name in folders + files)
    for path in (*reversed(inside), folder):  # what lies in a folder before the folder
        if os.utime in os.supports_follow_symlinks:
            os.utime(path, (now, now), follow_symlinks=False)
        elif not path.is_symlink():  # Windows: only what a link leads to has a time that can be set
            os.utime(path, (now, now))
        if not path.is_symlink():
            _sync(path)


def _sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    folder = path.is_dir()
    if folder and WINDOWS:  # which does not open folders
        return
    handle = os.open(path, os.O_RDWR if WINDOWS else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not folder or error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems do this only for files
            raise
    finally:
        os.close(handle)
