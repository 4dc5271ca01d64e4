"""Crash replay: run some work in a forked process that ends, without a word, at its n-th change to the file system.

What is counted: files opened for writing, writes (of which half is done when it ends there), syncs, renames of every kind,
links, deletions, folders made, modes and times set. As a power failure may do, the end also empties files that were written
and not yet brought to the disk.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omokage.base import renaming

ENDED, FAILED = 87, 88
CHANGES = ("mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir", "chmod", "utime", "symlink", "truncate")


class Events:
    """Counts changes in this process, and ends it before the n-th."""

    def __init__(self, last: int | None = None) -> None:
        self.last, self.count = last, 0
        self.log: list[tuple[str, str]] = []
        self.unsynced: dict[int, int] = {}  # by inode, a handle of our own on what was written

    def happens(self, name: str, *paths: Any) -> None:
        if self.count == self.last:
            self.end()
        self.count += 1
        self.log.append((name, " → ".join(str(path) for path in paths)))

    def end(self) -> None:
        for handle in self.unsynced.values():
            os.ftruncate(handle, 0)
        os._exit(ENDED)

    def install(self) -> None:
        for name in CHANGES:
            setattr(os, name, self._counted(name, getattr(os, name)))
        self._really_open, self._really_sync, self._really_io = os.open, os.fsync, io.open
        flagged = renaming._flagged

        def renamed(source: Path, target: Path, how: str) -> bool:
            self.happens(how, source, target)
            return flagged(source, target, how)

        renaming._flagged = renamed
        os.open, os.fsync, io.open = self.open, self.fsync, self.open_file

    def _counted(self, name: str, really: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.happens(name, *arguments)
            return really(*arguments, **options)

        return counted

    def open(self, path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            self.happens("open", path)
        return self._really_open(path, flags, *rest, **options)

    def fsync(self, handle: int) -> None:
        self.happens("fsync", os.readlink(f"/proc/self/fd/{handle}"))
        self._really_sync(handle)
        self.unsynced.pop(os.fstat(handle).st_ino, None)

    def open_file(self, file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+"):
            return self._really_io(file, mode, *rest, **options)
        self.happens("open", file)
        return _Written(self._really_io(file, mode, *rest, **options), self)


class _Written:
    """A file being written: each write is two events, before it and in its middle."""

    def __init__(self, file: Any, events: Events) -> None:
        self._file, self._events = file, events
        handle = os.dup(file.fileno())
        self._events.unsynced[os.fstat(handle).st_ino] = handle

    def write(self, content: Any) -> int:
        half = len(content) // 2
        self._events.happens("write", self._file.name)
        self._file.write(content[:half])
        self._file.flush()
        self._events.happens("write", self._file.name)
        self._file.write(content[half:])
        self._file.flush()
        return len(content)

    def __enter__(self) -> _Written:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def ended_at(last: int, work: Callable[[], Any]) -> bool:
    """Do the work in a forked process that ends at its change number ``last``; False if it has fewer, and was done."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            Events(last).install()
            work()
        except BaseException:  # noqa: BLE001  whatever it is, this process must not go on as a second test run
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(FAILED)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, ENDED), f"the work failed, with {code}"
    return code == ENDED


def replay(prepare: Callable[[], None], work: Callable[[], Any], check: Callable[[bool], None]) -> int:
    """End the work at each of its changes in turn; the number of crash points.

    After each, ``check(False)`` looks at what is there; then the work is done again, and ``check(True)`` looks at the result.
    """
    points = 0
    while True:
        prepare()
        ended = ended_at(points, work)
        check(not ended)
        if not ended:
            return points
        points += 1
        work()
        check(True)
