"""Help pages, examples, choices, and parts of the user's own on the command line."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import get_args

import numpy as np
import polars as pl
import pytest
import typer
from test_learn_cli import SCHEMA

from omokage import cli, errors
from omokage.cli import evaluate as evaluate_command
from omokage.cli import faces, learn, options, photo, table
from omokage.faces.maps import FACE_MAPS
from omokage.method.grouping import GROUPERS
from omokage.method.maps import MAPS
from omokage.networks.generators import GENERATORS


def commands(group, path=("omokage",)):
    """Every command with its words, groups among them."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        if getattr(command, "commands", None):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ROOT = typer.main.get_command(cli.app)
ALL = dict(commands(ROOT))
LEAVES = {path: command for path, command in ALL.items() if not getattr(command, "commands", None)}


def page(run, *words, width=80, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    result = run(*words)
    return result, result.out + result.err


def text_of(page):
    """A help page as running text: no borders, no line breaks."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", page).split())


# ------------------------------------------------------------------------------------------ pages


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_page_fits_and_cuts_nothing_off(run, monkeypatch, path, width):
    result, shown = page(run, *path[1:], "--help", width=width, monkeypatch=monkeypatch)
    assert result.code == 0
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "…" not in shown  # what does not fit ends in dots


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_option_is_explained(path):
    for option in LEAVES[path].params:
        assert option.help, f"{' '.join(path)} {option.name}"
        assert option.help.endswith("."), f"{' '.join(path)} {option.name}"


def test_the_first_page_has_one_line_for_each_command_in_order(run, monkeypatch):
    _, shown = page(run, "--help", monkeypatch=monkeypatch)
    lines = [line.strip("│ ").split()[0] for line in shown.splitlines() if re.match(r"│ +[a-z]", line)]
    assert lines == list(cli.COMMANDS)  # in that order, and no line that only goes on
    assert set(cli.COMMANDS) == {path[1] for path in ALL if len(path) > 1}
    assert run().out.strip() == run("--help").out.strip()


def test_the_page_of_faces_is_that_of_anonymizing(run, monkeypatch):
    _, shown = page(run, "faces", "--help", monkeypatch=monkeypatch)
    _, meant = page(run, "faces", "anonymize", "--help", monkeypatch=monkeypatch)
    for option in LEAVES["omokage", "faces", "anonymize"].params:
        if option.name != "photos":
            assert f" {option.opts[0]} " in shown
    assert "omokage faces [OPTIONS]" in shown
    assert "COMMAND [ARGS]" not in shown
    assert "omokage faces photos -o released --k 8" in shown
    for name in ("evaluate", "forget", "train-attributes", "train-encoder"):
        assert re.search(rf"│ {name} +[A-Z]", shown), name
    assert "│ anonymize" not in shown
    assert meant.splitlines()[3:8] == shown.splitlines()[3:8]
    alone, printed = page(run, "faces", monkeypatch=monkeypatch)
    assert printed.strip() == shown.strip()
    assert alone.code in (0, 2)  # as the library's version has it
    assert run("faces", "photos", "--help").out == run("faces", "anonymize", "--help").out


def test_help_needs_nothing_heavy():
    code = (
        "import sys; from omokage.cli import main\n"
        "try: main(['table', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'numba', 'polars', 'torch', 'cv2') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


# ------------------------------------------------------------------------------------------ examples


def example_of(command):
    word, line = (command.epilog or "").split("\n")
    assert word == "Example:"
    assert len(line) <= 78  # in one line of a narrow terminal, so that it can be copied
    return shlex.split(line)[1:]


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_has_an_example_that_it_understands(path, monkeypatch):
    understood = []
    monkeypatch.setattr(LEAVES[path], "callback", lambda **given: understood.append(given))  # all but the command itself
    ROOT.main(example_of(LEAVES[path]), prog_name="omokage", standalone_mode=False)
    assert len(understood) == 1
    assert set(understood[0]) >= {option.name for option in LEAVES[path].params}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the tables that the examples name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    people = pl.DataFrame({"zip": [f"{z:04d}" for z in rng.integers(100, 140, 40)], "age": rng.integers(20, 70, 40), "name": "x"})
    people.write_csv("patients.csv")
    age = rng.integers(0, 100, 800)
    pl.DataFrame({"age": age, "job": rng.choice(["a", "b", "c"], 800), "rich": (age > 55).astype(int)}).write_csv("adult.csv")
    (tmp_path / "adult.toml").write_text(SCHEMA)
    return tmp_path


def run_example(run, *path, more=()):
    result = run(*example_of(LEAVES["omokage", *path]), *more)
    assert result.code == 0, result.err
    return result


def test_examples_about_tables_run(run, desk):
    run_example(run, "keygen")
    run_example(run, "table", more=("--key", "key.json", "--sign", "signing.key"))
    assert "k = " in run_example(run, "verify", more=("--signer", "signing.key.pub")).out
    assert "links" in run_example(run, "evaluate").out
    assert run_example(run, "faces", "forget").out.startswith("nothing is kept")
    for made in ("signing.key.pub", "released/certificate.json", "report.html"):
        assert (desk / made).is_file(), made


def test_examples_about_learning_run(run, desk):
    run_example(run, "learn", more=("--epochs", "2"))
    assert "no claim is refuted" in run_example(run, "audit", more=("--runs", "20")).out
    assert "800 predictions" in run_example(run, "predict").out


def test_examples_about_networks_run(run, tmp_path, monkeypatch):
    monkeypatch.setenv("OMOKAGE_HOME", str(tmp_path))
    assert "arcface" in run_example(run, "models", "list").out
    assert str(tmp_path) in run_example(run, "models", "where").out.replace("\n", "")


# ------------------------------------------------------------------------------------------ choices


def test_choices_are_those_of_the_library():
    from omokage.evaluate.utility import MODELS
    from omokage.faces.group_photo import Way
    from omokage.faces.maps.attribute import BACKBONES
    from omokage.faces.training.attributes import STARTS
    from omokage.learn import APPROACHES
    from omokage.learn.anonymized_learning import SENSITIVITIES
    from omokage.learn.anonymizing_first import MARGINALS
    from omokage.tables.encode import SCALES
    from omokage.tables.roles import Rest
    from omokage.tables.table import KINDS
    from omokage.tables.unify import UNIFIERS
    from omokage.tables.unify.notes import RARES

    for offered, taken in (
        (table.SCALES, SCALES), (table.RESTS, get_args(Rest)), (table.RARES, RARES), (table.KINDS, KINDS),
        (table.COLUMN_UNIFIERS, UNIFIERS), (evaluate_command.MODELS, MODELS), (photo.WAYS, get_args(Way)),
        (learn.APPROACHES, APPROACHES), (learn.SENSITIVITIES, SENSITIVITIES), (learn.MARGINALS, MARGINALS),
        (faces.STARTS, STARTS), (faces.BACKBONES, BACKBONES),
    ):  # fmt: skip
        assert set(offered) == set(taken)
        assert len(offered) == len(taken)


CHOICES = [
    (path, option) for path, command in LEAVES.items() for option in command.params if option.metavar == "CHOICE"
]  # fmt: skip


def test_there_are_choices_to_test():
    assert {option.opts[0] for _, option in CHOICES} == {
        "--rest", "--unifier", "--scale", "--rare", "--model", "--way", "--person-from", "--format", "--start", "--backbone",
        "--approach", "--sensitivity", "--marginals", "--visible",
    }  # fmt: skip


@pytest.mark.parametrize(("path", "option"), CHOICES, ids=lambda each: each[-1] if isinstance(each, tuple) else each.opts[0])
def test_a_wrong_choice_is_one_sentence_and_2(run, desk, path, option):
    result = run(*example_of(LEAVES[path]), option.opts[0], "banana")
    assert result.code == 2
    assert result.out == ""
    assert re.fullmatch(rf"omokage: {option.opts[0]} does not take 'banana': choose [\w, -]+ or [\w-]+\n", result.err)
    for name in re.split(", | or ", result.err.strip().partition(": choose ")[2]):
        assert name in option.help  # the page lists what the message lists


def test_choices_take_commas_only_where_several_may_be_given():
    several, one = options.one_of(("a", "b"), "x")["callback"], options.one_of(("a", "b"), "x")["callback"]
    param = LEAVES["omokage", "evaluate"].params[4]
    assert several(param, ["a,b", "a"]) == ["a,b", "a"]
    with pytest.raises(errors.InputError, match=r"does not take 'a,b'"):
        one(param, "a,b")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tabel",), "no such command 'tabel'"),
        (("table", "x.csv"), "missing option '--quasi': see omokage table --help"),
        (("table", "x.csv", "--colour", "red"), "no such option: --colour"),
        (("faces", "photos", "--k", "many"), "invalid value for '--k'"),
        (("models", "fetch"), "no such command 'fetch'"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_2(run, words, said):
    result = run(*words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("omokage: ")
    assert said in result.err
    assert result.err.count("\n") == 1
    assert re.search(r"[:?] [Ss]ee omokage( \w+)* --help\n$", result.err)


@pytest.mark.parametrize(
    ("path", "option", "registry"),
    [
        (("table",), "--map", MAPS),
        (("table",), "--group-map", MAPS),
        (("table",), "--synthesis-map", MAPS),
        (("table",), "--grouping", GROUPERS),
        (("compare",), "--map", MAPS),
        (("compare",), "--grouping", GROUPERS),
        (("faces", "anonymize"), "--grouping", GROUPERS),
        (("faces", "anonymize"), "--group-map", FACE_MAPS),
        (("faces", "anonymize"), "--synthesis-map", FACE_MAPS),
    ],
)
def test_pages_list_the_registry(path, option, registry):
    (found,) = [each for each in LEAVES["omokage", *path].params if option in each.opts]
    ability = {"--group-map": "group", "--synthesis-map": "synthesize"}.get(option) if registry is FACE_MAPS else None
    for entry in registry.able(ability) if ability else registry.entries:
        assert entry.usage.replace(",", ", ") in found.help
    assert "package.module:Class" in found.help


def test_the_page_of_the_encoder_lists_generators(run, monkeypatch):
    _, shown = page(run, "faces", "train-encoder", "--help", width=120, monkeypatch=monkeypatch)
    for entry in GENERATORS.entries:
        assert (entry.name if "fetch" in entry.can else entry.title) in text_of(shown)
        assert all(ending in text_of(shown) for ending in entry.files)


# ------------------------------------------------------------------------------------------ one's own

OWN = '''
"""What a user writes who has read how to, and nothing else."""
import numpy as np
from sklearn.base import BaseEstimator

class Whiten(BaseEstimator):
    """Columns without correlation."""
    def __init__(self, components=2, eps=1e-9):
        self.components, self.eps = components, eps
    def fit(self, x, y=None):
        self.mean_ = x.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(x.T))
        self.axes_ = vectors[:, -self.components:]
        self.scale_ = np.sqrt(values[-self.components:] + self.eps)
        return self
    def transform(self, x): return (x - self.mean_) @ self.axes_ / self.scale_
    def fit_transform(self, x, y=None): return self.fit(x).transform(x)
    def inverse_transform(self, z): return z * self.scale_ @ self.axes_.T + self.mean_

class InOrder(BaseEstimator):
    """Groups of neighbours along the first column."""
    def __init__(self, k, extra=0): self.k, self.extra = k, extra
    def fit_predict(self, z, y=None):
        place = np.argsort(np.argsort(np.asarray(z)[:, 0], kind="stable"))
        return np.minimum(place // (self.k + self.extra), len(place) // (self.k + self.extra) - 1)
'''


@pytest.fixture
def workbench(tmp_path, monkeypatch):
    """The user's folder, with a module of their own in it and a table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    (tmp_path / "mymaps.py").write_text(OWN)
    np.save(tmp_path / "t.npy", np.random.default_rng(0).gamma(1.0, size=(60, 4)))
    yield tmp_path
    sys.modules.pop("mymaps", None)


def test_a_map_and_a_grouper_of_ones_own(run, workbench):
    result = run(
        "table", "t.npy", "-o", "out", "--k", 5, "--quasi", "*", "--map", "std+mymaps:Whiten:3,eps=0.01",
        "--grouping", "mymaps:InOrder:extra=1", "--key", "key.json",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "k = 6 on the written bytes (5 asked" in result.out
    method = json.loads((workbench / "out" / "certificate.json").read_text())["method"]
    assert method["grouping"] == {"name": "mymaps:InOrder", "options": {"k": 5, "extra": 1}}
    assert [part["name"] for part in method["synthesis_map"]] == ["std", "mymaps:Whiten"]
    sys.modules.pop("mymaps")
    assert run("verify", "out").code == 0
    judged = run("evaluate", "t.npy", "out", "--key", "key.json")
    assert judged.code == 0, judged.err
    assert "is not built in, so a certificate is not enough to rebuild it" in judged.out
    assert "mymaps" not in sys.modules  # reading a release imports nothing of what it names, though it could be found
    assert str(workbench) in sys.path


def test_ones_own_side_by_side_with_ours(run, workbench):
    """Settings are tried in processes of their own, which import the user's module too."""
    frame = pl.DataFrame(np.load("t.npy"), schema=["a", "b", "c", "d"]).with_columns(good=pl.Series(np.arange(60) % 2))
    frame.write_csv("t.csv")
    result = run(
        "compare", "t.csv", "--target", "good", "--html", "page.html", "--k", 5, "--map", "none,mymaps:Whiten:3/pca:2",
        "--grouping", "mymaps:InOrder", "--model", "logistic", "--jobs", 2,
    )  # fmt: skip
    assert result.code == 0, result.err
    done = [json.loads(line) for line in (workbench / "page.jsonl").read_text().splitlines()]
    assert {each["name"] for each in done} == {
        "original", "k=5 mymaps:InOrder in none", "k=5 mymaps:InOrder in mymaps:Whiten:3/pca:2"
    }  # fmt: skip
    assert not any("failed" in each["outcome"] for each in done), done


def test_as_a_stranger_runs_it(workbench):
    """In a process of its own, where Python's path does not hold the current folder."""
    code = "import sys; sys.path = [p for p in sys.path if p]; from omokage.cli import main; main()"
    words = ["table", "t.npy", "-o", "out", "--k", "5", "--quasi", "*", "--map", "mymaps:Whiten"]
    done = subprocess.run([sys.executable, "-P", "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "k = 5 on the written bytes" in done.stdout


def test_the_current_folder_is_importable_only_when_asked_for(run, workbench):
    here = str(workbench)
    assert run("table", "t.npy", "-o", "out", "--k", 5, "--quasi", "*", "--map", "pca:2", "--grouping", "cells").code == 0
    assert here not in sys.path
    assert run("table", "t.npy", "-o", "out2", "--k", 5, "--quasi", "*", "--map", "mymaps:Whiten").code == 0
    assert sys.path[-1] == here  # last: a file here does not stand in for a module that is installed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--map", "mymaps:Nothing"), "the map mymaps:Nothing cannot be imported: AttributeError"),
        (("--map", "mymap:Whiten"), "there is no map 'mymap': choose none, std, log, pca:N"),
        (("--map", "mymaps:InOrder"), "mymaps:InOrder is not a map: give a class that has fit and transform"),
        (("--map", "mymaps:Whiten:size=3"), "the map mymaps:Whiten does not take these options: TypeError"),
        (("--grouping", "mymaps:Whiten"), "mymaps:Whiten is not a grouping: give a class that has fit_predict"),
    ],
)
def test_one_of_ones_own_that_does_not_work_is_one_sentence_and_2(run, workbench, words, said):
    result = run("table", "t.npy", "-o", "out", "--k", 5, "--quasi", "*", *words)
    assert result.code == 2
    assert said in result.err.strip().splitlines()[-1]
    assert "Traceback" not in result.err
    assert not (workbench / "out").exists()
