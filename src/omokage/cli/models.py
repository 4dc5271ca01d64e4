"""``omokage models``: the networks that faces need; what they are, fetching them, where they lie."""

from __future__ import annotations

import typer
from rich.table import Table

from .console import out
from .options import example


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="List and fetch the networks that faces need.",
        epilog=example("omokage models get arcface"),
        no_args_is_help=True,
    )
    group.command("list", epilog=example("omokage models list"))(list_)
    group.command("get", epilog=example("omokage models get scrfd dlib-68 arcface"))(get)
    group.command("where", epilog=example("omokage models where"))(where)
    app.add_typer(group, name="models")


def list_() -> None:
    """List all networks: what each is for, its licence and limits, and whether it is here."""
    from ..networks import ZOO, cached

    table = Table(box=None, pad_edge=False)
    for title in ("name", "here", "MB", "what for", "licence", "limits"):
        table.add_column(title, justify="right" if title == "MB" else "left", no_wrap=title == "name")
    for entry in ZOO.values():
        file = cached(entry.name)
        size = f"{(file.stat().st_size if file else entry.carrier.size) / 1e6:.0f}"
        table.add_row(entry.name, "yes" if file else "no", size, entry.role, entry.licence, entry.limits)
    out.print(table)


def get(names: list[str] = typer.Argument(..., metavar="NAME", help="Names from the list, or all.")) -> None:
    """Fetch networks; those that are here already are checked."""
    from ..networks import ZOO
    from ..networks import get as fetch

    for name in ZOO if names == ["all"] else names:
        out.print(f"{name}  {fetch(name)}")


def where() -> None:
    """Print the folder that networks are kept in; OMOKAGE_HOME sets another."""
    from ..networks import home

    out.print(str(home() / "models"))
