"""What the readers and writers of files say of one that is wrong: of foreign networks, saved models, tables and keys."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hostile_pickles import Runs
from safetensors.numpy import load, save

torch = pytest.importorskip("torch")

from small_stylegan2 import nvidia_packages, write_nvidia  # noqa: E402
from test_checkpoints import Storage, change  # noqa: E402
from test_torchscript import archive, tensor  # noqa: E402

from omokage import Anonymizer, Mondrian, Roles, read_table  # noqa: E402
from omokage.base import reading  # noqa: E402
from omokage.base.files import publish_folder  # noqa: E402
from omokage.base.workers import in_parallel  # noqa: E402
from omokage.errors import InputError, OmokageError, OutputError, TableError  # noqa: E402
from omokage.evaluate import link_files  # noqa: E402
from omokage.learn import DPSGD, Numeric, Schema, load_model, save_model  # noqa: E402
from omokage.networks import fetch, mobilestylegan, mobilestylegan_ir  # noqa: E402
from omokage.networks.checkpoints import read_generator  # noqa: E402
from omokage.networks.stylegan2 import StyleGAN2  # noqa: E402
from omokage.networks.torchscript import read_torchscript  # noqa: E402
from omokage.networks.unpickling import Allowed, _Unpickler, unpickle  # noqa: E402
from omokage.networks.zoo import ZOO  # noqa: E402
from omokage.release.key import KeyTransaction  # noqa: E402
from omokage.tables.datasets import otto  # noqa: E402


def says(words: str, call: Callable[[], Any], kind: type[OmokageError] = InputError) -> None:
    """The call fails with these words, in one line; … stands for others, as in words that another message has too."""
    with pytest.raises(kind) as caught:
        call()
    assert [part for part in words.split("…") if part.strip() not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


# ---- StyleGAN2's checkpoints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("synthesis.b8.conv0.conv_clamp", 256, "its layers' conv_clamp is not one positive number or None for all"),
        ("mapping.fc1.bias_gain", 0.1, "mapping.fc1.bias_gain is not 0.01, as it is in StyleGAN2"),
        ("synthesis.b8.conv0.resample_filter", torch.ones(4, 4),
         "the filter 'synthesis.b8.conv0.resample_filter' is not [1, 3, 3, 1], as it is in StyleGAN2"),
        ("synthesis.b8.conv1.bias", torch.full((5,), torch.nan),
         "the tensor synthesis.convs.2.bias holds values … not finite numbers"),
        ("mapping.fc0.weight", torch.zeros(7), "the tensor mapping.0.weight is missing or has not 2 dimensions"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)  # fmt: skip
def test_another_network_than_stylegan2(tmp_path, name, value, words):
    write_nvidia(tmp_path / "faces.pkl", change(name, value))
    says(words, lambda: read_generator(tmp_path / "faces.pkl"))


def test_another_version_of_the_modules(tmp_path):
    path = tmp_path / "faces.pkl"
    write_nvidia(path)
    path.write_bytes(path.read_bytes().replace(b"version\x94K\x06", b"version\x94K\x05"))
    says("its modules are not of version 6 of NVIDIA's format", lambda: read_generator(path))


def test_a_network_of_tensorflow(tmp_path):
    with nvidia_packages():
        network = sys.modules["dnnlib.tflib.network"].Network()
        (tmp_path / "old.pkl").write_bytes(pickle.dumps((network, network, network)))
    says("convert it with the legacy.py of NVIDIA's PyTorch version first", lambda: read_generator(tmp_path / "old.pkl"))


def test_a_tensor_in_the_place_of_a_storage(tmp_path):
    torch.save(torch.zeros(96), tmp_path / "tensor.pt")
    content = {"G_ema": {"synthesis.b4.const": Storage((tmp_path / "tensor.pt").read_bytes())}}
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(content))
    says("the bytes of a storage are not a storage", lambda: read_generator(tmp_path / "bad.pkl"))


def doubled(path: Path, record: str) -> Path:
    """The zip with a record listed twice that lies in it once."""
    with zipfile.ZipFile(path, "a") as made:
        made.writestr("net/end", b"")
        twin = copy.copy(made.getinfo(record))
        twin.filename = "net/data/twin"
        made.filelist.append(twin)
    return path


@pytest.mark.parametrize("how", ["compressed", "overlapping"])
def test_records_that_torch_would_not_write(tmp_path, how):
    compression = zipfile.ZIP_DEFLATED if how == "compressed" else zipfile.ZIP_STORED
    path = archive(tmp_path / "bad.pt", bytes(100_000), compression=compression)
    if how == "overlapping":
        doubled(path, "net/data.pkl")
    says("its records are compressed or overlap, and torch writes them plainly", lambda: read_generator(path))


def test_a_pickle_that_torch_refuses(tmp_path):
    torch.save({"g_ema": Runs(os.getcwd)}, tmp_path / "bad.pt")
    says("getcwd', and only tensors are read", lambda: read_generator(tmp_path / "bad.pt"))
    says("its pickle is broken", lambda: read_generator(archive(tmp_path / "broken.pt", b"\x80\x02P1\n.", [("version", b"3\n")])))


# ---- TorchScript and pickles ------------------------------------------------------------------------------------------------

STORAGE = [("data/0", bytes(16))]
DEFLATED = {"compression": zipfile.ZIP_DEFLATED}
LOOP = b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s."  # a dict that holds itself
WIDE = b"\x80\x02](" + b"N" * 100_001 + b"e."


@pytest.mark.parametrize(
    ("program", "records", "options", "words"),
    [
        (tensor(), STORAGE, DEFLATED, "a record is compressed, and TorchScript writes them uncompressed"),
        (tensor(count=b"K\x05"), STORAGE, {}, "a storage has not the type or the length that its tensor says"),
        (tensor(kind=b"LongStorage"), STORAGE, {}, "a storage has not the type or the length that its tensor says"),
        (tensor(), [*STORAGE, ("byteorder", b"big")], {}, "its numbers are not little-endian"),
        (LOOP, [], {}, "its tree has names over 1000 letters or more than 100,000 attributes"),
        (WIDE, [], {}, "its tree has names over 1000 letters or more than 100,000 attributes"),
    ],
)  # fmt: skip
def test_torchscript_that_torch_would_not_write(tmp_path, program, records, options, words):
    says(words, lambda: read_torchscript(archive(tmp_path / "bad.pt", program, records, **options)))


def test_records_of_torchscript_that_overlap(tmp_path):
    path = archive(tmp_path / "bad.pt", tensor(), [("data/0", bytes(100_000))])
    says("its records overlap", lambda: read_torchscript(doubled(path, "net/data/0")))


@pytest.mark.parametrize("names", [[], ["net/data.pkl", "other/data.pkl"]])
def test_torchscript_without_one_tree(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "bad.pt", "w") as made:
        for name in (*names, "net/version"):
            made.writestr(name, tensor())
    says("it has not exactly one data.pkl", lambda: read_torchscript(tmp_path / "bad.pt"))


PLAIN = Allowed(lambda module, name: None, "numbers")


def test_a_pickle_that_remembers_too_much():
    program = b"\x80\x02Nr\x00\x00\x01\x00."  # its 65,536th object
    says("its pickle remembers more objects than it can hold", lambda: unpickle(program, PLAIN))


def test_records_beside_a_pickle_that_has_none():
    """Nothing gets past the instructions that are allowed; should it do so, there is a second lock."""
    program = b"\x80\x02NQ."
    says("the instruction BINPERSID", lambda: unpickle(program, PLAIN))
    says("its pickle refers to records that such a file does not have", lambda: _Unpickler(program, PLAIN).load())


# ---- the generators and the zoo ---------------------------------------------------------------------------------------------


def test_wrong_sizes_of_a_generator():
    small = StyleGAN2((4, 4, 4), 4, (4, 4))
    says("exit=32: … generator has maps of 4, 8, … 16 px", lambda: small(torch.zeros(1, 4), exit=32))
    other = mobilestylegan.Synthesis(6, (8, 16, 8, 4))
    says("exit=4: … generator has maps of 8, 16, … 32 px", lambda: other(torch.zeros(1, 6), exit=4))
    for size, batch in ((3, 8), (0, 8), (32, 8), (16, 0)):
        words = f"size={size}, batch={batch}: … 16, the batch be 1 or more"
        says(words, lambda size=size, batch=batch: small.sample(2, seed=0, size=size, batch=batch))


def test_a_graph_that_is_too_large(tmp_path):
    xml, raw = tmp_path / "graph.xml", tmp_path / "graph.bin"
    raw.touch()
    with xml.open("wb") as file:
        file.truncate((8 << 20) + 1)
    says(f"{xml}: larger than 8388608 bytes, so this is not the published graph", lambda: mobilestylegan_ir.Graph.read(xml, raw))


def test_a_place_for_models_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "home").write_text("a file")
    monkeypatch.setenv("OMOKAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(fetch, "_fetch", lambda *_: pytest.fail("it is fetched"))
    says("; OMOKAGE_HOME sets another place for models", lambda: fetch.get(next(iter(ZOO))), OutputError)


# ---- saved models -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    x = np.random.default_rng(0).random(200)
    schema = Schema((Numeric("x", 0, 1),), "t", ("no", "yes"))
    return DPSGD(schema=schema, epochs=2).fit(pl.DataFrame({"x": x}), np.where(x > 0.5, "yes", "no"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"more": 1}, ": model.json is damaged (more breaks the rule 'extra forbidden'): learn the model again"),
        ({"format": "x"}, ": model.json does not have the format 'omokage.learn/2': learn the model again with this version"),
        ({"layers": [1, 9, 2]}, " is damaged (its layers do not match the schema and the settings): learn the model again"),
        ({"privacy": {"parameters": 9}}, " is damaged (its privacy statement is about another network): learn the model again"),
        ({"settings": {}}, " is damaged (its settings are not those of dp-sgd): learn the model again"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_damaged_models(model, tmp_path, changed, words):
    folder = save_model(model, tmp_path / "model")
    written = json.loads((folder / "model.json").read_text())
    for name, value in changed.items():
        written[name] = {**written[name], **value} if name == "privacy" else value
    (folder / "model.json").write_text(json.dumps(written))
    says(f"{folder}{words}", lambda: load_model(folder))


def test_a_model_with_one_tensor_more(model, tmp_path):
    folder = save_model(model, tmp_path / "model")
    weights = save({**load((folder / "network.safetensors").read_bytes()), "more": np.zeros(2)})
    (folder / "network.safetensors").write_bytes(weights)
    written = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**written, "weights_sha256": hashlib.sha256(weights).hexdigest()}))
    says(f"{folder} is damaged (its weights hold tensors that the layers do not have)", lambda: load_model(folder))


# ---- files, processes, tables and keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_output_that_appears_meanwhile(tmp_path, kind):
    place = tmp_path / "out"
    theirs = place if kind == "file" else place / "theirs"

    def appears():
        theirs.parent.mkdir(exist_ok=True)
        theirs.write_text("theirs")

    def publish():
        publish_folder(place, lambda new: (new / "ours").write_text("ours"), overwrite=True, ours=lambda _: None, before=appears)

    says(f"{place} appeared while it was being written, and was left as it is", publish, OutputError)
    assert theirs.read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.rglob("*")) == (["out"] if kind == "file" else ["out", "theirs"])


def test_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path, opened = tmp_path / "log.txt", os.fdopen
    path.write_text("begun")

    def grown(handle, mode):
        path.write_text("begun and gone on")
        return opened(handle, mode)

    monkeypatch.setattr(reading.os, "fdopen", grown)
    says("log.txt grew while it was read: try again", lambda: reading.read_regular(path, 1000))


def test_a_worker_that_is_stopped():
    stopped = in_parallel(os._exit, ((1,) for _ in range(16)), workers=2)
    says("a worker process was stopped, perhaps for want of memory: try --workers 1", lambda: list(stopped), OmokageError)


def test_originals_read_otherwise_than_for_the_release(tmp_path):
    path, key = tmp_path / "t.csv", tmp_path / "key.json"
    pl.DataFrame({"age": range(20, 40), "ill": ["flu", "cold"] * 10}).write_csv(path)
    release = Anonymizer(Mondrian(4)).release(read_table(path), roles=Roles(quasi=["age"], sensitive=["ill"]))
    release.write(tmp_path / "out", key=key)
    words = "t.csv has 21 rows, but the key links 20: read it as you did for the release"
    says(words, lambda: link_files(path, tmp_path / "out", key, header=False))


def test_a_key_that_was_not_begun(tmp_path):
    for step in ("before", "after"):
        says("no key was begun", getattr(KeyTransaction(tmp_path / "key.json"), step), OutputError)
    assert not (tmp_path / "key.json").exists()


def test_data_sets_without_a_folder(monkeypatch):
    monkeypatch.delenv("OMOKAGE_DATA", raising=False)
    says("set OMOKAGE_DATA to the folder that holds otto/train.csv.zip (see docs/data.md)", otto, TableError)


@pytest.mark.parametrize("person", ["", ["patient"], 3])
def test_a_person_that_is_not_one_column(person):
    says("person must be the name of one column, such as 'patient'", lambda: Roles(person=person), TableError)
