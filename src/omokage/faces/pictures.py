"""Released pictures: in memory, written into a stage, and read back from their bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..base.matrix import Labels
from ..errors import PhotoError, VerificationError
from ..release.certificate import Certificate
from ..release.contents import Contents
from ..release.counting import count
from ..release.key import Key
from ..release.medium import Filled
from .image import Picture, decoded
from .leaks import inspect_pictures

FOLDER = "faces"


class Pictures(Sequence[Picture]):
    """Released pictures in their released order, decoded when they are asked for; ``keep`` owns the files."""

    def __init__(self, files: Sequence[Path], keep: Any = None) -> None:
        self.files = files
        self._keep = keep

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, at: int) -> Picture: ...
    @overload
    def __getitem__(self, at: slice) -> Pictures: ...
    def __getitem__(self, at: int | slice) -> Picture | Pictures:
        return Pictures(self.files[at], self._keep) if isinstance(at, slice) else decoded(self.files[at].read_bytes())


@dataclass(frozen=True)
class PictureWriter:
    """Writes released pictures under their names, which are sorted. ``hidden`` is what none of their bytes may hold."""

    pictures: Pictures
    names: Sequence[str]
    hidden: set[str]

    def fill(self, stage: Path, certificate: Certificate, key: Key) -> Filled:
        """Write every picture, read all back, count, and look at the files as an attacker would."""
        folder = stage / FOLDER
        folder.mkdir()
        for name, file in zip(self.names, self.pictures.files, strict=True):  # inodes and times then follow the names
            (folder / name).write_bytes(file.read_bytes())
        contents, faces = Contents(stage), key.faces
        if faces is None:
            raise VerificationError("the key of a release of faces must name its files")
        different: dict[str, bytes] = {}

        def written() -> Iterator[bytes]:
            for name in self.names:
                content = contents.read(path := f"{FOLDER}/{name}")
                different.setdefault(contents.file(path).sha256, content)
                yield content

        found = count(_classes(written()), persons=key.persons_by_row())
        searched = sum(contents.file(f"{FOLDER}/{name}").bytes for name in self.names)
        around = inspect_pictures(folder, faces.files, different.values(), searched, self.hidden)
        return Filled(replace(certificate, found=found, around=around), key, contents)


def classes_of_written(contents: Contents, paths: Sequence[str]) -> Labels:
    """A number for each written picture by name, equal where the decoded pixels are the same."""
    return _classes(contents.read(path) for path in sorted(paths))


def classes_of_files(files: Sequence[Path]) -> Labels:
    """The same for files of which many are one and the same."""
    different = sorted(set(files))
    number = dict(zip(different, _classes(file.read_bytes() for file in different).tolist(), strict=True))
    return np.array([number[file] for file in files], np.int64)


def _classes(contents: Iterable[bytes]) -> Labels:
    seen: dict[bytes, int] = {}
    known: dict[bytes, int] = {}  # the same bytes need not be decoded again
    classes = []
    for content in contents:
        digest = hashlib.sha256(content).digest()
        if digest not in known:
            try:
                pixels = decoded(content)
            except PhotoError as error:
                raise VerificationError(f"a written picture does not hold: {error}") from None
            mark = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).digest()
            known[digest] = seen.setdefault(mark, len(seen))
        classes.append(known[digest])
    return np.array(classes, np.int64)
