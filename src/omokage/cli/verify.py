"""``omokage verify``: is a written release what its certificate says?"""

from __future__ import annotations

from pathlib import Path

import typer

from .console import out


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    release: Path = typer.Argument(..., metavar="FOLDER", help="A folder that omokage has written."),
    key: Path = typer.Option(None, "--key", help="The secret key, to count persons too."),
) -> None:
    """Read a release again, count everything from its bytes, and compare with its certificate."""
    from ..verification import verify as check

    result = check(release, key=key)
    for each in result.checks:
        out.print(f"{'[green]ok  [/green]' if each.passed else '[red]FAIL[/red]'}  ", end="")
        out.print(f"{each.name}: {each.detail}", markup=False)
    out.print(
        "the release holds what it promises" if result.passed else "the release does NOT hold what it promises", markup=False
    )
    out.print(f"promised: {result.certificate.promised()}", markup=False)
    if not result.passed:
        raise typer.Exit(1)
