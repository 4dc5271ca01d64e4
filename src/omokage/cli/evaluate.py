"""``omokage evaluate``: what can an attacker and an analyst still do with a release?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import typer

from ..base.registry import Registry
from .console import names, out, shown
from .options import example, importing, one_of
from .outputs import hold
from .table import HEADER, HEADER_DEFAULT, NAMES

MODELS = ("boosting", "logistic", "forest", "network")  # as omokage.evaluate.utility, which is slow to import; a test compares

_MODEL = one_of(MODELS, "What learns to predict the target; several with commas")

_OWN_ATTACK = importing(Registry("attack"))  # the registry itself is slow to import


def register(app: typer.Typer) -> None:
    app.command(
        "evaluate",
        short_help="Attack a release, learn from it, and measure what changed.",
        epilog=example("omokage evaluate patients.csv released --key key.json --html report.html"),
    )(evaluate)


def evaluate(
    context: typer.Context,
    original: Path = typer.Argument(..., metavar="TABLE", help="The table that the release was made from."),
    release: Path = typer.Argument(..., metavar="FOLDER", help="The release."),
    key: Path = typer.Option(..., "--key", help="The secret key that omokage table --key has written."),
    target: str = typer.Option(None, "--target", metavar="COLUMN", help="Column released unchanged, to learn to predict."),
    model: list[str] = typer.Option(None, "--model", **_MODEL, show_default="boosting"),
    splits: int = typer.Option(3, "--splits", help="Repeated splits for the utility's interval."),
    attack: list[str] = typer.Option(
        None,
        "--attack",
        metavar="MODULE:CLASS",
        help="Your own attack, package.module:Class, besides the built-in ones.",
        callback=_OWN_ATTACK,
    ),
    sample: int = typer.Option(None, "--sample", help="Attack only about so many rows."),
    max_seconds: float = typer.Option(
        None, "--max-seconds", help="For all assignments together; the report names attacks left out."
    ),
    header: bool = typer.Option(None, "--header/--no-header", help=HEADER, show_default=HEADER_DEFAULT),
    columns: list[str] = typer.Option(None, "--names", metavar="NAMES", help=NAMES),
    html: Path = typer.Option(None, "--html", help="Write a report, one self-contained page."),
    results: Path = typer.Option(None, "--json", help="Write the figures as JSON."),
) -> None:
    """Attack a release, learn from it, and measure what changed: in sentences and, with --html, as a page."""
    from ..evaluate import ATTACKS, link_files
    from ..evaluate import evaluate as judge
    from ..report import evaluation_page, require_report_places, verdict, write_page, write_results

    hold(context, html, results, inputs=(original, release, key))
    require_report_places(html, results, release)
    with shown() as say:
        say("verifying the release and reading both tables")
        both = link_files(original, release, key, header=header, names=names(columns) or None)
        result = judge(
            both,
            target=target,
            models=names(model) or ("boosting",),
            splits=splits,
            attacks=[*ATTACKS, *(each for each in attack or [] if each not in ATTACKS)],
            sample=sample,
            max_seconds=max_seconds,
            progress=say,
        )
        if html is not None:
            say("writing the report")
            words = ["omokage", "evaluate", original.name, release.name, "--key", key.name]
            words += ["--target", target] if target else []
            words += [word for each in model or [] for word in ("--model", each)]
            words += [word for each in attack or [] for word in ("--attack", each)]
            words += [] if header is None else ["--header" if header else "--no-header"]
            words += [word for each in columns or [] for word in ("--names", each)]
            write_page(evaluation_page(result, repeat=shlex.join(words)), html)
        if results is not None:
            write_results(json.dumps(result.to_dict()), results)
    for sentence in verdict(result):
        out.print(sentence)
    if html is not None:
        out.print(f"look at   {html}")
