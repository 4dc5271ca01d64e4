"""``omokage models``: the networks that faces need; what they are, fetching them, where they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from ..errors import ModelError
from .console import out
from .options import example

if TYPE_CHECKING:
    from pathlib import Path


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
    from ..networks import TRAINED, ZOO, cached

    table = Table(box=None, pad_edge=False)
    for title in ("name", "here", "MB", "what for", "licence", "limits"):
        table.add_column(title, justify="right" if title == "MB" else "left", no_wrap=title == "name")
    for entry in ZOO.values():
        file = cached(entry.name)
        size = f"{(file.stat().st_size if file else entry.carrier.size) / 1e6:.0f}"
        table.add_row(entry.name, "yes" if file else "no", size, entry.role, entry.licence, entry.limits)
    for ours in TRAINED.values():
        here = "yes" if _installed(ours.name) else "no"
        table.add_row(ours.name, here, f"{ours.size / 1e6:.0f}", ours.role, ours.licence, ours.limits)
    out.print(table)


def get(names: list[str] = typer.Argument(..., metavar="NAME", help="Names from the list, or all.")) -> None:
    """Fetch networks; those that are here already are checked."""
    from ..networks import TRAINED, ZOO, trained
    from ..networks import get as fetch

    for name in ZOO if names == ["all"] else names:
        out.print(f"{name}  {trained(name) if name in TRAINED else fetch(name)}")


def where(name: str = typer.Argument("", metavar="[NAME]", help="A name from the list; left out: the folder of all.")) -> None:
    """Print the folder that networks are kept in, or the file of one; OMOKAGE_HOME sets another folder."""
    from ..networks import TRAINED, cached, home, trained

    if name in TRAINED:
        out.print(str(trained(name)))
    elif not name:
        out.print(str(home() / "models"))
    elif (file := cached(name)) is not None:
        out.print(str(file))
    else:
        raise ModelError(f"the network {name!r} is not here: fetch it with omokage models get {name}")


def _installed(name: str) -> Path | None:
    """The weights that come with ``omokage-weights``, if that is installed."""
    from ..networks import trained

    try:
        return trained(name)
    except ModelError:
        return None
