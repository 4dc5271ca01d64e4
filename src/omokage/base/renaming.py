"""Two renames that the standard library does not offer: one that never replaces, and one that exchanges two names.

Linux has both in ``renameat2``, macOS in ``renamex_np``. Where the system or the file system has neither (NFS, some FUSE
volumes, Windows), a rename that must not replace falls back to a hard link (files) or to the plain rename, which the system
refuses unless the target is an empty folder (folders). A file system without hard links (exFAT, some network volumes) gets an
empty file of that name first, which the system refuses to create where something is; a process that is killed between the
two steps leaves the empty file. There is no safe fallback for an exchange: the caller gets :class:`NoExchange` and decides.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_LINUX = {"no-replace": 1, "exchange": 2}
_MACOS = {"no-replace": 4, "exchange": 2}
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_NO_LINKS = {*_UNSUPPORTED, errno.EPERM, errno.EMLINK}

WINDOWS = os.name == "nt"


class NoExchange(OSError):
    """This system or file system cannot exchange two names in one step."""


def rename_new(source: Path, target: Path) -> None:
    """Rename ``source`` to ``target``; ``FileExistsError`` if something is there, which is left as it is."""
    if _flagged(source, target, "no-replace"):
        return
    if source.is_dir() or WINDOWS:  # Windows never replaces; POSIX replaces an empty folder at most
        try:
            os.rename(source, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
            raise
    elif _linked(source, target):
        os.unlink(source)
    else:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # refused if something is there
        os.replace(source, target)


def _linked(source: Path, target: Path) -> bool:
    """Give a file a second name; False where the file system knows no such thing."""
    if not hasattr(os, "link"):
        return False
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def exchange(one: Path, other: Path) -> None:
    """Exchange two names in one step; :class:`NoExchange` where that is not possible."""
    if not _flagged(one, other, "exchange"):
        raise NoExchange(errno.ENOTSUP, "this file system cannot exchange two names")


def _flagged(source: Path, target: Path, how: str) -> bool:
    """Ask the system for a rename with a flag; False where it has none."""
    call, flags = _system_call()
    if call is None:
        return False
    a, b = os.fsencode(source), os.fsencode(target)
    result = call(_AT_FDCWD, a, _AT_FDCWD, b, flags[how]) if flags is _LINUX else call(a, b, flags[how])
    if result == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


@lru_cache(maxsize=1)
def _system_call() -> tuple[Any, dict[str, int]]:
    names = {"linux": ("renameat2", _LINUX), "darwin": ("renamex_np", _MACOS)}
    name, flags = names.get(sys.platform, ("", {}))
    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None, flags
    except OSError:
        return None, flags
