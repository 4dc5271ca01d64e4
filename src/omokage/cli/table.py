"""``omokage table``: anonymize a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InputError
from .console import names, note, out, pairs, shown
from .outputs import hold

if TYPE_CHECKING:
    from ..method.anonymizer import Anonymizer
    from ..release.certificate import Certificate

ROLES = "Columns"
METHOD = "Method"
OUTPUT = "Output"
HEADER = "Whether the first line of a CSV or TSV names the columns; by default it does, unless it looks like a person."
NAMES = "The columns' names, for a file without a header: age,sex,zip."


def register(app: typer.Typer) -> None:
    app.command("table")(table)


def table(
    context: typer.Context,
    source: Path = typer.Argument(..., metavar="TABLE", help="CSV, TSV, Parquet, Feather, .npy or .npz."),
    output: Path = typer.Option(..., "--output", "-o", help="Folder to write; must not exist.", rich_help_panel=OUTPUT),
    quasi: list[str] = typer.Option(
        ..., "--quasi", help="Columns that together single a person out; patterns like 'feat_*'.", rich_help_panel=ROLES
    ),
    identifier: list[str] = typer.Option(None, "--identifier", help="Columns to remove.", rich_help_panel=ROLES),
    sensitive: list[str] = typer.Option(
        None,
        "--sensitive",
        help="Columns released as they are, guarded by --l-diversity and --t-closeness.",
        rich_help_panel=ROLES,
    ),
    keep: list[str] = typer.Option(None, "--keep", help="Columns released as they are.", rich_help_panel=ROLES),
    person: str = typer.Option(None, "--person", help="Column saying whose row it is: k counts persons.", rich_help_panel=ROLES),
    rest: str = typer.Option(
        None, "--rest", help="What becomes of columns not named: drop, quasi, sensitive, keep.", rich_help_panel=ROLES
    ),
    kind: list[str] = typer.Option(
        None, "--kind", help="COLUMN=number|boolean|date|code|category, where the guess is wrong.", rich_help_panel=ROLES
    ),
    header: bool = typer.Option(None, "--header/--no-header", help=HEADER, rich_help_panel=ROLES),
    columns: list[str] = typer.Option(None, "--names", help=NAMES, rich_help_panel=ROLES),
    k: int = typer.Option(None, "--k", help="Least number of people in a group.", rich_help_panel=METHOD),
    noise: str = typer.Option(None, "--noise", help="Noise instead of groups: laplace:SCALE.", rich_help_panel=METHOD),
    map_: str = typer.Option(
        None,
        "--map",
        help="Space to group and average in: none, pca:N, nmf:N, lpp:N, ae:N, std, log; joined by +.",
        rich_help_panel=METHOD,
    ),
    group_map: str = typer.Option(None, "--group-map", help="Space to group in, if another.", rich_help_panel=METHOD),
    synthesis_map: str = typer.Option(None, "--synthesis-map", help="Space to average in, if another.", rich_help_panel=METHOD),
    grouping: str = typer.Option(
        None,
        "--grouping",
        help="cells, mdav, or mondrian[:variance,standard,multiple,dims=N]; cells if all is numbers, else mondrian.",
        rich_help_panel=METHOD,
    ),
    unify: list[str] = typer.Option(
        None, "--unify", help="COLUMN=mean|median|mode|prefix|range|set|suppress.", rich_help_panel=METHOD
    ),
    unifier: str = typer.Option(
        "mean", "--unifier", help="What a group becomes in a map: mean, median, or spread.", rich_help_panel=METHOD
    ),
    scale: str = typer.Option(
        "range", "--scale", help="How columns are made comparable without a map: range, std, none.", rich_help_panel=METHOD
    ),
    rare: str = typer.Option(
        "hide",
        "--rare",
        help="Values that fewer than k people have, in sets, modes, medians and ends of ranges: hide or show.",
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
    out.print(f"released  {found.rows} rows, {len(certificate.columns)} columns: {output / certificate.files[0].path}")
    if certificate.k is None:
        out.print(f"noise     {certificate.promised()}")
    else:
        out.print(
            f"found     k = {found.k} on the written bytes ({certificate.k} asked, in {certificate.counted}), "
            f"{found.groups} classes",
        )
    out.print(f"look at   {look_at or output / 'CERTIFICATE.md'}" + (f"; the secret key: {key}" if key else ""))
