"""Which photos there are, and whom they show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..errors import InputError
from ..faces.image import SUFFIXES


@dataclass(frozen=True)
class Photo:
    """A photo of a folder: its file, its name relative to the folder, and whom it shows, if that is known."""

    path: Path
    name: str
    person: str | None = None


def list_photos(folder: Path, person_from: str | None = None, table: Path | None = None) -> list[Photo]:
    """All photos below a folder, by name.

    Parameters
    ----------
    folder : Path
        Searched recursively; hidden files and folders and other kinds of file are passed over.
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
    names = sorted(_names(folder))
    if not names:
        raise InputError(f"{folder} holds no photos: {', '.join(sorted(SUFFIXES))} are looked for")
    if table is not None:
        whom = _persons(table)
        unknown = sum(name not in whom for name in names)
        if unknown:
            raise InputError(f"{table.name} does not say whom {unknown} of {len(names)} photos show: add them, or move them away")
        return [Photo(folder / name, name, whom[name]) for name in names]
    if person_from == "folder":
        alone = sum("/" not in name for name in names)
        if alone:
            raise InputError(f"{alone} photos lie in no person's folder: with --person-from folder every person has one")
        return [Photo(folder / name, name, name.rsplit("/", 1)[0]) for name in names]
    return [Photo(folder / name, name) for name in names]


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.suffix.lower() in SUFFIXES and path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()


def _persons(table: Path) -> dict[str, str]:
    try:
        frame = pl.read_csv(table, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(f"{table} cannot be read as a CSV file") from None
    photo = next((c for c in ("photo", "image", "file") if c in frame.columns), None)
    person = next((c for c in ("person", "identity") if c in frame.columns), None)
    if photo is None or person is None:
        raise InputError(f"{table.name} needs the columns photo (or image, file) and person (or identity)")
    if frame[person].null_count() or frame[photo].null_count():
        raise InputError(f"{table.name} has empty cells in the columns {photo} or {person}")
    if frame[photo].n_unique() < len(frame):
        raise InputError(f"{table.name} names the same photo more than once")
    return dict(zip(frame[photo].to_list(), frame[person].to_list(), strict=True))
