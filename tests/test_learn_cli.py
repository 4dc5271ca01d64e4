"""The commands learn, audit and predict."""

from __future__ import annotations

import json
import sys

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from omokage.cli.learn import register
from omokage.errors import InputError, MissingExtra, OutputError
from omokage.learn import APPROACHES, load_model, noise
from omokage.learn.noise import NoiseSource

app = typer.Typer()
register(app)

SCHEMA = """
[target]
column = "rich"
classes = [0, 1]
[columns.age]
low = 0
high = 100
cuts = [30, 60]
whole = true
[columns.job]
categories = ["a", "b", "c"]
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 800)
    frame = pl.DataFrame({"age": age, "job": rng.choice(["a", "b", "c"], 800), "rich": (age > 55).astype(int), "name": "x"})
    frame.write_csv(tmp_path / "table.csv")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def run(files, *arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def learn(files, *more):
    return run(files, "learn", files / "table.csv", "--schema", files / "schema.toml", "-o", files / "model", *more)


@pytest.mark.parametrize("approach", sorted(APPROACHES))
def test_learn_audit_predict(files, approach):
    result = learn(files, "--approach", approach, "--epsilon", "3", "--epochs", "3", "--target", "rich")
    assert result.exit_code == 0
    assert "each parameter on its own" in result.stdout
    assert "whole model, replace-one: ε = " in result.stdout
    answer = run(files, "predict", files / "model", files / "table.csv", "-o", files / "out.csv")
    assert answer.exit_code == 0
    predictions = pl.read_csv(files / "out.csv")
    assert predictions.columns == ["prediction", "probability"]
    assert predictions.height == 800
    assert set(predictions["prediction"]) <= {0, 1}
    sure = ("--runs", "30", "--confidence", "0.999999999")  # secret noise is accused no more often than that allows
    measured = run(files, "audit", files / "model", *sure)
    assert measured.exit_code == 0
    assert "in one step: claimed" in measured.stdout
    assert "whole model at that noise: ε ≥ " in measured.stdout
    assert "as these settings claim for 800 rows: ε = " in measured.stdout
    assert "the model's own statement, whole model, replace-one" in measured.stdout
    attacked = run(files, "audit", files / "model", *sure, "--visible", "model")
    assert attacked.exit_code == 0
    assert "measured from the whole release: ε ≥ " in attacked.stdout


@pytest.mark.parametrize("approach", sorted(APPROACHES))
def test_the_documented_audit_finds_half_of_the_noise(files, approach, monkeypatch):
    """As a user runs it, with secret noise; a miss is rarer than once in 10⁹ audits."""
    learn(files, "--approach", approach, "--epsilon", "1", "--epochs", "3")
    for law in ("laplace", "gaussian"):
        honest = getattr(NoiseSource, law)
        monkeypatch.setattr(NoiseSource, law, lambda self, size, scale, honest=honest: honest(self, size, scale / 2))
    for module in ("learning_first", "histograms"):
        monkeypatch.setattr(
            f"omokage.learn.{module}.release_integers",
            lambda values, sensitivity, epsilon, source: noise.release_integers(values, sensitivity, 2 * epsilon, source),
        )
    result = run(files, "audit", files / "model", "--runs", "1000")
    assert result.exit_code == 1
    assert "REFUTED" in result.stdout
    assert "do not give this model away" in result.stdout


def test_a_statement_that_was_written_over_is_found(files):
    learn(files, "--epochs", "3")
    path = files / "model" / "model.json"
    written = json.loads(path.read_text())
    written["privacy"]["epsilon"] = 0.1
    path.write_text(json.dumps(written))
    result = run(files, "audit", files / "model", "--runs", "30")
    assert result.exit_code == 1
    assert "does NOT follow from its settings" in result.stdout


def test_a_large_epsilon_is_explained(files):
    assert "protects hardly anybody" in learn(files, "--approach", "learning-first", "--epochs", "2").stdout
    assert "protects hardly anybody" not in learn(files, "--epochs", "2", "--overwrite").stdout


def test_delta_zero_is_for_pure_approaches(files):
    shown = learn(files, "--approach", "anonymized-learning", "--delta", "0").stdout
    assert "ε = 1 at δ < 1e-2" in shown
    with pytest.raises(InputError, match="Gaussian"):
        learn(files, "--delta", "0", "--overwrite")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--epsilon", "-1"), "epsilon"),
        (("--delta", "1.5"), "delta"),
        (("--delta", "-1e-9"), "delta"),
        (("--clip", "0"), "clip"),
        (("--learning-rate", "nan"), "learning_rate"),
    ],
)
def test_settings_are_checked_before_the_table_is_read(files, arguments, word):
    (files / "table.csv").unlink()
    with pytest.raises(InputError, match=word):
        learn(files, *arguments)


@pytest.mark.parametrize(
    ("approach", "module"),
    [
        ("dp-sgd", "dp_accounting.pld.privacy_loss_distribution"),
        ("anonymizing-first", "opendp.prelude"),
        ("learning-first", "opendp.prelude"),
        ("dp-sgd", "safetensors.numpy"),
    ],
)
def test_a_missing_extra_is_noticed_before_the_table_is_read(files, approach, module, monkeypatch):
    learn(files, "--approach", approach, "--epochs", "2")
    (files / "table.csv").unlink()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        learn(files, "--approach", approach, "--overwrite")
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        run(files, "audit", files / "model")
    if module == "safetensors.numpy":
        with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
            run(files, "predict", files / "model", files / "none.csv", "-o", files / "out.csv")


def test_a_delta_of_one_over_the_rows_is_refused(files):
    with pytest.raises(InputError, match="publishes one of 800 rows"):
        learn(files, "--delta", "0.00125")


def test_one_class_trains(files):
    """The attack: the command failed for a table of one class and worked for its neighbour."""
    frame = pl.read_csv(files / "table.csv").with_columns(rich=pl.lit(0))
    frame.write_csv(files / "table.csv")
    assert learn(files, "--epochs", "2").exit_code == 0


def test_a_schema_of_wrong_types_is_one_sentence(files):
    (files / "schema.toml").write_text(SCHEMA.replace("classes = [0, 1]", "classes = true"))
    with pytest.raises(InputError, match=r"schema\.toml: \[target\] classes is not a list"):
        learn(files)


def test_papers_figure_is_named_and_never_alone(files):
    shown = learn(files, "--approach", "learning-first", "--epsilon", "1", "--epochs", "2").stdout.splitlines()
    assert "not a guarantee for the model" in shown[0]
    assert "ε = 1" in shown[0]
    assert shown[1].startswith("whole model")
    assert "ε = 1 " not in shown[1]


def test_settings_reach_the_model(files):
    learn(
        files, "--approach", "anonymized-learning", "--sensitivity", "element", "--clip", "0.5",
        "--hidden", "4,3", "--batch-size", "100", "--learning-rate", "0.1", "--tuned", "on last year's table",
    )  # fmt: skip
    model = load_model(files / "model")
    assert (model.sensitivity, model.clip, model.hidden, model.batch_size) == ("element", 0.5, (4, 3), 100)
    assert model.privacy_.tuned == "on last year's table"


def test_synthetic_table_is_written(files):
    learn(files, "--approach", "anonymizing-first", "--synthetic", files / "synthetic.csv", "--marginals", "label")
    table = pl.read_csv(files / "synthetic.csv")
    assert table.columns == ["age", "job", "rich"]
    assert table.height == 800


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--approach", "magic"), "--approach"),
        (("--approach", "learning-first", "--clip", "1"), "--clip does not apply"),
        (("--synthetic", "s.csv"), "--synthetic"),
        (("--hidden", "a,b"), "--hidden"),
        (("--epsilon", "0"), "epsilon"),
        (("--target", "salary"), "salary"),
        (("--delta", "0.5"), "delta"),
    ],
)
def test_mistakes_are_named(files, arguments, word):
    with pytest.raises(InputError, match=word):
        learn(files, *arguments)
    assert not (files / "model").exists()


def test_nothing_is_overwritten(files):
    assert learn(files, "--epochs", "2").exit_code == 0
    with pytest.raises(OutputError, match="exists"):
        learn(files, "--epochs", "2")
    assert learn(files, "--epochs", "2", "--overwrite").exit_code == 0
    (files / "out.csv").write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        run(files, "predict", files / "model", files / "table.csv", "-o", files / "out.csv")


def test_new_rows_must_fit_the_schema(files):
    learn(files, "--epochs", "2")
    pl.DataFrame({"age": [20], "job": ["z"]}).write_csv(files / "new.csv")
    with pytest.raises(InputError, match="'job'"):
        run(files, "predict", files / "model", files / "new.csv", "-o", files / "out.csv")
    with pytest.raises(InputError, match="cannot be read"):
        run(files, "predict", files / "model", files / "none.csv", "-o", files / "out.csv")
