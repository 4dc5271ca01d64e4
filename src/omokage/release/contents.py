"""The files of a release, each read once: whoever asks gets the bytes, and their size and hash are kept."""

from __future__ import annotations

from pathlib import Path

from ..base.reading import read_regular
from .certificate import File

_MOST = 1 << 40


class Contents:
    """The files below a folder, by their path there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, File] = {}

    def read(self, path: str) -> bytes:
        """The bytes of a regular file; links and pipes are refused."""
        content = read_regular(self.folder / path, _MOST)
        self._files[path] = File.of(path, content)
        return content

    def file(self, path: str) -> File:
        """Size and hash of a file; it is read now if nobody has asked for it."""
        if path not in self._files:
            self.read(path)
        return self._files[path]
