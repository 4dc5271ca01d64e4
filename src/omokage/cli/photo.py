"""``omokage photo``: replace the faces of a group photo by those of groups of people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from ..errors import InputError, PhotoError
from .console import note, out, shown
from .options import example, one_of
from .outputs import hold

# As omokage.faces.group_photo, which is slow to import; a test compares the two.
WAYS = {"nearest": "that of the nearest group of k others", "join": "the mean of the person and k − 1 others"}


def register(app: typer.Typer) -> None:
    app.command(
        "photo",
        short_help="Replace every face in a photo by one that k people share.",
        epilog=example("omokage photo party.jpg -o shared.jpg --k 8"),
    )(photo)


def photo(
    context: typer.Context,
    source: Path = typer.Argument(..., metavar="PHOTO", help="JPEG, PNG, WebP or TIFF."),
    output: Path = typer.Option(..., "--output", "-o", help="Picture to write: .jpg, .png, .webp or .tif."),
    k: int = typer.Option(8, "--k", help="Least number of people in the face that stands in for another."),
    crowd: Path = typer.Option(
        None, "--crowd", help="Folder of photos of other people.", show_default="drawn people who do not exist"
    ),
    way: str = typer.Option(
        "nearest",
        "--way",
        **one_of(WAYS, "Which face stands in for another"),
    ),
    keep_face: list[int] = typer.Option(
        None, "--keep-face", metavar="NUMBER", help="Face to leave unchanged; repeat the option for several."
    ),
    preview: bool = typer.Option(False, "--preview", help="Only draw numbers on the faces."),
    workers: int = typer.Option(None, "--workers", help="Processes.", show_default="all cores"),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier picture."),
) -> None:
    """Replace every face in a photo by one that at least k people share, in the same pose and light."""
    from ..base.threads import all_cores
    from ..faces import group_photo
    from ..faces.group_photo_files import report_of, require_photo_place, write_photo
    from ..faces.image import read_photo

    hold(context, output, report_of(output), inputs=(source, crowd))
    require_photo_place(output, overwrite)
    try:
        picture = read_photo(source)
    except PhotoError as error:
        raise InputError(f"{source.name} cannot be used: {error}") from None
    if preview:
        _preview(group_photo, picture, output, overwrite)
        return
    with shown() as show:
        release = group_photo.anonymize_photo(
            picture, k, way=way, crowd=crowd, keep=keep_face or (), workers=workers or all_cores(), progress=show  # type: ignore[arg-type]
        )  # fmt: skip
    report = write_photo(release, output, overwrite)
    table = Table(box=None, pad_edge=False)
    for title in ("face", "became", "group", "ArcFace cosine", "dlib distance"):
        table.add_column(title, justify="left" if title == "became" else "right")
    for face in release.faces:
        numbers = (face.group, face.arcface_cosine, face.dlib_distance)
        table.add_row(str(face.number), face.became, *("" if value is None else f"{value:g}" for value in numbers))
    out.print(table)
    for each in release.notes():
        note(each)
    out.print(f"way       {release.way}: {release.promise}")
    out.print(f"written   {output}; what was measured: {report}")


def _preview(group_photo: Any, picture: Any, output: Path, overwrite: bool) -> None:
    from ..faces.group_photo_files import write_preview

    drawn, faces = group_photo.preview(picture)
    write_preview(drawn, faces, output, overwrite)
    for number, face in enumerate(faces, 1):
        out.print(f"face {number}: " + ("can be replaced" if face.trouble is None else f"{face.trouble}, will be covered"))
    out.print(f"written   {output}: not anonymized, a preview with {len(faces)} numbered faces")
