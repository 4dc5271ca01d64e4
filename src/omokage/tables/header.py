"""The names of a table's columns, and whether they are names at all: the first line of a file may be a person.

A file without a header would publish its first person as column names. No rule tells names from cells for certain, so
the check is strict and the user can overrule it; its error never quotes a name.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

import polars as pl

from ..errors import TableError

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?$|^\d{4}[-/]\d{1,2}$|^\d{1,2}:\d{2}(:\d{2})?$"
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")  # e-mail, UUID
LONG_RUN, SHORT_RUN = 5, 3  # numbers in even steps: by chance once in thousands of rows, once in dozens
LINES = 20  # that show the separator
LOOKED_AT = 1000  # cells whose form is compared with the name's


def header_of(file: str, content: bytes, separator: str) -> list[str]:
    """The cells of the first line; an empty one is named by its place."""
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    try:
        names = next(csv.reader(text, delimiter=separator))
    except UnicodeDecodeError:
        raise TableError(f"{file} is not text in UTF-8: save it as UTF-8") from None
    except (csv.Error, StopIteration):
        raise TableError(f"{file} cannot be read as a table: its first line is damaged") from None
    return usable(file, [name if name.strip() else f"column_{j}" for j, name in enumerate(names, 1)])


def separator_of(content: bytes) -> str:
    """Comma, semicolon or tab: the one that cuts the first lines into most cells, each line into as many.

    Examples
    --------
    >>> separator_of(b"weight;height\\n61,5;170\\n"), separator_of(b"a;b,c\\n1,2\\n")
    (';', ',')
    """
    lines = b"\n".join(content.split(b"\n", LINES)[:LINES]).decode("utf-8", "replace")
    best = (False, 0, ",")
    for separator in (",", ";", "\t"):
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(lines, newline=""), delimiter=separator) if row]
        except csv.Error:
            continue
        widths = widths[:-1] if len(widths) > 2 else widths  # the last may be cut within quotes
        if max(widths[1:] or widths, default=1) > 1:  # one that no row has is part of a name
            best = max(best, (len(set(widths)) == 1, widths[0], separator), key=lambda found: found[:2])
    return best[2]


def usable(file: str, names: Sequence[str]) -> list[str]:
    """The names, if no two are the same and none is a pattern."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        places = [str(j) for j, name in enumerate(names, 1) if name == twice[0]]
        raise TableError(
            f"{file} has {len(twice)} column names twice (columns {', '.join(places[:3])} have the same): rename them, or, if "
            "the file has no header, use --no-header or --names"
        )
    for j, name in enumerate(names, 1):
        if name.startswith("^") and name.endswith("$"):  # Polars would look for the columns that it matches
            raise TableError(f"{file}: the name of column {j} begins with ^ and ends with $, as a pattern does: rename it")
    return list(names)


def given_names(file: str, names: Sequence[str], width: int) -> list[str]:
    """Names that the user gives, one for each column."""
    if isinstance(names, str):
        raise TableError('names must be a list of column names, such as ["age", "sex"], not a string')
    if len(names) != width:
        raise TableError(f"{file} has {width} columns, but {len(names)} names were given: give one for each column")
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise TableError("a column name that was given is empty: give a name for each column")
    return usable(file, [name.strip() for name in names])


def require_header(file: str, frame: pl.DataFrame, numeric: Collection[str]) -> None:
    """Refuse a CSV if one of its names is a number, a date, an address or a value of its own column.

    The frame holds text; ``numeric`` are the columns that are numbers all through, where only a number can be a value.
    """
    cells = _cells(frame, numeric)
    if cells:
        raise TableError(
            f"{file}: {len(cells)} of {frame.width} column names (the first is that of column {cells[0]}) are numbers, dates or "
            "values of their own column, so the first line seems to be a person and not a header: use --no-header "
            "(header=False) or --names a,b,… (names=[…]); if it is the header, use --header (header=True)"
        )


def require_names(what: str, frame: pl.DataFrame) -> None:
    """Refuse a frame that was made from a file without a header: most names are cells, and one is a value of its own column."""
    if not all(name.strip() for name in usable(what, frame.columns)):
        raise TableError(f"{what} has a column without a name: name it")
    cells = _cells(frame)
    if 2 * len(cells) > frame.width and any(_is_cell(name, frame[name]) for name in frame.columns):
        raise TableError(
            f"{what}: {len(cells)} of {frame.width} column names (the first is that of column {cells[0]}) are numbers, dates or "
            "values of their own column, so they seem to be a person: rename the columns, or read the file that they come "
            "from as one without a header"
        )


def _cells(frame: pl.DataFrame, numeric: Collection[str] = ()) -> list[int]:
    """Places of the columns whose names look like cells."""
    own = {j for j, name in enumerate(frame.columns, 1) if name not in numeric and _is_cell(name, frame[name])}
    return sorted((own | _numbers(frame) | _dates(frame)) - _run(frame))


def _is_cell(name: str, column: pl.Series) -> bool:
    name = name.strip()
    if column.dtype != pl.String or not name:
        return False
    if ADDRESS.fullmatch(name):
        return True
    bare = column.str.strip_chars()
    return bool((bare == name).any()) or _of_one_form(name, bare)


def _of_one_form(name: str, column: pl.Series) -> bool:
    """Whether a name with digits in it is built like each cell of its column: P0017 among P0001, P0002 …"""
    some = column.drop_nulls().head(LOOKED_AT)
    if len(some) < 3 or not any(c.isdigit() for c in name) or name.isdigit():
        return False
    forms = some.str.replace_all(r"\p{Lu}", "A").str.replace_all(r"\p{Ll}", "a").str.replace_all(r"\p{Nd}", "9")
    form = "".join("A" if c.isupper() else "a" if c.islower() else "9" if c.isdigit() else c for c in name)
    return bool((forms == form).all())


def _numbers(frame: pl.DataFrame) -> set[int]:
    return {j for j, name in enumerate(frame.columns, 1) if NUMBER.fullmatch(name.strip())}


def _dates(frame: pl.DataFrame) -> set[int]:
    """Names that are dates; three or more over cells that are none are the header of a time series."""
    dated = {j for j, name in enumerate(frame.columns, 1) if re.search(DATE, name.strip())}
    if len(dated) < SHORT_RUN:
        return dated
    return {j for j in dated if frame.to_series(j - 1).head(LOOKED_AT).cast(pl.String).str.contains(DATE).any()}


def _run(frame: pl.DataFrame) -> set[int]:
    """Columns whose names are numbers in even steps (0, 1, 2, … or 1990, 1995, …), as programs and time series have them."""
    places = sorted(_numbers(frame))
    values = [float(frame.columns[j - 1]) for j in places]
    if len(values) < SHORT_RUN:
        return set()
    step = values[1] - values[0]
    even = step > 0 and all(abs(b - a - step) <= 1e-6 * step for a, b in pairwise(values))
    if not even or (len(values) < LONG_RUN and any(_is_cell(frame.columns[j - 1], frame.to_series(j - 1)) for j in places)):
        return set()
    return set(places)
