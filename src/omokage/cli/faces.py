"""``omokage faces``: anonymize a folder of photos, judge it, and train what its maps need."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ..base.files import require_file, write_new
from ..base.words import counted
from ..faces.maps import FACE_MAPS
from ..method.grouping import GROUPERS
from ..networks.generators import generator_choices
from .console import err, note, out, shown
from .options import example, one_of, part_of
from .outputs import hold

if TYPE_CHECKING:
    from ..faces.survey import LeftOut

PEOPLE, METHOD, OUTPUT, OTHERS = "People", "Method", "Output", "Other commands (omokage faces COMMAND --help)"
# What the library takes; listed here because importing it takes a second. A test compares the two.
FORMATS, BACKBONES = ("png", "jpg", "webp"), {"compact": "small and quick", "resnet50": "the paper's"}
PERSON_FROM = {"folder": "the folder that it is in", "csv": "the table --persons"}
GENERATOR = f"Whose samples it learns from: {generator_choices()}."
STARTS = {"random": "untrained", "frozen": "pretrained, and only the end learns", "finetuned": "pretrained, and all of it learns"}


class _Faces(TyperGroup):
    """``omokage faces PHOTOS …`` anonymizes: a first word that names no other command is the folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = ["anonymize", *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The page of the command that people mean, and below it the other commands."""
        meant, shown = self.commands["anonymize"], copy(self)
        shown.help, shown.epilog, shown.params = meant.help, meant.epilog, meant.params
        shown.subcommand_metavar = ""
        super(_Faces, shown).format_help(ctx, formatter)


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=_Faces,
        no_args_is_help=True,
        help="Anonymize a folder of photos of faces, and judge the release.",
    )
    group.command(
        "anonymize",
        epilog=example("omokage faces photos -o released --k 8"),
        hidden=True,  # the word itself may be left out
    )(anonymize)
    group.command(
        "evaluate",
        short_help="Attack a release of faces, and measure its pictures.",
        epilog=example("omokage faces evaluate photos released --key key.json"),
        rich_help_panel=OTHERS,
    )(evaluate)
    group.command(
        "forget",
        short_help="Remove what an interrupted run has kept.",
        epilog=example("omokage faces forget released"),
        rich_help_panel=OTHERS,
    )(forget)
    group.command(
        "train-attributes",
        short_help="Train the network of the ATTRIBUTE map.",
        epilog=example("omokage faces train-attributes photos --labels labels.csv -o attributes"),
        rich_help_panel=OTHERS,
    )(train_attributes)
    group.command(
        "train-encoder",
        short_help="Train the encoder of the LATENT map.",
        epilog=example("omokage faces train-encoder -o encoder --samples 4096"),
        rich_help_panel=OTHERS,
    )(train_encoder)
    app.add_typer(group, name="faces")


def anonymize(
    context: typer.Context,
    photos: Path = typer.Argument(..., metavar="PHOTOS", help="Folder of photos, searched recursively."),
    k: int = typer.Option(..., "--k", help="Least number of people that share a face.", rich_help_panel=METHOD),
    group_map: str = typer.Option(
        "recognition", "--group-map", rich_help_panel=METHOD, **part_of(FACE_MAPS, "Space to group in", can="group")
    ),
    synthesis_map: str = typer.Option(
        "morph", "--synthesis-map", rich_help_panel=METHOD, **part_of(FACE_MAPS, "Space to average in", can="synthesize")
    ),
    grouping: str = typer.Option("cells", "--grouping", **part_of(GROUPERS, "How to find groups"), rich_help_panel=METHOD),
    texture: float = typer.Option(
        1.0, "--texture", help="How much of the fine contrast that averaging takes to give back, 0 to 1.", rich_help_panel=METHOD
    ),
    steps: int = typer.Option(
        0,
        "--steps",
        help="Steps of inversion after the encoder (latent); more is closer and slower.",
        rich_help_panel=METHOD,
    ),
    person_from: str = typer.Option(
        None,
        "--person-from",
        **one_of(PERSON_FROM, "What says whom each photo shows; k then counts people"),
        rich_help_panel=PEOPLE,
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
    workers: int = typer.Option(None, "--workers", help="Processes.", show_default="all cores", rich_help_panel=METHOD),
    output: Path = typer.Option(..., "--output", "-o", help="Folder to write; must not exist.", rich_help_panel=OUTPUT),
    size: int = typer.Option(256, "--size", help="Side of the released faces in pixels.", rich_help_panel=OUTPUT),
    format_: str = typer.Option("png", "--format", **one_of(FORMATS, "File format"), rich_help_panel=OUTPUT),
    key: Path = typer.Option(
        None, "--key", help="Also write the secret link from photos to released faces, here.", rich_help_panel=OUTPUT
    ),
    sign: Path = typer.Option(
        None, "--sign", help="Private key (omokage keygen) to sign the certificate with.", rich_help_panel=OUTPUT
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier release.", rich_help_panel=OUTPUT),
) -> None:
    """Anonymize a folder of photos: each released face is the same picture for at least k people.

    An interrupted run resumes when you repeat the command.
    Until then, a private folder beside the output keeps the faces it found; omokage faces forget removes them.
    """
    from ..faces.maps import Networks, make_face_map
    from ..faces.resuming import release_folder
    from ..method.anonymizer import Anonymizer
    from ..method.grouping import parse_grouper

    hold(context, output, key, inputs=(photos, persons, generator, encoder, attributes))
    require_file(_left_out_place(output), overwrite=True, ours=_is_left_out)
    networks = Networks(generator, encoder, attributes)
    anonymizer = Anonymizer(
        parse_grouper(grouping, k),
        group_map=make_face_map(group_map, group=True, networks=networks, size=size, steps=steps),
        synthesis_map=make_face_map(synthesis_map, networks=networks, size=size, texture=texture, steps=steps),
        random_state=seed,
    )
    with _kept(output), shown() as progress:
        certificate, left_out = release_folder(
            anonymizer, photos, output, key=key, sign=sign, overwrite=overwrite, progress=progress, person_from=person_from,
            persons=persons, every_face=every_face, aligned=aligned, format=format_, workers=workers,
        )  # fmt: skip
    report = _list_left_out(left_out, output)
    found = certificate.found
    for each in certificate.notes:
        note(each)
    if report:
        out.print(f"left out  {report} names the photos and the reasons; it is not part of the release")
    told = f"{counted(found.rows, 'face')}, {counted(found.groups, 'different picture')}"
    out.print(f"released  {told}: {output / 'faces'}")
    out.print(f"found     k = {found.k} on the written bytes ({k} asked, in {certificate.counted})")
    out.print(f"look at   {output / 'CERTIFICATE.md'}" + (f"; the secret key: {key}" if key else ""))


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
    labels: Path = typer.Option(
        None, "--labels", help="CSV with a column image and true labels.", show_default="labels that a network predicts"
    ),
    html: Path = typer.Option(None, "--html", help="Write a report, one self-contained page."),
    results: Path = typer.Option(None, "--json", help="Write the figures as JSON."),
    generator: Path = typer.Option(None, "--generator", help="The one given to omokage faces, if any."),
    encoder: Path = typer.Option(None, "--encoder", help="The one given to omokage faces, if any."),
    attributes: Path = typer.Option(None, "--attributes", help="The one given to omokage faces, if any."),
    show_originals: bool = typer.Option(
        False, "--show-originals", help="Show originals in the report: then it must not be handed out."
    ),
    workers: int = typer.Option(None, "--workers", help="Processes.", show_default="all cores"),
) -> None:
    """Attack a release of faces with recognizers and with its own maps, and measure how good its pictures are."""
    from ..base.threads import all_cores
    from ..evaluate.faces.evaluation import evaluate_faces
    from ..faces.maps import Networks
    from ..report import face_evaluation_page, require_report_places, write_page, write_results
    from ..report.sentences import face_verdict

    hold(context, html, results, inputs=(photos, release, key, labels, generator, encoder, attributes))
    require_report_places(html, results, release)
    with shown() as show:
        result = evaluate_faces(
            photos, release, key, labels=labels, networks=Networks(generator, encoder, attributes), keep_originals=show_originals,
            workers=workers or all_cores(), progress=show,
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
    images: Path = typer.Argument(..., metavar="PHOTOS", help="Folder of face photos."),
    labels: Path = typer.Option(
        ..., "--labels", help="CSV with a column image and one for each attribute, or CelebA's own list."
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for the network."),
    start: str = typer.Option("finetuned", "--start", **one_of(STARTS, "What training starts from")),
    backbone: str = typer.Option("compact", "--backbone", **one_of(BACKBONES, "The network")),
    epochs: int = typer.Option(2, "--epochs", help="Passes over the photos."),
    seed: int = typer.Option(0, "--seed", help="Makes it repeatable."),
) -> None:
    """Train the network of the ATTRIBUTE map. An interrupted run resumes when you repeat the command."""
    from ..faces.training.attributes import train_attributes as train

    hold(context, output, inputs=(images, labels))
    with shown() as show:
        weights = train(
            images, labels, output, start=start, backbone=backbone, epochs=epochs, seed=seed,  # type: ignore[arg-type]
            progress=show,
        )  # fmt: skip
    out.print(f"written   {weights}")


def train_encoder(
    context: typer.Context,
    output: Path = typer.Option(..., "--output", "-o", help="Folder for the encoder and its card."),
    generator: str = typer.Option("mobilestylegan", "--generator", metavar="GENERATOR", help=GENERATOR),
    samples: int = typer.Option(4096, "--samples", help="Faces drawn to learn from."),
    seed: int = typer.Option(7, "--seed", help="Makes the samples repeatable."),
) -> None:
    """Train the encoder of the LATENT map on people who do not exist. An interrupted run resumes when you repeat the command."""
    from ..faces.training.encoder import train_encoder as train

    hold(context, output)
    with shown() as show:
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
