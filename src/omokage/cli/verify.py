"""``omokage verify`` and ``keygen``: is a written release what its certificate says, and who says so?"""

from __future__ import annotations

from pathlib import Path

import typer

from .console import out
from .options import example

_SIGNS = {"passed": ("ok   ", "green"), "failed": ("FAIL ", "red"), "unchecked": ("?    ", "yellow"), "note": ("note ", "yellow")}
_VERDICTS = (
    "the release keeps its promise",
    "the release does NOT keep its promise",
    "the release could NOT be fully checked",
)


def register(app: typer.Typer) -> None:
    app.command(
        "verify",
        short_help="Count a release from its bytes and compare with its certificate.",
        epilog=example("omokage verify released --key key.json"),
    )(verify)
    app.command(
        "keygen",
        short_help="Make a pair of keys to sign certificates with.",
        epilog=example("omokage keygen -o signing.key"),
    )(keygen)


def verify(
    release: Path = typer.Argument(..., metavar="FOLDER", help="A folder that Omokage has written."),
    key: Path = typer.Option(None, "--key", help="The secret key, to count persons too."),
    signer: Path = typer.Option(None, "--signer", help="Public key (FILE.pub) that the certificate must be signed with."),
) -> None:
    """Read a release again, count everything from its bytes, and compare with its certificate.

    Exits with 0 if the release keeps its promise, with 1 if it does not, and with 2 if it could not be checked.
    """
    from ..release.verify import verify as check

    result = check(release, key=key, signer=signer)
    for each in result.checks:
        sign, style = _SIGNS[each.state]
        out.print(sign, style=style, end="")
        out.print(f"{each.name}: {each.detail}")
    out.print(_VERDICTS[result.exit_code])
    out.print(f"promised: {result.certificate.promised()}")
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def keygen(
    output: Path = typer.Option(..., "--output", "-o", help="File for the private key; FILE.pub beside it gets the public one."),
) -> None:
    """Make a pair of keys to sign certificates with: keep the private one, hand out the public one."""
    from ..release.signing import keygen as make

    private, public = make(output)
    out.print(f"private   {private}: keep it secret; sign with --sign {private}")
    out.print(f"public    {public}: hand it out; check with omokage verify --signer {public}")
