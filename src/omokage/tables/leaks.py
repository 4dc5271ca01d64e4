"""What a written table says around its values: hidden cells in any byte, rows that hold their own identifier, and orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from ..base.matrix import Labels
from ..base.plain import plain
from ..base.search import WINDOW, Strings
from ..errors import VerificationError
from ..release.certificate import Around, Column
from ..release.leaks import FEWEST, followed, ranks, require_absent
from .containers import raw_parts

_SAMPLE = 4096  # texts whose places in the buffers are compared


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
    name: str,
    content: bytes,
    written: pl.DataFrame,
    columns: Sequence[Column],
    hidden: Hidden,
    place: Labels,
    k: int,
    notes: Sequence[str],
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
    require_absent(strings, "the names of columns", "\0".join([*(c.name for c in columns), *notes]).encode())
    nowhere = Strings(strings.strings - elsewhere)
    parts = list(raw_parts(name, content))
    for part, inside in parts:
        require_absent(nowhere, "the bytes of the file" if part == "file" else f"the bytes of its {plain(part)}", inside)
    orders = ["rows"] if followed(place, "rows") else []
    if _buffers_followed(parts, written, columns, place):
        orders.append("buffers")
    return Around(len(strings), sum(len(inside) for _, inside in parts), tuple(orders))  # type: ignore[arg-type]


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
                compared |= followed(
                    ranks([first[string] for string in by_input]),
                    "the text in the file" + ("" if name == "file" else f" ({plain(name)})"),
                )
    return compared
