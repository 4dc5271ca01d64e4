"""Text that a spreadsheet would run: cells that begin with =, +, −, @, a tab or a carriage return and are no numbers."""

from __future__ import annotations

import polars as pl

STARTS = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def formulas_in(column: pl.Series) -> pl.Series:
    """Whether each cell is text that a spreadsheet would take for a formula.

    Examples
    --------
    >>> import polars as pl
    >>> formulas_in(pl.Series(["=1+1", "-5", "-5*A1", "@x", "a=b", None])).to_list()
    [True, False, True, True, False, False]
    """
    if column.dtype != pl.String:
        return pl.repeat(False, len(column), eager=True)
    return (column.str.contains(STARTS) & ~column.str.contains(NUMBER)).fill_null(False)


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before each formula, which spreadsheets take as the sign of text."""
    out = {}
    for column in frame:
        found = formulas_in(column)
        out[column.name] = column.zip_with(~found, "'" + column) if found.any() else column
    return pl.DataFrame(out)


def formula_notes(frame: pl.DataFrame) -> list[str]:
    """What to be careful with before a CSV is opened in a spreadsheet."""
    notes = []
    for column in frame:
        cells = int(formulas_in(column).sum())
        if cells:
            notes.append(
                f"Column {column.name}: a spreadsheet would run {cells} {'cell' if cells == 1 else 'cells'} as formulas: import "
                "the file as text, or release it with --escape-formulas."
            )
    names = int(formulas_in(pl.Series(frame.columns, dtype=pl.String)).sum())
    if names:
        notes.append(
            f"A spreadsheet would run {names} column {'name' if names == 1 else 'names'} as formulas: rename them, or import the "
            "file as text."
        )
    return notes
