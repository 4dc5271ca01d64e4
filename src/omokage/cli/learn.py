"""``omokage learn``, ``audit`` and ``predict``: networks under differential privacy."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..base.files import require_file, require_folder, write_new
from ..errors import InputError
from .console import out, shown
from .options import example, one_of
from .outputs import hold

if TYPE_CHECKING:
    import polars as pl

    from ..learn import Attack, Audit, Privacy, Schema

PRIVACY = "Privacy"
TRAINING = "Training"
OUTPUT = "Output"
# What the library takes; listed here because importing it takes a second. A test compares the two.
APPROACHES = ("anonymizing-first", "learning-first", "anonymized-learning", "dp-sgd")
SENSITIVITIES, MARGINALS = ("l1", "element", "interval"), ("tree", "label")
VISIBLE = {"steps": "every noisy step", "model": "the whole release", "bias": "the last bias alone"}


def register(app: typer.Typer) -> None:
    app.command(
        "learn",
        short_help="Train a network under differential privacy.",
        epilog=example("omokage learn adult.csv --schema adult.toml -o model --epsilon 1"),
    )(learn)
    app.command(
        "audit",
        short_help="Measure what an attacker learns about one row from a model.",
        epilog=example("omokage audit model --runs 1000"),
    )(audit)
    app.command(
        "predict",
        short_help="Predict the target of new rows with a saved model.",
        epilog=example("omokage predict model adult.csv -o predictions.csv"),
    )(predict)


def learn(
    context: typer.Context,
    source: Path = typer.Argument(..., metavar="TABLE", help="CSV, TSV, Parquet or Feather."),
    schema: Path = typer.Option(
        ..., "--schema", help="TOML file that declares what is public: bounds, categories, classes.", rich_help_panel=PRIVACY
    ),
    target: str = typer.Option(
        None, "--target", metavar="COLUMN", help="Column to predict.", show_default="the schema's", rich_help_panel=PRIVACY
    ),
    approach: str = typer.Option("dp-sgd", "--approach", **one_of(APPROACHES, "How to learn"), rich_help_panel=PRIVACY),
    epsilon: float = typer.Option(
        1.0, "--epsilon", help="Privacy budget; the command prints what it means.", rich_help_panel=PRIVACY
    ),
    delta: float = typer.Option(
        None,
        "--delta",
        help="δ of the guarantee, below one over the number of rows; 0 for a pure ε, not with dp-sgd.",
        show_default="1e-5, or half of one over the number of rows if that is smaller",
        rich_help_panel=PRIVACY,
    ),
    sensitivity: str = typer.Option(
        None, "--sensitivity", **one_of(SENSITIVITIES, "For anonymized-learning"), rich_help_panel=PRIVACY
    ),
    clip: float = typer.Option(None, "--clip", help="Bound on one record's gradient.", rich_help_panel=PRIVACY),
    marginals: str = typer.Option(None, "--marginals", **one_of(MARGINALS, "For anonymizing-first"), rich_help_panel=PRIVACY),
    hidden: str = typer.Option(
        None, "--hidden", metavar="NUMBERS", help="Widths of hidden layers: 32,32.", rich_help_panel=TRAINING
    ),
    epochs: int = typer.Option(None, "--epochs", help="Passes over the records.", rich_help_panel=TRAINING),
    batch_size: int = typer.Option(None, "--batch-size", help="Records in a step.", rich_help_panel=TRAINING),
    learning_rate: float = typer.Option(None, "--learning-rate", help="Step size.", rich_help_panel=TRAINING),
    tuned: str = typer.Option(
        None,
        "--tuned",
        metavar="TEXT",
        help="How these settings were chosen, for the privacy statement.",
        rich_help_panel=TRAINING,
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder to write the model to.", rich_help_panel=OUTPUT),
    synthetic: Path = typer.Option(
        None, "--synthetic", help="For anonymizing-first: also write the synthetic table, as CSV.", rich_help_panel=OUTPUT
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a model that is there.", rich_help_panel=OUTPUT),
) -> None:
    """Train a network under differential privacy, so that you can give it away."""
    from ..learn import APPROACHES as LEARNERS
    from ..learn import save_model
    from ..learn.records import read_records
    from ..learn.saving import require_model, safetensors

    hold(context, output, synthetic, inputs=(source, schema))
    require_folder(output, overwrite=overwrite, ours=require_model)
    if synthetic is not None and approach != "anonymizing-first":
        raise InputError("--synthetic needs --approach anonymizing-first: the others make no table")
    public = _schema(schema, target)
    if synthetic is not None:
        expected = [*(column.name for column in public.columns), public.target]
        require_file(synthetic, overwrite=overwrite, ours=_has_columns(expected))
    given = {
        "sensitivity": sensitivity,
        "clip": clip,
        "marginals": marginals,
        "hidden": None if hidden is None else _widths(hidden),
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "tuned": tuned,
    }
    model = LEARNERS[approach](epsilon=epsilon, delta=delta, schema=public)
    model.set_params(**_applicable(model.get_params(), given, approach))
    model.check()
    safetensors()
    with shown() as stage:
        stage(f"reading {source.name}")
        frame = read_records(source)
        stage(f"learning from {frame.height} rows")
        model.fit(frame, public.labels(frame))
        stage(f"writing {output}")
        save_model(model, output, overwrite=overwrite)
        if synthetic is not None:
            _write_csv(model.synthetic_, synthetic, overwrite)
    for line in model.privacy_.lines():
        out.print(line)
    out.print(f"tuning: {model.privacy_.tuned}")


def audit(
    folder: Path = typer.Argument(..., metavar="MODEL", help="A model folder."),
    visible: str = typer.Option("steps", "--visible", **one_of(VISIBLE, "What the attacker sees")),
    runs: int = typer.Option(1000, "--runs", min=20, help="Runs in each of two worlds."),
    rows: int = typer.Option(None, "--rows", min=3, help="Rows of the worst-case tables, for model and bias.", show_default="21"),
    confidence: float = typer.Option(0.999, "--confidence", help="Of the measured lower bounds."),
) -> None:
    """Measure what an attacker learns about one row from a learner with a model's settings."""
    from ..learn import attack, load_model
    from ..learn import audit as measure

    if rows is not None and visible == "steps":
        raise InputError("--rows needs --visible model or bias: steps are audited for the model's own number of rows")
    model = load_model(folder)
    model.check()
    if visible == "steps":
        with shown() as stage:
            stage(f"running every step {2 * runs} times")
            audited = measure(model, runs=runs, confidence=confidence)
        held = _show_audit(audited, model.privacy_)
    else:
        with shown() as stage:
            stage(f"training {2 * runs} times")
            attacked = attack(model, visible=visible, runs=runs, rows=rows or 21, confidence=confidence)
        held = _show_attack(attacked)
    if not held:
        out.print("the claim is REFUTED: do not give this model away")
        raise typer.Exit(1)
    out.print("no claim is refuted")


def _show_audit(result: Audit, privacy: Privacy) -> bool:
    for f in result.findings:
        times = f"{f.count} × " if f.count > 1 else ""
        verdict = "" if f.holds else ": REFUTED"
        found = f"claimed {f.claimed:.4g}, measured ≥ {f.measured:.4g}{verdict}"
        if f.measure == "rate":
            out.print(f"{f.name}: a row is drawn with probability {found}")
        else:
            out.print(f"{times}{f.name}: {f.measure} of one row in one step: {found}")
            moved = "" if f.moved <= 1.0 else ": REFUTED"
            out.print(f"    the worst row found moves it by {f.moved:.1%} of what the noise covers{moved}")
    confidence = f"{result.confidence:.1%} confidence"
    out.print(f"whole model at that noise: ε ≥ {result.epsilon_measured:.4g} at δ = {result.delta:g} with {confidence}")
    out.print(f"whole model as these settings claim for {result.records} rows: ε = {result.epsilon_claimed:.6g}")
    follows = "" if result.statement_follows else ", which does NOT follow from its settings"
    out.print(f"the model's own statement, {privacy.lines()[1]}{follows}")
    return result.holds


def _show_attack(result: Attack) -> bool:
    seen = "the whole release" if result.visible == "model" else "one bias"
    out.print(f"measured from {seen}: ε ≥ {result.epsilon_measured:.3g} with {result.confidence:.1%} confidence")
    out.print(f"claimed for these settings on the attacked table: ε = {result.epsilon_whole_model:.6g} at δ = {result.delta:g}")
    if result.epsilon_per_parameter is not None:
        verdict = " (refuted)" if result.refutes_per_parameter else ""
        out.print(f"the paper's ε for each parameter: {result.epsilon_per_parameter:g}{verdict}")
    return result.holds


def predict(
    context: typer.Context,
    folder: Path = typer.Argument(..., metavar="MODEL", help="A model folder."),
    source: Path = typer.Argument(..., metavar="TABLE", help="CSV or Parquet with the schema's columns."),
    output: Path = typer.Option(..., "--output", "-o", help="CSV file to write: a prediction and its probability a row."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the file if it is there."),
) -> None:
    """Predict the target of new rows with a saved model."""
    import polars as pl

    from ..learn import load_model
    from ..learn.records import read_records

    hold(context, output, inputs=(folder, source))
    require_file(output, overwrite=overwrite, ours=_has_columns(["prediction", "probability"]))
    model = load_model(folder)
    chances = model.predict_proba(read_records(source))
    best = chances.argmax(axis=1)
    answers = pl.DataFrame({"prediction": model.classes_[best].tolist(), "probability": chances.max(axis=1)})
    _write_csv(answers, output, overwrite)
    out.print(f"{answers.height} predictions in {output}")


def _schema(path: Path, target: str | None) -> Schema:
    from ..learn import Schema, load_schema

    schema = load_schema(path)
    if target is None or target == schema.target:
        return schema
    return Schema(tuple(c for c in schema.columns if c.name != target), target, schema.classes)


def _applicable(known: dict[str, Any], given: dict[str, Any], approach: str) -> dict[str, Any]:
    """The options that were given; one that the approach does not have is an error, not silence."""
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in known:
            raise InputError(f"--{name.replace('_', '-')} does not apply to {approach}")
    return chosen


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--hidden takes whole numbers with commas, got {text!r}") from None


def _has_columns(names: list[str]) -> Callable[[bytes], bool]:
    """Whether a file is a CSV with exactly these columns: then it may be an earlier one of ours, and be replaced."""
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(names)
    return lambda content: content.startswith(header.getvalue().encode())


def _write_csv(frame: pl.DataFrame, path: Path, overwrite: bool) -> None:
    write_new(path, frame.write_csv().encode(), overwrite=overwrite, ours=_has_columns(frame.columns))
