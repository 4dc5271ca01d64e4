"""Models on disk: the same answers, the statement inside, no pickle, nothing half-written."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load, save

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
    learner = DPSGD(schema=SCHEMA, epochs=2).fit(*table)
    folder = save_model(learner, tmp_path / "m")

    def forbidden(*args, **kwargs):
        raise AssertionError("pickle")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    assert load_model(folder).schema_ == learner.schema_


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
    wrong = [
        {"format": "omokage.learn/1"}, {"approach": "x"}, {"layers": [3, 9, 2]}, {"privacy": {}}, {"more": 1},
        {"settled": {"clip": -1}}, {"settled": {"x": 1}}, {"layers": [2**30, 2**30]}, {"weights_sha256": "0"}, {"schema": True},
        {"named_columns": 1},
        {"settings": {}}, {"settings": None}, {"schema": {"columns": {}}}, {"named_columns": False},
    ]  # fmt: skip
    for number, changes in enumerate(wrong):
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


HOSTILE = (
    None, True, False, 0, -1, 2.5, 1e308, -1e308, float("nan"), float("inf"), 10**30, 10**400, "", "x", "inf", "NaN",
    [], {}, [[]], {"a": 1}, [None], ["x"], [0, 1], [2**62], {"": None}, "\x1b[31m", "\ud800", "x" * 5000,
)  # fmt: skip


def places(tree, path=()):
    """Every place in a JSON tree."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def broken(tree, rng):
    """A copy of a JSON tree with one to three places replaced, taken out, doubled or renamed."""
    tree = json.loads(json.dumps(tree))
    for _ in range(int(rng.integers(1, 4))):
        path = list(places(tree))[int(rng.integers(len(list(places(tree)))))]
        holder = tree
        for step in path[:-1]:
            holder = holder[step]
        kind = rng.choice(["replace", "replace", "replace", "remove", "add", "swap"])
        if kind == "replace":
            holder[path[-1]] = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])
        elif kind == "remove":
            del holder[path[-1]]
        elif kind == "add" and isinstance(holder, dict):
            holder["unknown"] = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])
        elif isinstance(holder, dict):
            holder[path[-1]] = copy.deepcopy(next(iter(holder.values())))
    return tree


@pytest.mark.parametrize(
    "learner",
    [AnonymizingFirst(2.0, epochs=1), LearningFirst(2.0, epochs=1, hidden=(3,)), AnonymizedLearning(2.0), DPSGD(2.0, epochs=2)],
    ids=lambda learner: learner.approach,
)
def test_hostile_descriptions_are_refused_in_words(learner, table, tmp_path):
    """Two hundred mutations of each model.json: an error of ours or a model that works, never a traceback."""
    frame, y = table
    folder = save_model(learner.set_params(schema=SCHEMA).fit(frame, y), tmp_path / "m")
    whole = json.loads((folder / "model.json").read_text())
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        text = json.dumps(broken(whole, rng))
        (folder / "model.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            model = load_model(folder)
        except (InputError, VerificationError):
            refused += 1
        else:
            assert all(isinstance(line, str) for line in model.privacy_.lines())
            assert model.predict_proba(frame).shape[0] == 400
            model.check()
    assert refused > 150


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "1", '"x"', "NaN", "[" * 100_000, '{"a":' * 100_000, "\x00", "{} {}",
        '{"format": "omokage.learn/2"}', '{"layers": [' + "9" * 10_000 + "]}",
    ],
    ids=range(13),
)  # fmt: skip
def test_texts_that_are_no_description(text, table, tmp_path):
    folder = save_model(DPSGD(schema=SCHEMA, epochs=2).fit(*table), tmp_path / "m")
    (folder / "model.json").write_text(text)
    with pytest.raises(InputError, match=r"model\.json"):
        load_model(folder)
    (folder / "model.json").write_bytes(b"\xff\xfe" + text.encode())
    with pytest.raises(InputError, match=r"model\.json"):
        load_model(folder)


def with_weights(folder, weights):
    (folder / "network.safetensors").write_bytes(weights)
    change(folder, weights_sha256=hashlib.sha256(weights).hexdigest())


def test_hostile_weights_are_refused_in_words(table, tmp_path):
    """Weights whose hash is right and which are none: cut short, other shapes and types, NaN, two hundred flipped bits."""
    folder = save_model(DPSGD(schema=SCHEMA, epochs=2).fit(*table), tmp_path / "m")
    good = (folder / "network.safetensors").read_bytes()
    tensors = load(good)
    first = "layer0.weight"
    wrong = [
        b"", good[:-1], good[:8], b"\xff" * 64, (2**62).to_bytes(8, "little") + good[8:], good + b"x",
        save({**tensors, "more": np.zeros(1)}), save({k: v for k, v in tensors.items() if k != first}),
        save({**tensors, first: tensors[first].astype(np.float32)}), save({**tensors, first: tensors[first].T.copy()}),
        save({**tensors, first: np.full_like(tensors[first], np.nan)}),
        save({**tensors, first: np.full_like(tensors[first], np.inf)}),
        save({**tensors, first: np.zeros((0, 2))}), b"x" * (2 * 2**20),
    ]  # fmt: skip
    for weights in wrong:
        with_weights(folder, weights)
        with pytest.raises(InputError):
            load_model(folder)
    rng = np.random.default_rng(0)
    for _ in range(200):
        raw = bytearray(good)
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        with_weights(folder, bytes(raw))
        with contextlib.suppress(InputError):
            load_model(folder).predict_proba(table[0])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_links_and_folders_are_refused_at_once(table, tmp_path):
    model = DPSGD(schema=SCHEMA, epochs=2).fit(*table)
    for number, name in enumerate(["model.json", "network.safetensors"]):
        for kind in ("pipe", "link", "folder", "missing", "long"):
            folder = save_model(model, tmp_path / f"{number}{kind}")
            path = folder / name
            kept = path.rename(tmp_path / f"{number}{kind}.kept")
            if kind == "pipe":
                os.mkfifo(path)
            elif kind == "link":
                path.symlink_to(kept)
            elif kind == "folder":
                path.mkdir()
            elif kind == "long":
                with path.open("wb") as sparse:
                    sparse.truncate(2**40)
            with pytest.raises(InputError, match=name.replace(".", r"\.")):
                load_model(folder)


def test_missing_safetensors_is_one_sentence(table, tmp_path, monkeypatch):
    model = DPSGD(schema=SCHEMA, epochs=2).fit(*table)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        save_model(model, tmp_path / "m")
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        load_model(tmp_path / "nowhere")  # said before anything is read


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
        ("[target]\nclasses = true\n[columns.x]\nlow = 0\nhigh = 1", "classes must be a list"),
        ("[target]\nclasses = 'ab'\n[columns.x]\nlow = 0\nhigh = 1", "classes must be a list"),
        ("[target]\nclasses = [[0], [1]]\n[columns.x]\nlow = 0\nhigh = 1", "classes must be texts or finite numbers"),
        ("[target]\nclasses = [1, nan]\n[columns.x]\nlow = 0\nhigh = 1", "classes must be texts or finite numbers"),
        ("[target]\nclasses = [1979-05-27, 2]\n[columns.x]\nlow = 0\nhigh = 1", "classes must be texts or finite numbers"),
        ("[target]\nclasses = [1, '1']\n[columns.x]\nlow = 0\nhigh = 1", "different labels"),
        ("[target]\ncolumn = 3\n[columns.x]\nlow = 0\nhigh = 1", "name must be a text"),
        ("target = 3\n[columns.x]\nlow = 0\nhigh = 1", "must be a table"),
        ("columns = 3", "must be tables"),
        ("columns = []", "must be tables"),
        ("[columns]", "at least one column"),
        ("[columns]\nx = 3", "must be a table"),
        ("[columns.'']\nlow = 0\nhigh = 1", "name must be a text"),
        ("[columns.x]\nlow = true\nhigh = 2", "finite numbers"),
        ("[columns.x]\nlow = '0'\nhigh = 1", "finite numbers"),
        ("[columns.x]\nlow = -inf\nhigh = 1", "finite numbers"),
        ("[columns.x]\nlow = 0\nhigh = 1979-05-27", "finite numbers"),
        ("[columns.x]\nlow = 0\nhigh = 1\ncuts = 0.5", "cuts must be a list"),
        ("[columns.x]\nlow = 0\nhigh = 1\ncuts = ['a']", "finite numbers"),
        ("[columns.x]\nlow = 0\nhigh = 1\nwhole = 'yes'", "whole must be"),
        ("[columns.x]\nlow = 0\nhigh = 1e300\nwhole = true", "whole numbers"),
        ("[columns.x]\ncategories = true", "categories must be a list"),
        ("[columns.x]\ncategories = 'abc'", "categories must be a list"),
        ("[columns.x]\ncategories = []", "categories must be a list"),
        ("[columns.x]\ncategories = [['a']]", "categories must be a list"),
        ("[columns.x]\ncategories = [true]", "categories must be a list"),
        ("[columns.x]\ncategories = ['a']\nother = 3", "other"),
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
