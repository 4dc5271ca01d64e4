"""Everything Omokage raises on purpose.

    OmokageError
    ├── InputError            something you gave cannot be used: a file, a column, a value, a parameter
    │   ├── TableError            a table that cannot be read, or a column that does not fit its role
    │   ├── PhotoError            a photo that cannot be used; the caller names the file
    │   └── MapError              a map that cannot take these data, or cannot map back
    ├── NotEnoughPeople       k, l or t cannot be reached with these rows
    ├── OutputError           the output cannot be written: it exists, the disk is full, it is not ours to replace
    ├── ModelError            a network cannot be fetched, or does not match the published hash
    ├── VerificationError     a written release does not match its certificate
    └── MissingExtra          an optional dependency is not installed; the message says how to install it

A message says *what is wrong: what to do*. It never contains a cell of the input: it may name columns, counts and row numbers.
docs/reference/errors.md explains each class.
"""

from __future__ import annotations


class OmokageError(Exception):
    """Base of all errors that you can fix; the command line prints the message and exits with 2."""


class InputError(OmokageError, ValueError):
    """Something you gave cannot be used."""


class TableError(InputError):
    """A table cannot be read, or a column does not fit its role."""


class PhotoError(InputError):
    """A photo cannot be used."""


class MapError(InputError):
    """A map cannot take these data, or cannot map back."""


class NotEnoughPeople(OmokageError, ValueError):
    """The promise cannot be kept with so few rows or people."""


class OutputError(OmokageError, OSError):
    """The output cannot be written."""


class VerificationError(OmokageError):
    """A written release does not match its certificate."""


class ModelError(OmokageError):
    """A network cannot be fetched, or does not match the published hash."""


class MissingExtra(OmokageError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; run: pip install 'omokage[{extra}]'")
