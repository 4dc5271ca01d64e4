"""``omokage faces``: anonymize a folder of photos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .console import bars, err, out

if TYPE_CHECKING:
    from ..gallery.survey import LeftOut

PEOPLE, METHOD, OUTPUT = "People", "Method", "Output"


def register(app: typer.Typer) -> None:
    app.command("faces")(faces)


def faces(
    photos: Path = typer.Argument(..., metavar="PHOTOS", help="Folder of photos, searched recursively."),
    output: Path = typer.Option(..., "--output", "-o", help="Folder to write; must not exist.", rich_help_panel=OUTPUT),
    k: int = typer.Option(..., "--k", help="Least number of people that share a face.", rich_help_panel=METHOD),
    group_map: str = typer.Option(
        "recognition", "--group-map", help="Space to group in: recognition, attribute, latent, direct.", rich_help_panel=METHOD
    ),
    synthesis_map: str = typer.Option(
        "morph", "--synthesis-map", help="Space to average in: morph, latent, direct.", rich_help_panel=METHOD
    ),
    grouping: str = typer.Option("cells", "--grouping", help="cells, mdav, or mondrian[:…].", rich_help_panel=METHOD),
    texture: float = typer.Option(
        1.0, "--texture", help="How much of the fine contrast that averaging takes is given back, 0 to 1.", rich_help_panel=METHOD
    ),
    steps: int = typer.Option(
        0,
        "--steps",
        help="Steps of inversion after the encoder (latent); more is closer and slower.",
        rich_help_panel=METHOD,
    ),
    size: int = typer.Option(256, "--size", help="Side of the released faces in pixels.", rich_help_panel=OUTPUT),
    format_: str = typer.Option("png", "--format", help="png, jpg or webp.", rich_help_panel=OUTPUT),
    person_from: str = typer.Option(
        None, "--person-from", help="folder or csv: whom each photo shows; k then counts people.", rich_help_panel=PEOPLE
    ),
    persons: Path = typer.Option(
        None, "--persons", help="CSV with the columns photo and person, for --person-from csv.", rich_help_panel=PEOPLE
    ),
    every_face: bool = typer.Option(
        False, "--every-face", help="Take all faces of a photo, not only the largest.", rich_help_panel=PEOPLE
    ),
    aligned: bool = typer.Option(False, "--aligned", help="The photos are aligned square crops already.", rich_help_panel=PEOPLE),
    seed: int = typer.Option(
        None, "--seed", help="Makes the groups repeatable; names are always random.", rich_help_panel=METHOD
    ),
    workers: int = typer.Option(None, "--workers", help="Processes; all cores if not given.", rich_help_panel=METHOD),
    key: Path = typer.Option(
        None, "--key", help="Also write the secret link from photos to released faces, here.", rich_help_panel=OUTPUT
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier release.", rich_help_panel=OUTPUT),
) -> None:
    """Anonymize a folder of photos: each released face is the same picture for at least k people.

    A run that was stopped goes on where it was when the same command is given again.
    """
    import os

    from ..gallery import FaceSettings, anonymize_folder
    from ..release import READABLE

    settings = FaceSettings(k, group_map, synthesis_map, size, texture, grouping, format_, every_face, aligned, steps)
    with bars() as show:
        done = anonymize_folder(
            photos, output, settings, person_from=person_from, persons=persons, key=key, overwrite=overwrite, seed=seed,
            workers=workers or os.cpu_count() or 1, progress=show,
        )  # fmt: skip
    report = _list_left_out(done.left_out, output)
    found = done.certificate.found
    for note in done.certificate.notes:
        out.print(f"[yellow]note[/yellow]      {note}", markup=True)
    if report:
        out.print(f"left out  {report} names the photos and the reasons; it is not part of the release", markup=False)
    counted = done.certificate.promise["counted"]
    out.print(f"released  {found.rows} faces, {found.groups} different pictures: {output / 'faces'}", markup=False)
    out.print(f"found     k = {found.k} on the written bytes ({k} asked, in {counted})", markup=False)
    out.print(f"look at   {output / READABLE}" + (f"; the secret key: {key}" if key else ""), markup=False)


def _list_left_out(left: tuple[LeftOut, ...], output: Path) -> Path | None:
    """Which photos were left out and why, beside the release and never in it."""
    path = output.with_name(output.name + ".left-out.csv")
    if not left:
        return None
    import polars as pl

    from ..errors import OutputError

    try:
        pl.DataFrame([{"photo": each.photo, "reason": each.reason} for each in left]).write_csv(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    for each in left[:10]:
        err.print(f"left out  {each.photo}: {each.reason}", markup=False)
    return path
