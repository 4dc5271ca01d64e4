"""``omokage faces``: anonymize a folder of photos, judge it, and train what its maps need."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ..base.files import require_file, write_new
from .console import bars, err, note, out
from .outputs import hold

if TYPE_CHECKING:
    from ..faces.survey import LeftOut

PEOPLE, METHOD, OUTPUT = "People", "Method", "Output"


class _Faces(TyperGroup):
    """``omokage faces PHOTOS …`` anonymizes: a first word that names no other command is the folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = ["anonymize", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=_Faces,
        no_args_is_help=True,
        help="Anonymize a folder of photos (omokage faces PHOTOS -o OUT --k 8), judge it, and train what its maps need.",
    )
    group.command("anonymize", help="Anonymize a folder of photos; the word itself may be left out.")(anonymize)
    group.command("evaluate")(evaluate)
    group.command("forget")(forget)
    group.command("train-attributes")(train_attributes)
    group.command("train-encoder")(train_encoder)
    app.add_typer(group, name="faces")


def anonymize(
    context: typer.Context,
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
    generator: Path = typer.Option(
        None, "--generator", help="A StyleGAN2 of your own for latent (.pkl, .pt); needs --encoder.", rich_help_panel=METHOD
    ),
    encoder: Path = typer.Option(None, "--encoder", help="What train-encoder wrote.", rich_help_panel=METHOD),
    attributes: Path = typer.Option(None, "--attributes", help="What train-attributes wrote.", rich_help_panel=METHOD),
    seed: int = typer.Option(
        None, "--seed", help="Makes the groups repeatable; names are always random.", rich_help_panel=METHOD
    ),
    workers: int = typer.Option(None, "--workers", help="Processes; all cores if not given.", rich_help_panel=METHOD),
    key: Path = typer.Option(
        None, "--key", help="Also write the secret link from photos to released faces, here.", rich_help_panel=OUTPUT
    ),
    sign: Path = typer.Option(
        None, "--sign", help="Private key (omokage keygen) to sign the certificate with.", rich_help_panel=OUTPUT
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier release.", rich_help_panel=OUTPUT),
) -> None:
    """Anonymize a folder of photos: each released face is the same picture for at least k people.

    An interrupted run resumes when you repeat the command; until then, what it found is kept in a private folder beside the
    output, which omokage faces forget removes.
    """
    import os

    from ..faces.folder import FaceSettings, anonymize_folder
    from ..faces.maps import Networks
    from ..release.certificate import READABLE

    hold(context, output, key, inputs=(photos, persons, generator, encoder, attributes))
    require_file(_left_out_place(output), overwrite=True, ours=_is_left_out)
    settings = FaceSettings(
        k, group_map, synthesis_map, size, texture, grouping, format_, every_face, aligned, steps,
        Networks(generator, encoder, attributes),
    )  # fmt: skip
    with _kept(output), bars() as show:
        done = anonymize_folder(
            photos, output, settings, person_from=person_from, persons=persons, key=key, sign=sign, overwrite=overwrite,
            seed=seed, workers=workers or os.cpu_count() or 1, progress=show,
        )  # fmt: skip
    report = _list_left_out(done.left_out, output)
    found = done.certificate.found
    for each in done.certificate.notes:
        note(each)
    if report:
        out.print(f"left out  {report} names the photos and the reasons; it is not part of the release")
    counted = done.certificate.counted
    out.print(f"released  {found.rows} faces, {found.groups} different pictures: {output / 'faces'}")
    out.print(f"found     k = {found.k} on the written bytes ({k} asked, in {counted})")
    out.print(f"look at   {output / READABLE}" + (f"; the secret key: {key}" if key else ""))


@contextmanager
def _kept(output: Path) -> Iterator[None]:
    """After a stop or an error, say that faces are kept and how to remove them."""
    from ..faces.work_folder import is_kept, work_of

    try:
        yield
    except BaseException:
        if is_kept(output):
            err.print(
                f"kept      {work_of(output)} holds what was found so far, faces among it: repeat the command to go on, or "
                f"remove it with: omokage faces forget {shlex.quote(str(output))}"
            )
        raise


def forget(
    output: Path = typer.Argument(..., metavar="OUT", help="The output of the run that was interrupted."),
) -> None:
    """Remove what an interrupted run has kept for OUT: a private folder beside it that holds faces."""
    from ..faces.work_folder import forget as remove

    removed = remove(output)
    out.print(f"removed   {removed}" if removed else f"nothing is kept for {output}")


def evaluate(
    context: typer.Context,
    photos: Path = typer.Argument(..., metavar="PHOTOS", help="The folder that the release was made from."),
    release: Path = typer.Argument(..., metavar="FOLDER", help="The release."),
    key: Path = typer.Option(..., "--key", help="The secret key that omokage faces --key has written."),
    labels: Path = typer.Option(None, "--labels", help="CSV with a column image and true labels; predicted ones without it."),
    html: Path = typer.Option(None, "--html", help="Write a report, one self-contained page."),
    results: Path = typer.Option(None, "--json", help="Write the figures as JSON."),
    generator: Path = typer.Option(None, "--generator", help="The one given to omokage faces, if any."),
    encoder: Path = typer.Option(None, "--encoder", help="The one given to omokage faces, if any."),
    attributes: Path = typer.Option(None, "--attributes", help="The one given to omokage faces, if any."),
    show_originals: bool = typer.Option(
        False, "--show-originals", help="Show originals in the report: then it must not be handed out."
    ),
    workers: int = typer.Option(None, "--workers", help="Processes; all cores if not given."),
) -> None:
    """Attack a release of faces with recognizers and with its own maps, and measure how good its pictures are."""
    import os

    from ..evaluate.faces.evaluation import evaluate_faces
    from ..faces.maps import Networks
    from ..report import face_evaluation_page, require_report_places, write_page, write_results
    from ..report.sentences import face_verdict

    hold(context, html, results, inputs=(photos, release, key, labels, generator, encoder, attributes))
    require_report_places(html, results, release)
    with bars() as show:
        result = evaluate_faces(
            photos, release, key, labels=labels, networks=Networks(generator, encoder, attributes), keep_originals=show_originals,
            workers=workers or os.cpu_count() or 1, progress=show,
        )  # fmt: skip
    if html is not None:
        repeat = shlex.join(["omokage", "faces", "evaluate", photos.name, release.name, "--key", key.name])
        write_page(face_evaluation_page(result, show_originals=show_originals, repeat=repeat), html)
    if results is not None:
        write_results(result.to_json(), results)
    for sentence in face_verdict(result):
        out.print(sentence)
    if html is not None:
        out.print(f"look at   {html}")


def train_attributes(
    context: typer.Context,
    images: Path = typer.Argument(..., help="Folder of face photos."),
    labels: Path = typer.Option(
        ..., "--labels", help="CSV with a column image and one for each attribute, or CelebA's own list."
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for the network."),
    start: str = typer.Option("finetuned", "--start", help="random, frozen or finetuned: the paper's (a), (b), (c)."),
    backbone: str = typer.Option("compact", "--backbone", help="compact, or resnet50 as in the paper."),
    epochs: int = typer.Option(2, "--epochs", help="Passes over the photos."),
    seed: int = typer.Option(0, "--seed", help="Makes it repeatable."),
) -> None:
    """Train the network of the ATTRIBUTE map; goes on where it was if it was stopped."""
    from ..faces.training.attributes import train_attributes as train

    hold(context, output, inputs=(images, labels))
    with bars() as show:
        weights = train(
            images, labels, output, start=start, backbone=backbone, epochs=epochs, seed=seed,  # type: ignore[arg-type]
            progress=lambda at: show(at.part, at.done, at.total),
        )  # fmt: skip
    out.print(f"written   {weights}")


def train_encoder(
    context: typer.Context,
    output: Path = typer.Option(..., "--output", "-o", help="Folder for the encoder and its card."),
    generator: str = typer.Option(
        "mobilestylegan", "--generator", help="Whose samples it learns from: mobilestylegan, or a StyleGAN2's file (.pkl, .pt)."
    ),
    samples: int = typer.Option(4096, "--samples", help="Faces drawn to learn from."),
    seed: int = typer.Option(7, "--seed", help="Makes the samples repeatable."),
) -> None:
    """Train the encoder of the LATENT map on people who do not exist; goes on where it was if it was stopped."""
    from ..faces.training.encoder import train_encoder as train

    hold(context, output)
    with bars() as show:
        learned = train(output, samples, seed, generator, progress=show)
    told = ", ".join(f"{share:.2f}" for share in learned.explained)
    out.print(f"explained {told} of the styles' variance in coarse, middle and fine layers, on samples not seen")
    out.print(f"written   {output / 'encoder.safetensors'}")


def _left_out_place(output: Path) -> Path:
    return output.with_name(output.name + ".left-out.csv")


def _is_left_out(content: bytes) -> bool:
    return content.startswith(b"photo,reason\n")


def _list_left_out(left: tuple[LeftOut, ...], output: Path) -> Path | None:
    """Which photos were left out and why, beside the release and never in it."""
    path = _left_out_place(output)
    if not left:
        return None
    listed = io.StringIO()
    csv.writer(listed, lineterminator="\n").writerows([("photo", "reason"), *((each.photo, each.reason) for each in left)])
    write_new(path, listed.getvalue().encode(), overwrite=True, ours=_is_left_out, private=True)
    for each in left[:10]:
        err.print(f"left out  {each.photo}: {each.reason}")
    return path
