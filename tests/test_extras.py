"""A base install: tables work with no extra, and whatever needs one says so in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a new process for each extra

EXTRAS = {
    "neural": {"torch"},
    "pandas": {"pyarrow"},
    "report": {"jinja2", "matplotlib"},
    "dp": {"safetensors", "opendp", "dp_accounting"},
    "faces": {"torch", "safetensors", "cv2", "onnxruntime", "dlib", "PIL", "platformdirs"},
}
BLOCKED = """
import contextlib, io, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from omokage.cli import main

def run(*arguments):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(list(arguments))
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return code, said.getvalue()

"""
ROLES = ["--k", "2", "--identifier", "id", "--quasi", "zip,age,gender", "--sensitive", "disease"]
TABLE = ["table", "patients.csv", "-o", "out", *ROLES, "--key", "key.json"]
COMMANDS = {
    "neural": [["table", "patients.csv", "-o", "other", "--k", "2", "--quasi", "age", "--identifier", "id,zip,gender", "--keep",
                "disease", "--map", "ae:1"]],
    "report": [
        ["evaluate", "patients.csv", "out", "--key", "key.json", "--target", "disease", "--html", "page.html"],
        ["compare", "patients.csv", "--target", "disease", "--k", "2", "--map", "none", "--html", "page.html"],
    ],
    "dp": [["audit", "model"], ["predict", "model", "patients.csv", "-o", "predicted.csv"]],
    "faces": [
        ["faces", "photos", "-o", "faces", "--k", "2"],
        ["photo", "party.jpg", "-o", "hidden.jpg", "--k", "2"],
        ["faces", "evaluate", "photos", "faces", "--key", "key.json"],
        ["faces", "train-encoder", "-o", "encoder"],
        ["models", "list"], ["models", "get", "scrfd"], ["models", "where"],
    ],
}  # fmt: skip


def run(tmp_path, missing, code):
    program = BLOCKED.format(missing=missing) + code
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_tables_need_no_extra(patients, tmp_path):
    everything = set().union(*EXTRAS.values()) | {"pandas"}
    code = f"print(json.dumps([run(*{TABLE}), run('verify', 'out'), run('--version'), run('faces', '--help')]))"
    assert [code for code, _ in run(tmp_path, everything, code)] == [0, 0, 0, 0]


@pytest.mark.parametrize("extra", list(COMMANDS))
def test_a_missing_extra_is_one_sentence(extra, patients, tmp_path, monkeypatch):
    monkeypatch.delenv("OMOKAGE_HOME", raising=False)
    (tmp_path / "photos").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "party.jpg").write_bytes(b"not opened")
    program = f"run(*{TABLE})\nprint(json.dumps([run(*command) for command in {COMMANDS[extra]}]))"
    for command, (code, said) in zip(COMMANDS[extra], run(tmp_path, EXTRAS[extra], program), strict=True):
        assert code == 2, (command, said)
        assert f"pip install 'omokage[{extra}]'" in said.splitlines()[-1], command
        assert "Traceback" not in said


def test_a_pandas_frame_without_pyarrow_is_one_sentence(tmp_path):
    pytest.importorskip("pandas")
    code = (
        "import pandas\nfrom omokage import Anonymizer, Mondrian\nfrom omokage.errors import MissingExtra\n"
        "frame = pandas.DataFrame({'a': [1.0, 2, 3, 4], 'b': ['x', 'y', 'x', 'y']})\n"
        "try:\n    Anonymizer(Mondrian(2)).release(frame)\n    print(json.dumps('released'))\n"
        "except MissingExtra as error:\n    print(json.dumps(str(error)))\n"
    )
    assert "pip install 'omokage[pandas]'" in run(tmp_path, EXTRAS["pandas"], code)


def test_any_other_missing_module_is_a_bug_and_stays_one(monkeypatch):
    from omokage import cli

    def broken(args, **_):
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ModuleNotFoundError):
        cli.main([])
