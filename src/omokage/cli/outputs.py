"""The outputs of a command: held from its start to its end, and checked before any work is done."""

from __future__ import annotations

from pathlib import Path

import typer

from ..base.files import claimed


def hold(context: typer.Context, *outputs: Path | None) -> None:
    """Let no other run write these until the command ends; refused at once if one is being written already."""
    for output in outputs:
        if output is not None:
            context.with_resource(claimed(output))
