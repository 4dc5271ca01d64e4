"""``omokage demo``: real data that come with the dependencies, anonymized from end to end."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..base.files import publish_folder, require_folder
from ..base.progress import Progress
from ..errors import MissingExtra, ModelError, OutputError
from .console import out, shown
from .options import example
from .outputs import hold

if TYPE_CHECKING:
    import polars as pl

    from ..release.certificate import Certificate
    from ..release.release import Release
    from ..tables import Table

K = 5
CROWD = 32
LIST, FORMAT = "demo.json", "omokage-demo/1"


def register(app: typer.Typer) -> None:
    app.command(
        "demo",
        short_help="Anonymize real data that come with the dependencies.",
        epilog=example("omokage demo -o demo"),
    )(demo)


def demo(
    context: typer.Context,
    output: Path = typer.Option(Path("demo"), "--output", "-o", help="Folder for what the demo makes."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace what an earlier demo made."),
) -> None:
    """Anonymize 569 real patients, 1,797 handwritten digits and a crowd of people who do not exist, and show the results."""
    from .table import summarize

    hold(context, output)
    require_folder(output, overwrite=overwrite, ours=_require_demo)
    made: list[Certificate] = []
    with shown() as say:
        publish_folder(output, lambda stage: made.append(_fill(stage, say)), overwrite=overwrite, ours=_require_demo)
    for picture in ("digits.png", "faces.png"):
        if (output / picture).exists():
            out.print(f"picture   {output / picture}")
    report = output / "report.html"
    summarize(made[0], output / "patients", None, report if report.exists() else None)


def _fill(stage: Path, say: Progress) -> Certificate:
    """All that the demo makes, and a list of it, so that a later demo replaces this and nothing else."""
    from ..method.anonymizer import Anonymizer
    from ..method.grouping import Cells
    from ..method.maps import parse_map
    from ..tables import Roles, read_table

    say("taking 569 patients of the Wisconsin breast cancer study, which come with scikit-learn")
    source = stage / "patients.csv"
    _patients().write_csv(source)
    say(f"anonymizing them: groups of at least {K} in 10 principal components")
    anonymizer = Anonymizer(Cells(K), synthesis_map=parse_map("std+pca:10"), random_state=0)
    roles = Roles(identifier=["patient"], rest="quasi", keep=["diagnosis"])
    table = read_table(source)
    release = anonymizer.release(table, roles=roles, digits=6, progress=say)
    say("writing and checking the written bytes")
    certificate = release.publish(stage / "patients")
    say("drawing handwritten digits before and after")
    draw_digits(stage / "digits.png")
    _report(table, release, stage / "report.html", say)
    _crowd(stage, say)
    listed = json.dumps({"format": FORMAT, "files": _hashes(stage)}, indent=2)
    (stage / LIST).write_text(listed + "\n", encoding="utf-8")
    return certificate


def _hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file; what is neither a file nor a folder has none that could be right."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }


def _require_demo(folder: Path) -> None:
    """Refuse a folder that is not what an earlier demo made, file for file."""
    try:
        listed = json.loads((folder / LIST).read_bytes())
        found = _hashes(folder)
        del found[LIST]
        ours = listed["format"] == FORMAT and listed["files"] == found
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise OutputError(f"{folder} is not what an earlier demo made, or was changed: choose another place")


def _crowd(output: Path, say: Progress) -> None:
    """Draw people who do not exist, anonymize them, and show before and after, where the networks can be had."""
    try:
        from ..faces.crowd import drawn_faces
        from ..faces.maps.morph import Morph
        from ..faces.maps.recognition import Recognition
        from ..faces.resuming import release_folder
        from ..method.anonymizer import Anonymizer
        from ..method.grouping import Cells

        say(f"drawing {CROWD} people who do not exist")
        drawn = drawn_faces(CROWD, say)
        people = output / "crowd"
        people.mkdir()
        for number in range(CROWD):
            (people / f"{number:04d}.png").write_bytes((drawn / f"{number:04d}.png").read_bytes())
        key = output / "crowd-key.json"
        anonymizer = Anonymizer(Cells(4), group_map=Recognition(), synthesis_map=Morph(), random_state=0)
        release_folder(anonymizer, people, output / "faces", key=key, progress=say)
    except (MissingExtra, ModelError) as error:
        say(f"no faces in this demo: {error}")
        return
    draw_faces(people, output / "faces", key, output / "faces.png")


def draw_faces(before: Path, after: Path, key: Path, path: Path) -> Path:
    """Eight people over what became of them."""
    import cv2
    import numpy as np

    from ..faces.image import decoded, encode_picture
    from ..release.certificate import Certificate
    from ..release.key import read_key

    faces = read_key(key, Certificate.read(after)[1]).faces
    linked = [] if faces is None else list(zip(faces.photos, faces.files, strict=True))
    rows = np.full((2 * 256 + 12, 8 * 256, 3), 255, np.uint8)
    for column, (photo, file) in enumerate(linked[:8]):
        left = 256 * column
        original = decoded((before / photo).read_bytes())
        rows[:256, left : left + 256] = cv2.resize(original, (256, 256), interpolation=cv2.INTER_AREA)
        rows[268:, left : left + 256] = decoded((after / "faces" / file).read_bytes())
    path.write_bytes(encode_picture(rows, ".png"))
    return path


def _report(table: Table, release: Release, path: Path, say: Progress) -> Path | None:
    """Attack the release and learn from it; None where no report can be drawn."""
    from ..evaluate import link
    from ..evaluate.evaluation import evaluate
    from ..report import evaluation_page, require_report, write_page

    try:
        require_report()
    except MissingExtra:
        return None
    result = evaluate(link(table, release), target="diagnosis", models=("logistic", "forest"), progress=say)
    return write_page(evaluation_page(result, repeat="omokage demo"), path)


def _patients() -> pl.DataFrame:
    import polars as pl
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = {name.replace(" ", "_"): data.data[:, j] for j, name in enumerate(data.feature_names)}
    diagnosis = [str(data.target_names[t]) for t in data.target]
    names = [f"patient {i + 1:03d}" for i in range(len(diagnosis))]
    return pl.DataFrame({"patient": names, **columns, "diagnosis": diagnosis})


def draw_digits(path: Path) -> Path | None:
    """Twelve digits before and after, for growing k; None where no plotting library is installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    from sklearn.datasets import load_digits

    from ..method.anonymizer import Anonymizer
    from ..method.grouping import Cells, Mondrian
    from ..method.maps import PCA

    digits = load_digits()
    chosen = [int((digits.target == t).nonzero()[0][7]) for t in range(10)]
    rows: list[tuple[str, Any]] = [("original", digits.data)]
    for name, anonymizer in (
        ("k = 10, Mondrian,\nno map", Anonymizer(Mondrian(10), random_state=0)),
        ("k = 10, cells,\nPCA 20", Anonymizer(Cells(10), synthesis_map=PCA(20), random_state=0)),
        ("k = 50, cells,\nPCA 20", Anonymizer(Cells(50), synthesis_map=PCA(20), random_state=0)),
    ):
        release = anonymizer.release(digits.data)
        rows.append((name, release.data[release.key.rows]))
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(rows), len(chosen))
    for line, (name, images) in enumerate(rows):
        for column, i in enumerate(chosen):
            ax = axes[line, column]
            ax.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
            ax.set_xticks([])
            ax.set_yticks([])
            if column == 0:
                ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=11)
    figure.suptitle("Handwritten digits: each picture below the first row is shared by at least k of 1,797", fontsize=12)
    figure.savefig(path, dpi=110)
    return path
