"""The gate that every release passes before it is published: what do its bytes say around the values?

An attacker reads more than cells. So all that was written is looked at as one would: is a value that was not released in any
byte of any file, also in the metadata and the unpacked buffers of Parquet, Feather or NumPy files? Does a row hold its own
identifier in another column? Does the order of rows, of text in the buffers, of inodes or of change times follow the input's?
Values of fewer than six bytes cannot be told from other bytes and are not searched, nor are those that at least k people have:
they tell nothing of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau, norm, poisson

from ..base.matrix import Labels
from ..base.plain import plain
from ..base.search import WINDOW, Strings
from ..errors import VerificationError
from ..tables.containers import raw_parts
from .certificate import Around, Column

FEWEST = 13  # records whose order can show anything: 13! > 10⁹
SURE = 1e-9  # an order that chance gives more rarely is taken for the input's
_SAMPLE = 4096  # texts whose places in the buffers are compared
_PICTURE_WINDOW = 8  # bytes of a name that is searched in compressed pictures, where six appear by chance


@dataclass(frozen=True)
class Hidden:
    """What must not be seen: columns as text and in the input's order, and whose row each is.

    columns : those that are not released. unified : text that is released only as what its group became.
    """

    columns: pl.DataFrame
    unified: pl.DataFrame = field(default_factory=pl.DataFrame)
    persons: Labels | None = None

    def rare(self, columns: pl.DataFrame, k: int) -> dict[str, pl.Series]:
        """Each column with only those values left that fewer than k people have and that are long enough to be searched."""
        people = pl.Series(np.arange(columns.height) if self.persons is None else self.persons)
        out = {}
        for column in columns.iter_columns():
            few = pl.DataFrame({"value": column, "who": people}).select(pl.col("who").n_unique().over("value") < k).to_series()
            long = column.str.len_bytes() >= WINDOW
            out[column.name] = pl.select(pl.when(few & long).then(column)).to_series()
        return out


def inspect_table(
    file: Path, written: pl.DataFrame, columns: Sequence[Column], hidden: Hidden, place: Labels, k: int, notes: Sequence[str]
) -> Around:
    """Look at a written table as an attacker; ``place`` is the released row of each input row.

    Raises
    ------
    VerificationError
        If anything shows. The message names columns and counts, never a value.
    """
    rare = hidden.rare(hidden.columns, k)
    _require_not_repeated(written, rare, place)
    unseen = [*rare.values(), *hidden.rare(hidden.unified, k).values()]
    strings = Strings(value.encode() for column in unseen for value in column.drop_nulls().unique())
    cells = b"\0".join(text.encode() for column in written.iter_columns() for text in _texts(column).unique().drop_nulls())
    elsewhere = {string for _, string in strings.found_in(cells)}  # another row's cell, by coincidence
    _require_absent(strings, "the names of columns", "\0".join([*(c.name for c in columns), *notes]).encode())
    nowhere = Strings(strings.strings - elsewhere)
    parts = list(raw_parts(file))
    for name, content in parts:
        _require_absent(nowhere, "the bytes of the file" if name == "file" else f"the bytes of its {plain(name)}", content)
    orders = ["rows"] if _followed(place, "rows") else []
    if _buffers_followed(parts, written, columns, place):
        orders.append("buffers")
    return Around(len(strings), sum(len(content) for _, content in parts), tuple(orders))  # type: ignore[arg-type]


def inspect_pictures(folder: Path, names: Sequence[str], hidden: Iterable[str]) -> Around:
    """Look at written pictures as an attacker; ``names`` are the files in the order of the photos they were made from."""
    strings = Strings(
        text.encode("utf-8", "replace") for text in set(hidden) if len(text.encode("utf-8", "replace")) >= _PICTURE_WINDOW
    )
    searched, seen = 0, set()
    for name in sorted(names):
        content = (folder / name).read_bytes()
        searched += len(content)
        if content not in seen:
            seen.add(content)
            _require_absent(strings, "a picture's bytes", content)
    states = [os.lstat(folder / name) for name in names]
    orders = []
    for what, values in (("inodes", [s.st_ino for s in states]), ("change times", [s.st_ctime_ns for s in states])):
        if _followed(_ranks(values), what):
            orders.append(what)
    return Around(len(strings), searched, tuple(orders))  # type: ignore[arg-type]


def _texts(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.String else column.cast(pl.String)


def _require_not_repeated(written: pl.DataFrame, rare: dict[str, pl.Series], place: Labels) -> None:
    """No row may hold its own value of a column that is not released."""
    for name, values in rare.items():
        if values.null_count() == len(values):
            continue
        for column in written.iter_columns():
            own = _texts(column).gather(place)  # in the input's order
            both = pl.DataFrame({"cell": own, "value": values})
            rows = int(both.select(pl.col("cell").str.contains(pl.col("value"), literal=True, strict=False).sum()).item() or 0)
            if rows:
                raise VerificationError(
                    f"column {plain(column.name)!r} holds, in {rows} rows, the row's own value of {plain(name)!r}, which "
                    f"is not released: take it out, or make {plain(column.name)!r} an identifier too; nothing was released"
                )


def _require_absent(strings: Strings, where: str, content: bytes) -> None:
    if next(strings.found_in(content), None) is not None:
        raise VerificationError(
            f"{where} hold a value that fewer than k people have and that is not released: nothing was released"
        )


def _buffers_followed(
    parts: Sequence[tuple[str, bytes]], written: pl.DataFrame, columns: Sequence[Column], place: Labels
) -> bool:
    """Whether there was text to compare: the places of the rows' own texts in each part of the file, with the input's order."""
    compared = False
    for column in columns:
        texts = _texts(written[column.name]) if column.role != "quasi" else pl.Series([], dtype=pl.String)
        once = texts.filter(texts.is_unique() & (texts.str.len_bytes() >= WINDOW))[:_SAMPLE] if len(texts) else texts
        if len(once) < FEWEST:
            continue
        source = np.empty_like(place)
        source[place] = np.arange(len(place))  # the input row of each released row
        row_of = dict(zip(texts.to_list(), range(len(texts)), strict=True))
        strings = Strings(text.encode() for text in once)
        for name, content in parts:
            first: dict[bytes, int] = {}
            for at, string in strings.found_in(content):
                first.setdefault(string, at)
            if len(first) >= FEWEST:
                by_input = sorted(first, key=lambda string: int(source[row_of[string.decode()]]))
                compared |= _followed(
                    _ranks([first[string] for string in by_input]),
                    "the text in the file" + ("" if name == "file" else f" ({plain(name)})"),
                )
    return compared


def _ranks(values: Sequence[int]) -> Labels:
    """Place of each value among all; equal ones in an order of chance's, so that ties show nothing."""
    chance = np.random.default_rng(0).permutation(len(values))
    ranks = np.empty(len(values), np.int64)
    ranks[np.lexsort((chance, np.asarray(values)))] = np.arange(len(values))
    return ranks


def _followed(place: Labels, what: str) -> bool:
    """Whether the order was compared; refuses one that follows the input's, forwards, backwards or in stretches."""
    if len(place) < FEWEST:
        return False
    if min(chances(place)) < SURE:
        raise VerificationError(f"the order of {what} follows that of the input: nothing was released; try again")
    return True


def chances(place: Labels) -> tuple[float, float]:
    """How likely chance would give an order this near to the input's: over all, and in neighbours that stay neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> [chance < 1e-9 for chance in chances(np.arange(24))]
    [True, True]
    >>> [chance < 1e-9 for chance in chances(np.random.default_rng(0).permutation(24))]
    [False, False]
    """
    n = len(place)
    if n <= 1000:
        trend = float(kendalltau(np.arange(n), place).pvalue)
    else:
        centred = (place - (n - 1) / 2) @ (np.arange(n) - (n - 1) / 2) / (n * (n**2 - 1) / 12)  # Spearman's ρ
        trend = float(2 * norm.sf(abs(centred) * np.sqrt(n - 1)))
    neighbours = int((np.abs(np.diff(place)) == 1).sum())  # about Poisson with mean 2
    return trend, float(poisson.sf(neighbours - 1, 2))


def files_of(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a folder, by its path there; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        yield entry.name, entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield from ((f"{entry.name}/{name}", state) for name, state in files_of(folder / entry.name))
