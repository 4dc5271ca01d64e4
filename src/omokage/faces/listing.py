"""Which photos there are, and whom they show.

A file system lets a name hold anything: bytes that are no text, line breaks, escape codes. Keys, lists and tables hold names
that are escaped (``\\xe9``), the same name always the same way and no two alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.plain import plain
from ..errors import InputError
from .image import SUFFIXES
from .photo_table import read_photo_table


@dataclass(frozen=True)
class Photo:
    """A photo of a folder: its file, its name relative to the folder (escaped), and whom it shows, if that is known."""

    path: Path
    name: str
    person: str | None = None


def list_photos(folder: Path, person_from: str | None = None, table: Path | None = None) -> list[Photo]:
    """All photos below a folder, by name.

    Parameters
    ----------
    folder : Path
        Searched recursively; hidden files and folders and other suffixes are passed over. A link to a photo counts as
        that photo, a link to a folder is not followed. What cannot be read is found out when it is.
    person_from : {None, "folder", "csv"}
        None takes every photo for a different person; "folder" takes the folder right above the photo for the person;
        "csv" reads them from ``table``, whose columns are ``photo`` (or ``image``, ``file``) and ``person`` (or
        ``identity``).
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if person_from not in (None, "folder", "csv"):
        raise InputError(f"persons are taken from 'folder' or 'csv', not from {person_from!r}")
    if (person_from == "csv") != (table is not None):
        raise InputError("--person-from csv needs the table in --persons, and the table needs --person-from csv")
    found = {escaped(name): folder / name for name in _names(folder)}
    names = sorted(found)
    if not names:
        raise InputError(f"{folder} holds no photos: {', '.join(sorted(SUFFIXES))} are looked for")
    if table is not None:
        whom = read_photo_table(table).persons()
        unknown = sum(name not in whom for name in names)
        if unknown:
            raise InputError(f"{table.name} does not say whom {unknown} of {len(names)} photos show: add them, or move them away")
        return [Photo(found[name], name, whom[name]) for name in names]
    if person_from == "folder":
        alone = sum("/" not in name for name in names)
        if alone:
            raise InputError(f"{alone} photos lie in no person's folder: with --person-from folder every person has one")
        return [Photo(found[name], name, name.rsplit("/", 1)[0]) for name in names]
    return [Photo(found[name], name) for name in names]


def escaped(name: str) -> str:
    """A file's name as printable text, by escapes that tell any two names apart.

    Examples
    --------
    >>> escaped("Müller.jpg"), escaped("M\\udcfcller.jpg"), escaped("a\\n\\x1b.jpg"), escaped("a\\\\n.jpg")
    ('Müller.jpg', 'M\\\\xfcller.jpg', 'a\\\\x0a\\\\x1b.jpg', 'a\\\\\\\\n.jpg')
    """
    return "".join(c if c != "\\" and plain(c) == c else _escape(c) for c in name)


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no text
        code -= 0xDC00
    elif 0x80 <= code <= 0xFF:  # a control character: not the byte
        return f"\\u{code:04x}"
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _names(folder: Path) -> Iterator[str]:
    for above, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [each for each in folders if not each.startswith(".")]
        for name in files:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES:
                yield (Path(above) / name).relative_to(folder).as_posix()


def _refuse(error: OSError) -> None:
    raise InputError(f"a folder of the photos cannot be read ({error.strerror}): allow it, or move it away")
