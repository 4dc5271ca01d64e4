"""``omokage learn``, ``audit`` and ``predict``: networks under differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..base.files import require_file, require_folder, write_new
from ..errors import InputError
from .console import out, stages
from .outputs import hold

if TYPE_CHECKING:
    import polars as pl

    from ..learn import Schema

PRIVACY = "Privacy"
TRAINING = "Training"
OUTPUT = "Output"


def register(app: typer.Typer) -> None:
    app.command("learn")(learn)
    app.command("audit")(audit)
    app.command("predict")(predict)


def learn(
    context: typer.Context,
    source: Path = typer.Argument(..., metavar="TABLE", help="CSV, TSV, Parquet or Feather."),
    schema: Path = typer.Option(
        ..., "--schema", help="TOML file that declares what is public: bounds, categories, classes.", rich_help_panel=PRIVACY
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder to write the model to.", rich_help_panel=OUTPUT),
    target: str = typer.Option(None, "--target", help="Column to predict; the schema's unless given.", rich_help_panel=PRIVACY),
    approach: str = typer.Option(
        "dp-sgd",
        "--approach",
        help="anonymizing-first, learning-first, anonymized-learning or dp-sgd.",
        rich_help_panel=PRIVACY,
    ),
    epsilon: float = typer.Option(1.0, "--epsilon", help="Privacy budget; see the two lines it prints.", rich_help_panel=PRIVACY),
    delta: float = typer.Option(1e-5, "--delta", help="Where the (ε, δ) guarantee is read off.", rich_help_panel=PRIVACY),
    sensitivity: str = typer.Option(
        None, "--sensitivity", help="anonymized-learning: l1, element or interval.", rich_help_panel=PRIVACY
    ),
    clip: float = typer.Option(None, "--clip", help="Bound on one record's gradient.", rich_help_panel=PRIVACY),
    marginals: str = typer.Option(None, "--marginals", help="anonymizing-first: tree or label.", rich_help_panel=PRIVACY),
    hidden: str = typer.Option(None, "--hidden", help="Widths of hidden layers, like 32,32.", rich_help_panel=TRAINING),
    epochs: int = typer.Option(None, "--epochs", help="Passes over the records.", rich_help_panel=TRAINING),
    batch_size: int = typer.Option(None, "--batch-size", help="Records in a step.", rich_help_panel=TRAINING),
    learning_rate: float = typer.Option(None, "--learning-rate", help="Step size.", rich_help_panel=TRAINING),
    tuned: str = typer.Option(
        None, "--tuned", help="How these settings were chosen, for the privacy statement.", rich_help_panel=TRAINING
    ),
    synthetic: Path = typer.Option(
        None, "--synthetic", help="anonymizing-first: also write the synthetic table, as CSV.", rich_help_panel=OUTPUT
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a model that is there.", rich_help_panel=OUTPUT),
) -> None:
    """Learn a network that may be given away."""
    from ..learn import APPROACHES, save_model
    from ..learn.saving import require_model
    from ..learn.schema import read_records

    if approach not in APPROACHES:
        raise InputError(f"--approach must be one of {', '.join(sorted(APPROACHES))}, got {approach!r}")
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
    model = APPROACHES[approach](epsilon=epsilon, delta=delta, schema=public)
    model.set_params(**_applicable(model.get_params(), given, approach))
    with stages() as stage:
        stage(f"reading {source.name}")
        frame = read_records(source)
        stage(f"learning from {frame.height} rows")
        model.fit(frame, public.labels(frame))
        stage(f"writing {output}")
        save_model(model, output, overwrite=overwrite)
        if synthetic is not None:
            _write_csv(model.synthetic_, synthetic, overwrite)
    for line in model.privacy_.lines():
        out.print(line, markup=False)
    out.print(f"tuning: {model.privacy_.tuned}", markup=False)


def audit(
    folder: Path = typer.Argument(..., metavar="MODEL", help="A model folder."),
    visible: str = typer.Option("model", "--visible", help="What the attacker sees: model, or bias (the last one alone)."),
    runs: int = typer.Option(1000, "--runs", min=20, help="Trainings in each of two worlds."),
    rows: int = typer.Option(21, "--rows", min=3, help="Rows of the worst-case tables."),
    confidence: float = typer.Option(0.99, "--confidence", help="Of the measured lower bound."),
) -> None:
    """Measure what an attacker learns about one row from a learner with a model's settings."""
    from ..learn import audit as measure
    from ..learn import load_model

    model = load_model(folder)
    with stages() as stage:
        stage(f"training {2 * runs} times")
        result = measure(model, visible=visible, runs=runs, rows=rows, confidence=confidence)
    seen = "the whole release" if result.visible == "model" else "one bias"
    out.print(f"measured from {seen}: ε ≥ {result.epsilon_measured:.3g} with {result.confidence:.1%} confidence", markup=False)
    whole = f"ε = {result.epsilon_whole_model:.6g}"
    out.print(f"claimed for these settings on {rows} rows: {whole} at δ = {result.delta:g}", markup=False)
    if result.epsilon_per_parameter is not None:
        verdict = " (refuted)" if result.refutes_per_parameter else ""
        out.print(f"the paper's ε for each parameter: {result.epsilon_per_parameter:g}{verdict}", markup=False)
    out.print(f"the model's own statement, {model.privacy_.lines()[1]}", markup=False)
    if not result.holds:
        out.print("the claim is refuted", markup=False)
        raise typer.Exit(1)


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
    from ..learn.schema import read_records

    hold(context, output, inputs=(folder, source))
    require_file(output, overwrite=overwrite, ours=_has_columns(["prediction", "probability"]))
    model = load_model(folder)
    chances = model.predict_proba(read_records(source))
    best = chances.argmax(axis=1)
    answers = pl.DataFrame({"prediction": model.classes_[best].tolist(), "probability": chances.max(axis=1)})
    _write_csv(answers, output, overwrite)
    out.print(f"{answers.height} predictions in {output}", markup=False)


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
    import polars as pl

    header = pl.DataFrame(schema=names).write_csv().encode()
    return lambda content: content.startswith(header)


def _write_csv(frame: pl.DataFrame, path: Path, overwrite: bool) -> None:
    write_new(path, frame.write_csv().encode(), overwrite=overwrite, ours=_has_columns(frame.columns))
