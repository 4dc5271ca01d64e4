"""Everything Omokage raises on purpose.

    OmokageError
    ├── InputError            what was given cannot be used: a file, a column, a value, a parameter
    │   ├── TableError            a table that cannot be read, or a column that does not fit its role
    │   ├── PhotoError            a photo that cannot be used; the caller names the file
    │   └── MapError              a map that cannot take these data, or has no way back
    ├── NotEnoughPeople       k, l or t cannot be reached with these rows
    ├── OutputError           the place to write to: it exists, is full, is not ours to replace
    ├── ModelError            a network cannot be fetched, or is not the one that was published
    ├── VerificationError     a written release does not hold what its certificate says
    └── MissingExtra          an optional part is not installed; the message says how to get it

A message says what was wrong, which rule it broke, which value broke it, and what to do. It never holds a cell of the
input: column names, counts and row numbers are all it may tell.
"""

from __future__ import annotations


class OmokageError(Exception):
    """Base of all errors that are the user's to mend; the command line prints the message and exits with 2."""


class InputError(OmokageError, ValueError):
    """Something given cannot be used."""


class TableError(InputError):
    """A table cannot be read, or a column does not fit its role."""


class PhotoError(InputError):
    """A photo cannot be used."""


class MapError(InputError):
    """A map cannot take these data, or has no way back."""


class NotEnoughPeople(OmokageError, ValueError):
    """The promise cannot be kept with the rows or persons given."""


class OutputError(OmokageError, OSError):
    """The output cannot be written."""


class VerificationError(OmokageError):
    """A written release does not hold what its certificate says."""


class ModelError(OmokageError):
    """A network cannot be fetched, or is not the one that was published."""


class MissingExtra(OmokageError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: pip install 'omokage[{extra}]'")
