"""What the site adds to the pages in docs/: measured results, and the command line as the program itself describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
SHOWN = {".md", ".png", ".jpg"}
COMMANDS = "reference/command-line.md"


def on_files(files: Files, config: Any) -> Files:
    """Add the results of the experiments and the command line to the pages of docs/."""
    for path in sorted(RESULTS.iterdir()):
        if path.suffix in SHOWN:
            files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, COMMANDS, content="\n".join(command_line())))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that are right in the repository become right on the site."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"\]\((?:\.\./)+experiments/results/", f"]({up}results/", markdown)
    return re.sub(r"\]\((?:\.\./)+docs/", f"]({up}", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings mark names as Sphinx does, which Markdown shows as it is written."""
    html = re.sub(r":\w+:<code>~?(?:[\w.]+\.)?(\w+)</code>", r"<code>\1</code>", html)
    return re.sub(r"``(\w[^`<]*)``", r"\1", html)


def command_line() -> Iterator[str]:
    """Every command with its arguments and options, as Markdown."""
    from typer.main import get_command

    from omokage.cli import app

    top: Any = get_command(app)
    yield "# Command line\n"
    yield f"{top.help}\n"
    yield "This page is made from the program itself: `omokage COMMAND --help` shows the same.\n"
    yield "Every command exits with 0 if it succeeded, with 1 if a check failed, and with 2 if the input was wrong.\n"
    for name, command in top.commands.items():
        yield from _command(f"omokage {name}", command, 2)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield f"{_text(command.help or command.short_help or '')}\n"
    if hasattr(command, "commands"):
        for inner, each in command.commands.items():
            yield from _command(f"{name} {inner}", each, level + 1)
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, *map(_shown, arguments), "[OPTIONS]"])
    yield f"```text\n{usage}\n```\n"
    yield "| argument or option | meaning | default |"
    yield "|---|---|---|"
    for parameter in arguments:
        yield f"| `{_shown(parameter)}` | {_cell(parameter.help)} | required |"
    for parameter in command.params:
        if parameter.param_type_name == "option" and "--help" not in parameter.opts:
            names = ", ".join(f"`{n}`" for n in (*parameter.opts, *parameter.secondary_opts))
            yield f"| {names} | {_cell(parameter.help)} | {_default(parameter)} |"
    yield ""


def _shown(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _text(text: str) -> str:
    return re.sub(r"\n +", "\n", text).replace("[", r"\[")


def _cell(text: str | None) -> str:
    return (text or "").replace("|", r"\|").replace("[", r"\[").replace("*", r"\*").replace("\n", " ")


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if isinstance(option.show_default, str):
        return option.show_default
    value = option.default
    if value is None or value is False or value == [] or callable(value):
        return ""
    return f"`{','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}`"
