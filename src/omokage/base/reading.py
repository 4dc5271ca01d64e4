"""Reading files that somebody else may have written: only regular files, never through a link, never more than expected."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import InputError
from .plain import plain


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes.

    A link, a pipe or a device is refused without being opened for long: nothing can make this wait.
    """
    name = plain(path.name)
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():  # Windows cannot refuse it while opening
        raise InputError(f"{name} is not a regular file: give a file")
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "its name cannot be used"
        raise InputError(f"{name} cannot be read: {reason}") from None
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):  # before it becomes a file object, which a folder cannot
        os.close(handle)
        raise InputError(f"{name} is not a regular file: give a file")
    with os.fdopen(handle, "rb") as file:
        if state.st_size > most:
            raise InputError(f"{name} has {state.st_size:,} bytes, but at most {most:,} are read: is it the right file?")
        try:
            content = file.read(state.st_size + 1)
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}") from None
    if len(content) > state.st_size:
        raise InputError(f"{name} grew while it was read: try again")
    return content
