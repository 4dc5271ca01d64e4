"""The commands learn, audit and predict."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from omokage.cli.learn import register
from omokage.errors import InputError, OutputError
from omokage.learn import APPROACHES, load_model

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
    measured = run(files, "audit", files / "model", "--runs", "30")
    assert measured.exit_code == 0
    assert "claimed for these settings on 21 rows: ε = " in measured.stdout
    assert "the model's own statement, whole model, replace-one" in measured.stdout


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
