"""The command line. Each command is a module; errors the user can fix become one sentence and exit code 2."""

from __future__ import annotations

import os
import sys

import typer

from ..base.compiling import announce
from ..base.plain import plain
from ..errors import OmokageError
from . import compare, demo, evaluate, faces, learn, models, photo, table, verify
from .console import err

# Read when scikit-learn's threads start: on shared cores, waiting busily for each other makes boosting several times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

app = typer.Typer(
    name="omokage",
    help="Anonymize wide tables and face photos, judge what was released, and learn networks that may be given away.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (table, faces, photo, verify, evaluate, compare, learn, models, demo):
    command.register(app)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        from .. import __version__

        typer.echo(f"omokage {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 0, with 1 where a check failed, and with 2 where the input is wrong."""
    announce(lambda what: err.print(f"          {what}"))
    try:
        app(args=arguments)
    except OmokageError as error:
        _say(str(error))
        sys.exit(2)
    except MemoryError:
        _say("the memory is not enough for these data: take fewer rows, or a map with fewer components")
        sys.exit(2)


def _say(message: str) -> None:
    typer.echo(f"omokage: {plain(message)}", err=True)
