"""The command line. Each command is a module; errors the user can fix become one sentence and exit code 2."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from ..base.compiling import announce
from ..base.plain import plain
from ..errors import MissingExtra, OmokageError
from . import compare, demo, evaluate, faces, learn, models, photo, table, verify
from .console import err

# Read when scikit-learn's threads start: on shared cores, waiting busily for each other makes boosting several times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Of the command line's library: a wrong option, a missing one, a value of the wrong type. It has no public name there.
UsageError: type[Any] = typer.BadParameter.__bases__[0]

ANONYMIZE, JUDGE, LEARN, SET_UP = "Anonymize", "Check and judge", "Learn", "Set up"
COMMANDS = {
    "table": ANONYMIZE, "faces": ANONYMIZE, "photo": ANONYMIZE,
    "verify": JUDGE, "evaluate": JUDGE, "compare": JUDGE,
    "learn": LEARN, "audit": LEARN, "predict": LEARN,
    "demo": SET_UP, "models": SET_UP, "keygen": SET_UP,
}  # fmt: skip


class _Commands(TyperGroup):
    """The commands in the order in which people need them, a panel for each purpose."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *(name for name in self.commands if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            command.rich_help_panel = COMMANDS.get(cmd_name)  # type: ignore[attr-defined]
        return command


# What a base install does not have; modules of photos import theirs at once, for nothing in them works without.
_EXTRAS = {
    **dict.fromkeys(("cv2", "dlib", "onnxruntime", "PIL", "platformdirs", "safetensors", "torch"), "faces"),
    **dict.fromkeys(("jinja2", "matplotlib"), "report"),
    **dict.fromkeys(("pandas", "pyarrow"), "pandas"),
    **dict.fromkeys(("dp_accounting", "opendp"), "dp"),
}

app = typer.Typer(
    name="omokage",
    cls=_Commands,
    help="Anonymize wide tables and face photos, judge what was released, and train networks that you can give away.",
    epilog="Start here:\nomokage demo",
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
    for stream in (sys.stdout, sys.stderr):  # "?" for a sign that a terminal or a Windows pipe cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    announce(lambda what: err.print(f"          {what}"))
    try:
        code = app(args=arguments, prog_name="omokage", standalone_mode=False)
    except UsageError as error:
        _say_usage(error)
        sys.exit(2)
    except OmokageError as error:
        _say(str(error))
        sys.exit(2)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        _say(str(MissingExtra("what this command needs", extra)))
        sys.exit(2)
    except MemoryError:
        _say("the memory is not enough for these data: take fewer rows, or a map with fewer components")
        sys.exit(2)
    except typer.Abort:
        _say("stopped")
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _say_usage(error: Any) -> None:
    """A mistake in the command itself, and where its options are listed."""
    message = error.format_message().strip().rstrip(".")
    if type(error).__name__ == "NoArgsIsHelpError":  # no arguments at all: the help has been printed, or is the message
        typer.echo(message, nl=bool(message))
    else:
        path = error.ctx.command_path if error.ctx is not None else "omokage"
        _say(f"{message[:1].lower()}{message[1:]}{' See' if message.endswith('?') else ': see'} {path} --help")


def _say(message: str) -> None:
    typer.echo(f"omokage: {plain(message)}", err=True)
