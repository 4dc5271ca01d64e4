"""The outputs of a command: held from its start to its end, and never one of its inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import typer

from ..base.files import claimed, require_apart
from ..errors import OutputError


def hold(context: typer.Context, *outputs: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Let no other run write these until the command ends; refused at once if one is being written, or is an input."""
    given = [output for output in outputs if output is not None]
    if len({os.path.realpath(output) for output in given}) < len(given):
        raise OutputError(f"two outputs of this command have the same place, {given[0]}: choose another for one of them")
    for output in given:
        require_apart(output, *inputs)
        context.with_resource(claimed(output))
