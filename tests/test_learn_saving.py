"""Models on disk: the same answers, the statement inside, no pickle, nothing half-written."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from omokage.errors import InputError, MissingExtra, OutputError, VerificationError
from omokage.learn import (
    DPSGD,
    AnonymizedLearning,
    AnonymizingFirst,
    Categorical,
    LearningFirst,
    Numeric,
    Schema,
    load_model,
    load_schema,
    save_model,
)

SCHEMA = Schema((Numeric("x", 0, 1), Categorical("c", ("a", "b"), other="b")), "t", ("no", "yes"))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.random(400)
    return pl.DataFrame({"x": x, "c": rng.choice(["a", "b"], 400)}), np.where(x > 0.5, "yes", "no")


@pytest.mark.parametrize(
    "learner",
    [
        AnonymizingFirst(2.0, schema=SCHEMA, epochs=2),
        LearningFirst(2.0, schema=SCHEMA, epochs=2, hidden=(3,)),
        AnonymizedLearning(2.0, schema=SCHEMA, sensitivity="element"),
        DPSGD(2.0, schema=SCHEMA, hidden=(3, 4), epochs=5),
    ],
    ids=lambda learner: learner.approach,
)
def test_round_trip(learner, table, tmp_path):
    frame, y = table
    learner.fit(frame, y)
    loaded = load_model(save_model(learner, tmp_path / "model"))
    assert type(loaded) is type(learner)
    np.testing.assert_array_equal(loaded.predict_proba(frame), learner.predict_proba(frame))
    assert loaded.privacy_ == learner.privacy_
    assert loaded.schema_ == learner.schema_
    assert getattr(loaded, "settings_", None) == getattr(learner, "settings_", None)
    assert loaded.get_params()["epochs"] == learner.epochs
    assert {p.name for p in (tmp_path / "model").iterdir()} == {"network.safetensors", "model.json"}
    assert [p.name for p in tmp_path.iterdir()] == ["model"]  # nothing left behind


def test_matrix_models_keep_bounds_and_classes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2)) * 10
    model = DPSGD(bounds=[(0, 10), (0, 5)], classes=[3, 7], epochs=3).fit(X, np.where(X[:, 0] > 5, 3, 7))
    loaded = load_model(save_model(model, tmp_path / "m"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.fit(X, np.where(X[:, 0] > 5, 3, 7)).privacy_.private


def test_loading_never_unpickles(table, tmp_path, monkeypatch):
    folder = save_model(DPSGD(schema=SCHEMA, epochs=2).fit(*table), tmp_path / "m")

    def forbidden(*args, **kwargs):
        raise AssertionError("pickle")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    load_model(folder)


def test_existing_folders_are_not_replaced(table, tmp_path):
    model = DPSGD(schema=SCHEMA, epochs=2).fit(*table)
    folder = save_model(model, tmp_path / "m")
    with pytest.raises(OutputError, match="exists"):
        save_model(model, folder)
    save_model(model, folder, overwrite=True)
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "model.json").write_text("my own notes on models")
    with pytest.raises(OutputError, match="not a model folder"):
        save_model(model, foreign, overwrite=True)
    (folder / "thesis.txt").write_text("ten years of work")
    with pytest.raises(OutputError, match="holds more than a model"):
        save_model(model, folder, overwrite=True)
    assert (folder / "thesis.txt").exists()
    assert (foreign / "model.json").exists()


def change(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_damaged_models_are_refused(table, tmp_path):
    model = DPSGD(schema=SCHEMA, epochs=2).fit(*table)
    with pytest.raises(InputError, match="not a model folder"):
        load_model(tmp_path)
    for number, changes in enumerate([{"format": "other"}, {"approach": "x"}, {"layers": [3, 9, 2]}, {"privacy": {}}]):
        folder = save_model(model, tmp_path / f"m{number}")
        change(folder, **changes)
        with pytest.raises(InputError):
            load_model(folder)
    folder = save_model(model, tmp_path / "weights")
    raw = bytearray((folder / "network.safetensors").read_bytes())
    raw[-1] ^= 1
    (folder / "network.safetensors").write_bytes(raw)
    with pytest.raises(VerificationError, match="statement"):
        load_model(folder)


def test_missing_safetensors_is_one_sentence(table, tmp_path, monkeypatch):
    model = DPSGD(schema=SCHEMA, epochs=2).fit(*table)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        save_model(model, tmp_path / "m")


TOML = """
[target]
column = "t"
classes = ["no", "yes"]
[columns.x]
low = 0
high = 1
[columns.c]
categories = ["a", "b"]
other = "b"
"""


def test_schema_files(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(TOML)
    assert load_schema(path) == SCHEMA
    assert Schema.from_json(json.loads(json.dumps(SCHEMA.to_json()))) == SCHEMA


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = [", "not TOML"),
        ("[target]\ncolumn = 't'", "missing"),
        ("[columns.x]\nlow = 1\nhigh = 0", "rise"),
        ("[columns.x]\nlow = 0\nhigh = 1\ncuts = [2]", "rise"),
        ("[columns.x]\nlow = 0\nhigh = 1\nlwo = 3", "unknown"),
        ("[columns.x]\ncategories = ['a', 'a']", "repetition"),
        ("[columns.x]\ncategories = ['a']\nother = 'b'", "other"),
        ("[target]\ncolumn = 'x'\n[columns.x]\nlow = 0\nhigh = 1", "twice"),
        ("[target]\nclasses = ['a']\n[columns.x]\nlow = 0\nhigh = 1", "classes"),
    ],
)
def test_bad_schemas_name_file_and_rule(text, word, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=word) as caught:
        load_schema(path)
    assert "bad.toml" in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        load_schema(tmp_path / "none.toml")


def test_importing_is_light():
    code = "import sys, omokage.learn; print(sorted({'torch', 'opendp', 'dp_accounting', 'safetensors'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
