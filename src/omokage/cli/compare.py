"""``omokage compare``: many settings side by side, and the frontier between risk and utility."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InputError
from ..method.grouping import GROUPERS
from ..method.maps import MAPS
from .console import err, names, out
from .evaluate import MODELS
from .options import JOINED, example, one_of, part_of
from .outputs import hold
from .table import HEADER, HEADER_DEFAULT, NAMES

if TYPE_CHECKING:
    from ..tables import Table

_MAP = part_of(MAPS, "Maps, separated by commas", f"{JOINED}; GROUP/SYNTHESIS for two spaces")
_GROUPING = part_of(GROUPERS, "How to find groups", "; repeat the option for several")


def register(app: typer.Typer) -> None:
    app.command(
        "compare",
        short_help="Compare many settings: risk against utility.",
        epilog=example("omokage compare wines.csv --target quality --k 3,10 --html compared.html"),
    )(compare)


def compare(
    context: typer.Context,
    source: Path = typer.Argument(..., metavar="TABLE", help="A table of numbers with a target."),
    target: str = typer.Option(..., "--target", metavar="COLUMN", help="Column to learn to predict."),
    html: Path = typer.Option(..., "--html", help="The page to write; FILE.jsonl beside it keeps finished settings."),
    quasi: list[str] = typer.Option(
        None, "--quasi", metavar="COLUMNS", help="Columns to anonymize.", show_default="all but the target"
    ),
    header: bool = typer.Option(None, "--header/--no-header", help=HEADER, show_default=HEADER_DEFAULT),
    column: list[str] = typer.Option(None, "--names", metavar="NAMES", help=NAMES),
    k: list[str] = typer.Option(None, "--k", metavar="NUMBERS", help="Values of k: 3,10,50."),
    noise: list[str] = typer.Option(None, "--noise", metavar="NOISES", help="Noises: laplace:1.5,laplace:3.5."),
    map_: list[str] = typer.Option(["none"], "--map", **_MAP),
    grouping: list[str] = typer.Option(["cells"], "--grouping", **_GROUPING),
    model: str = typer.Option("boosting", "--model", **one_of(MODELS, "What learns to predict the target")),
    sample: int = typer.Option(5000, "--sample", help="Rows of a noisy release to attack; 0 for all."),
    jobs: int = typer.Option(None, "--jobs", help="Processes.", show_default="as many as cores and memory allow"),
    seed: int = typer.Option(0, "--seed", help="Fixes the split and the groups."),
) -> None:
    """Anonymize the same rows in many settings, attack each, and learn from each.

    An interrupted run resumes when you repeat the command.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from ..evaluate.comparison import compare as run
    from ..evaluate.comparison import settings_of
    from ..report import comparison_page, require_report_places, write_page
    from ..tables import read_table

    keep = html.with_suffix(".jsonl")
    hold(context, html, keep, inputs=(source,))
    require_report_places(html)
    settings = settings_of(_whole_numbers(k), names(map_), tuple(grouping), names(noise))
    table = read_table(source, header=header, names=names(column) or None)
    x, y = _numbers(table, target, names(quasi))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("comparing", total=None)

        def show(name: str, done: int = 0, total: int = 0, /) -> None:
            bar.update(task, completed=done, total=total, description=f"done: {name}")

        result = run(
            x, y, settings, target=target, keep=keep, model=model, sample=sample or None, jobs=jobs,
            random_state=seed, progress=show,
        )  # fmt: skip
    words = ["omokage", "compare", source.name, "--target", target, "--html", html.name]
    words += [w for value in k or [] for w in ("--k", value)] + [w for value in noise or [] for w in ("--noise", value)]
    words += [w for value in map_ for w in ("--map", value)] + [w for value in grouping for w in ("--grouping", value)]
    words += [] if header is None else ["--header" if header else "--no-header"]
    words += [w for value in column or [] for w in ("--names", value)]
    write_page(comparison_page(result, repeat=shlex.join(words)), html)
    for outcome in result.frontier():
        score = f"{result.score} {outcome.scores[result.score]:.3f}"
        out.print(f"{outcome.rate:8.4f} linked  {score}  {outcome.setting.name}  (by {outcome.attack})")
    for name, reason in result.failed:
        out.print(f"left out  {name}: {reason}")
    out.print(f"look at   {html}")


def _whole_numbers(texts: list[str] | None) -> list[int]:
    values = names(texts)
    if not all(v.isdigit() for v in values):
        raise InputError("--k takes whole numbers, separated by commas")
    return [int(v) for v in values]


def _numbers(table: Table, target: str, quasi: tuple[str, ...]) -> tuple[Any, Any]:
    """The columns to anonymize as a matrix, and the target."""
    import numpy as np
    import polars as pl

    from ..tables import Roles
    from ..tables.encode import as_numbers

    roles = Roles(quasi=quasi, keep=[target], rest="drop") if quasi else Roles(keep=[target], rest="quasi")
    found = roles.resolve(table)
    chosen = [name for name, role in found.items() if role == "quasi" and not _row_number(table, name, quasi)]
    goal = table.frame[target]
    if goal.null_count():
        raise InputError(f"the target {target!r} is missing in {goal.null_count()} rows")
    y = goal.to_numpy() if goal.dtype.is_numeric() else np.asarray(goal.cast(pl.String).to_list(), dtype=str)
    return as_numbers(table, chosen, "omokage compare").astype(np.float32), y


def _row_number(table: Table, name: str, quasi: tuple[str, ...]) -> bool:
    from ..tables.roles import counts_rows

    return not quasi and counts_rows(table, name)
