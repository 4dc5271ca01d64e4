"""A released table written into a stage, and read back once: cells, rows alike, and what the bytes say around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ..release.certificate import Certificate
from ..release.contents import Contents
from ..release.key import Key
from ..release.medium import Filled
from ..release.rules import Constraint
from .counting import recount
from .leaks import Hidden, inspect_table
from .read import read_cells, table_of
from .table import Table
from .write import data_name, write_frame


@dataclass(frozen=True)
class TableWriter:
    """Writes a released table. ``hidden`` is what none of its bytes may hold; it is never written."""

    table: Table
    constraints: Sequence[Constraint]
    hidden: Hidden

    def fill(self, stage: Path, certificate: Certificate, key: Key) -> Filled:
        """Write the table, read it back, count it, and look at its bytes as an attacker would."""
        name, contents = data_name(self.table), Contents(stage)
        write_frame(self.table.frame, stage / name, self.table)
        content = contents.read(name)
        written = read_written(name, content)
        found = recount(written, certificate.columns, self.constraints, key.persons_by_row())
        around = inspect_table(
            name, content, written, certificate.columns, self.hidden, key.rows, certificate.k or 2, certificate.notes
        )
        return Filled(replace(certificate, found=found, around=around), key, contents)


def read_written(name: str, content: bytes) -> pl.DataFrame:
    """The cells of a written release: text for CSV and TSV, typed otherwise."""
    path = Path(name)
    if path.suffix in (".csv", ".tsv"):
        return read_cells(path, content)[0]
    return table_of(path, content, header=True).frame  # the release has been checked; its names are its own
