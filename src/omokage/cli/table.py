"""``omokage table``: anonymize a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..base.words import counted
from ..errors import InputError
from ..method import UNIFIERS
from ..method.grouping import GROUPERS
from ..method.maps import MAPS
from .console import names, note, out, pairs, shown
from .options import JOINED, example, listed, one_of, part_of
from .outputs import hold

if TYPE_CHECKING:
    from ..method.anonymizer import Anonymizer
    from ..release.certificate import Certificate

ROLES = "Columns"
METHOD = "Method"
OUTPUT = "Output"
HEADER = "Whether the first line of a CSV or TSV names the columns."
HEADER_DEFAULT = "it does, unless it looks like a person"
NAMES = "The columns' names, for a file without a header: age,sex,zip."
GUESSED = "cells if all quasi-identifiers are numbers, else mondrian"
# What the library takes; listed here because importing it takes a second. A test compares the two.
RESTS, SCALES, RARES = ("drop", "quasi", "sensitive", "keep"), ("range", "std", "none"), ("hide", "show")
KINDS = ("number", "boolean", "date", "code", "category")
COLUMN_UNIFIERS = ("mean", "median", "mode", "prefix", "range", "set", "suppress")
KIND = f"What a column holds, if the guess is wrong: {listed(KINDS)}."
UNIFY = f"What a group becomes in a column without a map: {listed(COLUMN_UNIFIERS)}."


def register(app: typer.Typer) -> None:
    app.command(
        "table",
        short_help="Anonymize a table: groups of at least k people, or noise.",
        epilog=example("omokage table patients.csv -o released --k 2 --quasi zip,age --rest drop"),
    )(table)


def table(
    context: typer.Context,
    source: Path = typer.Argument(..., metavar="TABLE", help="CSV, TSV, Parquet, Feather, .npy or .npz."),
    quasi: list[str] = typer.Option(
        ...,
        "--quasi",
        metavar="COLUMNS",
        help="Columns that together single a person out: zip,age or patterns like 'feat_*'.",
        rich_help_panel=ROLES,
    ),
    identifier: list[str] = typer.Option(
        None, "--identifier", metavar="COLUMNS", help="Columns to remove.", rich_help_panel=ROLES
    ),
    sensitive: list[str] = typer.Option(
        None,
        "--sensitive",
        metavar="COLUMNS",
        help="Columns released unchanged, guarded by --l-diversity and --t-closeness.",
        rich_help_panel=ROLES,
    ),
    keep: list[str] = typer.Option(None, "--keep", metavar="COLUMNS", help="Columns released unchanged.", rich_help_panel=ROLES),
    person: str = typer.Option(
        None, "--person", metavar="COLUMN", help="Column that says whose row it is: k counts persons.", rich_help_panel=ROLES
    ),
    rest: str = typer.Option(None, "--rest", **one_of(RESTS, "What to do with all other columns"), rich_help_panel=ROLES),
    kind: list[str] = typer.Option(
        None,
        "--kind",
        metavar="COLUMN=KIND",
        help=KIND,
        rich_help_panel=ROLES,
    ),
    header: bool = typer.Option(None, "--header/--no-header", help=HEADER, show_default=HEADER_DEFAULT, rich_help_panel=ROLES),
    columns: list[str] = typer.Option(None, "--names", metavar="NAMES", help=NAMES, rich_help_panel=ROLES),
    k: int = typer.Option(None, "--k", help="Least number of people in a group.", rich_help_panel=METHOD),
    noise: str = typer.Option(
        None, "--noise", metavar="NOISE", help="Noise instead of groups: laplace:SCALE.", rich_help_panel=METHOD
    ),
    map_: str = typer.Option(
        None, "--map", **part_of(MAPS, "Space to group and average in", JOINED), show_default="none", rich_help_panel=METHOD
    ),
    group_map: str = typer.Option(
        None, "--group-map", **part_of(MAPS, "Space to group in, if another", JOINED), rich_help_panel=METHOD
    ),
    synthesis_map: str = typer.Option(
        None, "--synthesis-map", **part_of(MAPS, "Space to average in, if another", JOINED), rich_help_panel=METHOD
    ),
    grouping: str = typer.Option(
        None, "--grouping", **part_of(GROUPERS, "How to find groups"), show_default=GUESSED, rich_help_panel=METHOD
    ),
    unify: list[str] = typer.Option(
        None,
        "--unify",
        metavar="COLUMN=HOW",
        help=UNIFY,
        rich_help_panel=METHOD,
    ),
    unifier: str = typer.Option("mean", "--unifier", **one_of(UNIFIERS, "What a group becomes in a map"), rich_help_panel=METHOD),
    scale: str = typer.Option(
        "range", "--scale", **one_of(SCALES, "How to make columns comparable without a map"), rich_help_panel=METHOD
    ),
    rare: str = typer.Option(
        "hide",
        "--rare",
        **one_of(RARES, "Values that fewer than k people have, in sets, modes, medians and ends of ranges"),
        rich_help_panel=METHOD,
    ),
    l_diversity: float = typer.Option(
        None, "--l-diversity", help="Least number of sensitive values in a group.", rich_help_panel=METHOD
    ),
    l_entropy: float = typer.Option(None, "--l-entropy", help="The same, by entropy.", rich_help_panel=METHOD),
    t_closeness: float = typer.Option(
        None, "--t-closeness", help="Most a group's sensitive values may differ from the table's.", rich_help_panel=METHOD
    ),
    seed: int = typer.Option(
        None,
        "--seed",
        help="Makes a release repeatable, also for whoever guesses it; noise is never seeded.",
        rich_help_panel=METHOD,
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder to write; must not exist.", rich_help_panel=OUTPUT),
    digits: int = typer.Option(
        6, "--digits", help="Significant digits of released numbers; 0 keeps all.", rich_help_panel=OUTPUT
    ),
    escape_formulas: bool = typer.Option(
        False, "--escape-formulas", help="Put ' before text that a spreadsheet would run as a formula.", rich_help_panel=OUTPUT
    ),
    key: Path = typer.Option(
        None, "--key", help="Also write the secret link from input rows to groups, here.", rich_help_panel=OUTPUT
    ),
    sign: Path = typer.Option(
        None, "--sign", help="Private key (omokage keygen) to sign the certificate with.", rich_help_panel=OUTPUT
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier release.", rich_help_panel=OUTPUT),
) -> None:
    """Anonymize a table: groups of at least k people, or noise, in a space where averages make sense."""
    from ..release.publish import require_places
    from ..tables import Roles, read_table

    hold(context, output, key, inputs=(source,))
    require_places(output, key, overwrite)
    anonymizer = _anonymizer(
        k, noise, map_, group_map, synthesis_map, grouping, unifier, _constraints(l_diversity, l_entropy, t_closeness), seed
    )
    roles = Roles(names(identifier), names(quasi), names(sensitive), names(keep), person, rest)  # type: ignore[arg-type]
    with shown() as progress:
        progress("reading")
        data = read_table(source, pairs(kind, "--kind"), header=header, names=names(columns) or None)  # type: ignore[arg-type]
        release = anonymizer.release(
            data, roles=roles, unify=pairs(unify, "--unify"), scale=scale, digits=digits or None, rare=rare,
            escape_formulas=escape_formulas, progress=progress,
        )  # fmt: skip
        progress("writing and checking the written bytes")
        certificate = release.publish(output, key=key, sign=sign, overwrite=overwrite)
    summarize(certificate, output, key)


def _anonymizer(
    k: int | None, noise: str | None, both: str | None, group: str | None, synthesis: str | None, grouping: str | None,
    unifier: str, constraints: tuple[Any, ...], seed: int | None,
) -> Anonymizer:  # fmt: skip
    from ..method.anonymizer import Anonymizer
    from ..method.grouping import parse_grouper
    from ..method.maps import parse_map
    from ..method.noise import parse_noise

    if (k is None) == (noise is None):
        raise InputError("give --k for groups, or --noise for noise, one of the two")
    if both and synthesis:
        raise InputError("give --map for both spaces, or --group-map and --synthesis-map")
    group, synthesis = group or (both if synthesis is None else None), synthesis or both
    return Anonymizer(
        k if k is None or grouping is None else parse_grouper(grouping, k),
        group_map=None if group in (None, synthesis) else parse_map(group or ""),
        synthesis_map=None if synthesis in (None, "none") else parse_map(synthesis or ""),
        unifier=unifier,
        noise=None if noise is None else parse_noise(noise),
        constraints=constraints,
        random_state=seed,
    )


def _constraints(distinct: float | None, entropy: float | None, t: float | None) -> tuple[Any, ...]:
    from ..release.rules import LDiversity, TCloseness

    rules: list[Any] = []
    if distinct is not None:
        rules.append(LDiversity(distinct))
    if entropy is not None:
        rules.append(LDiversity(entropy, "entropy"))
    if t is not None:
        rules.append(TCloseness(t))
    return tuple(rules)


def summarize(certificate: Certificate, output: Path, key: Path | None, look_at: Path | None = None) -> None:
    """Three lines a newcomer understands, and what to be careful with."""
    found = certificate.found
    for each in certificate.notes:
        note(each)
    size = f"{counted(found.rows, 'row')}, {counted(len(certificate.columns), 'column')}"
    out.print(f"released  {size}: {output / certificate.files[0].path}")
    if certificate.k is None:
        out.print(f"noise     {certificate.promised()}")
    else:
        out.print(
            f"found     k = {found.k} on the written bytes ({certificate.k} asked, in {certificate.counted}), "
            f"{counted(found.groups, 'class')}",
        )
    out.print(f"look at   {look_at or output / 'CERTIFICATE.md'}" + (f"; the secret key: {key}" if key else ""))
