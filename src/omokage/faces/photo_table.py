"""A table about photos, read in one way: whom they show, or what labels they have.

A CSV with a column that names the photos, or CelebA's own ``list_attr_celeba.txt``: its number of images, the names of the
labels, then a line for each image.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

PHOTO = ("photo", "image", "image_id", "file")
PERSON = ("person", "identity")
_LABELS = {"1": 1.0, "0": 0.0, "-1": 0.0}
_NOT_LABELS = {*PERSON, "partition"}


@dataclass(frozen=True)
class PhotoTable:
    """What a table says of each photo: its columns as text."""

    file: str
    photos: tuple[str, ...]
    columns: dict[str, list[str]]

    def persons(self) -> dict[str, str]:
        """Whom each photo shows."""
        column = next((name for name in PERSON if name in self.columns), None)
        if column is None:
            raise InputError(f"{self.file} does not say whom the photos show: add a column person (or identity)")
        if not all(self.columns[column]):
            raise InputError(f"{self.file} has empty cells in the column {column}: name a person in each")
        return dict(zip(self.photos, self.columns[column], strict=True))

    def labels(self) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """The names of the labels, and 0 or 1 for each photo and label: the columns that hold −1 and 1, or 0 and 1."""
        names = [name for name, cells in self.columns.items() if name not in _NOT_LABELS and any(c in _LABELS for c in cells)]
        if not names:
            raise InputError(f"{self.file} has no column of labels: they hold −1 and 1, or 0 and 1")
        for name in names:
            wrong = next((line for line, cell in enumerate(self.columns[name], 1) if cell not in _LABELS), None)
            if wrong is not None:
                raise InputError(f"the label {name!r} of {self.file} is neither −1 nor 0 nor 1 for photo {wrong}: correct it")
        values = [[_LABELS[cell] for cell in self.columns[name]] for name in names]
        return tuple(names), np.array(values, np.float32).T

    def rows_of(self, photos: Sequence[str]) -> list[int]:
        """The place of each of these photos in the table."""
        place = {name: row for row, name in enumerate(self.photos)}
        missing = sum(photo not in place for photo in photos)
        if missing:
            raise InputError(f"{self.file} says nothing of {missing} of {len(photos)} photos: add them")
        return [place[photo] for photo in photos]


def read_photo_table(path: Path) -> PhotoTable:
    """Read a table about photos; a damaged one, or one that names a photo twice, is refused."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path.name} cannot be read as a table in UTF-8") from None
    if lines and lines[0].strip().isdigit():
        rows = [["image", *lines[1].split()] if len(lines) > 1 else ["image"], *(line.split() for line in lines[2:])]
        if int(lines[0]) != len(rows) - 1:
            raise InputError(f"{path.name} says that it lists {int(lines[0])} images, but it lists {len(rows) - 1}")
    else:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    return _checked(rows, path.name)


def _checked(rows: list[list[str]], file: str) -> PhotoTable:
    header = rows[0] if rows else []
    at = next((header.index(name) for name in PHOTO if name in header), None)
    if at is None:
        raise InputError(f"{file} has no column of photos: call it {', '.join(PHOTO[:-1])} or {PHOTO[-1]} in the first line")
    if len(set(header)) < len(header):
        raise InputError(f"{file} names a column twice: give each another name")
    if len(rows) < 2:
        raise InputError(f"{file} lists no photo")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(f"{file} has {len(header)} columns, but {len(row)} fields in line {number}")
    photos = tuple(row[at] for row in rows[1:])
    if not all(photos):
        raise InputError(f"{file} has empty cells in the column {header[at]}: name a photo in each")
    if len(set(photos)) < len(photos):
        raise InputError(f"{file} names the same photo more than once: keep one line for each")
    columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(header) if i != at}
    return PhotoTable(file, photos, columns)
