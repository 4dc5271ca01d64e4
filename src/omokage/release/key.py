"""The secret link between input and release: what it holds, and the one way to read and write it.

Whoever has the key can undo the release. Its file also holds the seed and the key of the input's fingerprint, so that the
certificate need not. It belongs to one release, by the SHA-256 of that release's certificate.

Key and release are written in one transaction although they lie in two places. While a release is being replaced, the key's
file holds both keys, the new and the earlier one; a reader takes the one that belongs to the release that is there. So at
every moment, also after a crash, the key's file fits the release.
"""

from __future__ import annotations

import hmac
import json
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from ..base.files import write_whole
from ..base.matrix import Labels
from ..base.plain import plain
from ..base.reading import read_regular
from ..errors import InputError, OutputError

FORMAT: Literal["omokage-key/2"] = "omokage-key/2"
MOST_BYTES = 4 << 30

_STRICT = ConfigDict(extra="forbid", strict=True)
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Numbers = list[Annotated[int, Field(ge=-1, lt=2**53)]]


@dataclass(frozen=True)
class Faces:
    """What the key of a release of faces also holds: photo and released file of each record, and the photos left out."""

    photos: list[str]
    files: list[str]
    left_out: list[tuple[str, str]]

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Key:
    """The link of a release in memory.

    groups : the group of each input record (−1 where there are no groups). rows : its place in the release. persons : whose
    record it is, as a number. seed : of groupers, maps and the order. source : SHA-256 of the input's bytes, if it was a file.
    faces : for a release of faces, its photos and files.
    """

    groups: Labels
    rows: Labels
    persons: Labels | None = None
    seed: int | None = None
    source: str | None = None
    faces: Faces | None = None

    @classmethod
    def of(cls, labels: Labels | None, order: Labels, persons: Labels | None, seed: int, source: str | None = None) -> Key:
        """The key of records released in ``order``; without ``labels`` there are no groups."""
        rows = np.empty_like(order)
        rows[order] = np.arange(len(order))
        return cls(np.full(len(order), -1) if labels is None else labels, rows, persons, seed, source)

    def persons_by_row(self) -> Labels | None:
        """Whose record each released one is."""
        if self.persons is None:
            return None
        by_row = np.empty_like(self.persons)
        by_row[self.rows] = self.persons
        return by_row


@dataclass(frozen=True)
class Written:
    """A key as it is written."""

    release: _Digest
    groups: _Numbers
    rows: _Numbers
    persons: _Numbers | None
    seed: Annotated[int, Field(ge=0, lt=2**64)] | None
    fingerprint_key: _Digest | None
    faces: Faces | None = None

    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        n = len(self.rows)
        sound = len(self.groups) == n and sorted(self.rows) == list(range(n))
        sound &= self.persons is None or len(self.persons) == n
        sound &= self.faces is None or len(self.faces.photos) == len(self.faces.files) == n
        if not sound:
            raise ValueError("a key links every record once")

    @property
    def place(self) -> Labels:
        """The released place of each input record."""
        return np.array(self.rows, np.int64)

    def persons_by_row(self) -> Labels | None:
        """Whose record each released one is."""
        return Key(self.place, self.place, None if self.persons is None else np.array(self.persons, np.int64)).persons_by_row()

    def fits(self, source: str | None, fingerprint: str | None) -> bool:
        """Whether the certificate's fingerprint is that of an input with the SHA-256 ``source``."""
        if self.fingerprint_key is None or fingerprint is None or source is None:
            return self.fingerprint_key is None and fingerprint is None
        return hmac.compare_digest(fingerprint_of(self.fingerprint_key, source), fingerprint)


@dataclass(frozen=True)
class _File:
    """The file: the key, whether its release is in place, and, until then, the key of the release that it replaces."""

    key: Written
    complete: bool
    earlier: Written | None = None
    format: Literal["omokage-key/2"] = FORMAT

    __pydantic_config__ = _STRICT


def new_fingerprint_key() -> str:
    return secrets.token_hex(32)


def fingerprint_of(key: str, source: str) -> str:
    """HMAC-SHA256 of the input's SHA-256 under a secret key."""
    return hmac.new(bytes.fromhex(key), bytes.fromhex(source), "sha256").hexdigest()


def written_key(key: Key, release: str, fingerprint_key: str | None) -> Written:
    """A key in memory as it is written, for the release whose certificate has the SHA-256 ``release``."""
    persons = None if key.persons is None else key.persons.tolist()
    return Written(release, key.groups.tolist(), key.rows.tolist(), persons, key.seed, fingerprint_key, key.faces)


def read_key(path: Path, release: str) -> Written:
    """The key in the file ``path`` that belongs to the release whose certificate has the SHA-256 ``release``."""
    file = _parsed(path)
    for key in (file.key, file.earlier):
        if key is not None and hmac.compare_digest(key.release, release):
            return key
    raise InputError(f"{plain(path.name)} is not the key of this release: give the one that was written with it")


def require_key_place(path: Path, target: Path, overwrite: bool) -> None:
    """Refuse a place that a key must not be written to, before any work is done."""
    if target.resolve() in path.resolve().parents or target.resolve() == path.resolve():
        raise OutputError("the key undoes the release and must not lie in its folder: give it a place of its own")
    if not path.exists() and not path.is_symlink():
        return
    try:
        file = _parsed(path)
    except InputError:
        raise OutputError(f"{path} exists and is not a key that Omokage wrote: choose another place for the key") from None
    if not overwrite and (file.complete or file.earlier is not None):
        raise OutputError(f"{path} exists: give the key another place, or --overwrite")


class KeyTransaction:
    """Writes a key around the one step that puts its release in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new: Written | None = None
        self._earlier: Written | None = None
        self._there: bytes | None = None

    def begin(self, key: Written, standing: str | None) -> None:
        """The key to write; ``standing`` is the SHA-256 of the certificate that is in the release's place now, if any."""
        self._new = key
        self._there = read_regular(self.path, MOST_BYTES) if self.path.exists() else None
        if self._there is not None and standing is not None:
            with suppress(InputError):  # the key of another release, which --overwrite gives up
                self._earlier = read_key(self.path, standing)

    def before(self) -> None:
        """Both keys, so that whichever release is there has its own."""
        self._write(complete=False, earlier=self._earlier)

    def after(self) -> None:
        """The new key alone."""
        self._write(complete=True, earlier=None)

    def undo(self) -> None:
        """The key's file as it was, where the release could not be put in place."""
        if self._there is None:
            self.path.unlink(missing_ok=True)
        else:
            write_whole(self.path, self._there, private=True)

    def _write(self, *, complete: bool, earlier: Written | None) -> None:
        if self._new is None:
            raise OutputError("no key was begun")
        file = _File(self._new, complete, earlier)
        write_whole(self.path, (json.dumps({"format": file.format, **asdict(file)}) + "\n").encode(), private=True)


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[_File]:
    return TypeAdapter(_File)


def _parsed(path: Path) -> _File:
    content = read_regular(path, MOST_BYTES)
    try:
        return _adapter().validate_json(content)
    except ValidationError:
        raise InputError(f"{plain(path.name)} cannot be read as a key: give the file that --key wrote") from None
