"""The restricted unpickler: the same attacks on each of its readers, and the one place where pickles are read."""

from __future__ import annotations

import ast
import pickle
import zipfile
from pathlib import Path

import pytest
from hostile_pickles import NAMES, STRANGE, naming, running

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from omokage.errors import InputError, ModelError  # noqa: E402
from omokage.networks.checkpoints import read_generator  # noqa: E402
from omokage.networks.torchscript import read_torchscript  # noqa: E402
from omokage.networks.unpickling import Allowed, unpickle  # noqa: E402
from omokage.networks.vgg import read_arrays  # noqa: E402

SOURCE = Path(__file__).parent.parent / "src" / "omokage"


def archive(path, program):
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("net/data.pkl", program)


def plain(path, program):
    path.write_bytes(program)


READERS = {"torchscript": (read_torchscript, archive), "vgg": (read_arrays, plain), "checkpoints": (read_generator, plain)}


@pytest.fixture(params=list(READERS))
def refuses(request, tmp_path):
    """Writes a pickle as one of the readers expects it, and sees that it is refused in one sentence that names the file."""
    read, write = READERS[request.param]

    def check(program, match=None):
        path = tmp_path / "bad.file"
        write(path, program)
        with pytest.raises((InputError, ModelError), match=match) as caught:
            read(path)
        assert "bad.file" in str(caught.value)
        assert "\n" not in str(caught.value)

    return check


def test_runs_nothing(refuses, tmp_path):
    mark = tmp_path / "ran"
    for program in running(mark):
        refuses(program)
        assert not mark.exists()


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_not_allowed_are_refused(refuses, name):
    for program in naming(name):
        refuses(program, r"it names .*, and only .* are read|its pickle holds the instruction")


@pytest.mark.parametrize("program", STRANGE.values(), ids=STRANGE)
def test_strange_programs_are_refused(refuses, program):
    refuses(program)


def test_a_program_is_checked_before_it_begins():
    """An instruction that is not allowed stands at the end; nothing before it is done."""
    asked = []
    allowed = Allowed(lambda module, name: asked.append(name), "nothing")
    with pytest.raises(InputError, match="instruction EXT1"):
        unpickle(b"\x80\x02cos\nsystem\n\x82\x01.", allowed)
    assert asked == []


def test_stand_ins_are_made_anew():
    """A pickle can attach attributes to what a name stands for; the next file must not find them."""
    made = []

    def names(module, name):
        return (lambda: made.append(type("Thing", (), {})) or made[-1]) if (module, name) == ("a", "B") else None

    program = b"\x80\x02ca\nB\nN}X\x04\x00\x00\x00evilK\x01s\x86b."
    assert unpickle(program, Allowed(names, "things")).evil == 1
    assert not hasattr(unpickle(b"\x80\x02ca\nB\n.", Allowed(names, "things")), "evil")
    assert made[0] is not made[1]


def test_records_outside_are_read_only_where_they_are_allowed():
    program = b"\x80\x02X\x01\x00\x00\x00aQ."
    assert unpickle(program, Allowed(lambda *_: None, "nothing", storage=lambda key: [key])) == ["a"]
    with pytest.raises(InputError, match="instruction BINPERSID"):
        unpickle(program, Allowed(lambda *_: None, "nothing"))


def test_plain_values_come_back():
    value = {"a": (1, 2.5, None, True, "text", -7, 70_000), "b": {}}
    assert unpickle(pickle.dumps(value, 2), Allowed(lambda *_: None, "nothing", frozenset({"BINFLOAT"}))) == value


def test_pickles_are_read_in_one_place():
    """No other module subclasses or calls pickle's own readers; torch.load appears with weights_only alone."""
    readers = {"Unpickler", "load", "loads"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
                continue
            if node.value.id in {"pickle", "cPickle", "dill", "cloudpickle", "joblib"} and node.attr in readers:
                assert path.name == "unpickling.py", f"{path.name}:{node.lineno} reads a pickle"
    text = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    loads = [name for name, source in text.items() for line in source.splitlines() if "torch.load(" in line]
    assert loads
    assert all(text[name].count("torch.load(") == text[name].count("weights_only=True") for name in loads)
