"""Checkpoints of StyleGAN2: both layouts give the network's pictures, and what an attacker wrote does not run."""

from __future__ import annotations

import argparse
import io
import math
import os
import pickle
import pickletools
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile_pickles import Runs

torch = pytest.importorskip("torch")

from small_stylegan2 import (  # noqa: E402
    STYLE,
    Module,
    check_against_reference,
    generator_module,
    nvidia_packages,
    port_names,
    write_nvidia,
)

from omokage.errors import InputError  # noqa: E402
from omokage.networks.checkpoints import read_generator  # noqa: E402


@pytest.fixture
def nvidia(tmp_path):
    """(path, tensors by NVIDIA's names)"""
    path = tmp_path / "faces.pkl"
    return path, write_nvidia(path)


def saved(path, content, **options):
    torch.save(content, path, **options)
    return path


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_nvidias_layout_gives_the_networks_pictures(tmp_path, protocol):
    mark, path = tmp_path / "ran", tmp_path / "faces.pkl"
    state = write_nvidia(path, protocol=protocol, source=f"open({str(mark)!r}, 'w').close()\nclass Generator: ...\n")
    assert str(mark).encode() in path.read_bytes()
    found = read_generator(path)
    assert not mark.exists()
    assert "torch_utils" not in sys.modules
    check_against_reference(found, state)
    torch.testing.assert_close(found.w_mean, state["mapping.w_avg"])


@pytest.mark.parametrize("zipped", [True, False])
def test_the_ports_layout_gives_the_networks_pictures(tmp_path, nvidia, zipped):
    state = nvidia[1]
    content = {"g_ema": port_names(state), "latent_avg": state["mapping.w_avg"], "args": argparse.Namespace(size=16)}
    found = read_generator(saved(tmp_path / "faces.pt", content, _use_new_zipfile_serialization=zipped))
    check_against_reference(found, state)
    torch.testing.assert_close(found.w_mean, state["mapping.w_avg"])


def test_both_layouts_come_out_alike(tmp_path, nvidia):
    path, state = nvidia
    content = {"g_ema": port_names(state), "latent_avg": state["mapping.w_avg"][None]}
    first, second = read_generator(path).state_dict(), read_generator(saved(tmp_path / "faces.pt", content)).state_dict()
    assert list(first) == list(second)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_dict_of_tensors_will_do(tmp_path, nvidia):
    _, state = nvidia
    check_against_reference(read_generator(saved(tmp_path / "state.pt", state)), state)


def refuses(path, match):
    with pytest.raises(InputError, match=match) as caught:
        read_generator(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_runs_nothing(tmp_path, protocol):
    mark, path = tmp_path / "ran", tmp_path / "bad.pkl"
    for attack in (Runs(os.system, f"touch {mark}"), Runs(eval, f"open({str(mark)!r}, 'w')"), Runs(Path.touch, mark)):
        for content in (attack, {"G_ema": attack}, {"G_ema": {"synthesis.b4.const": [attack]}}):
            path.write_bytes(pickle.dumps(content, protocol))
            refuses(path, "is not read: it")
    assert not mark.exists()


@pytest.mark.parametrize("zipped", [True, False])
def test_runs_nothing_of_a_pt(tmp_path, zipped):
    mark = tmp_path / "ran"
    content = {"g_ema": {}, "args": Runs(os.system, f"touch {mark}")}
    path = saved(tmp_path / "bad.pt", content, _use_new_zipfile_serialization=zipped)
    refuses(path, r"it names '(posix|nt).system'")
    assert not mark.exists()


class Storage:
    """Pickled, it is a tensor whose storage is made of these bytes."""

    def __init__(self, raw, offset=0, size=(6, 4, 4), stride=(16, 4, 1)):
        self.arguments = raw, offset, size, stride

    def __reduce__(self):
        raw, *rest = self.arguments
        return torch._utils._rebuild_tensor_v2, (Runs(torch.storage._load_from_bytes, raw), *rest, False, {})


def raw_storage(tensor):
    """The bytes that pickle writes a tensor's storage as."""
    return next(argument for step, argument, _ in pickletools.genops(pickle.dumps(tensor)) if step.name == "BINBYTES")


def test_runs_nothing_in_the_bytes_of_a_storage(tmp_path):
    mark, path = tmp_path / "ran", tmp_path / "bad.pkl"
    for zipped in (True, False):
        inner = io.BytesIO()
        torch.save(Runs(os.system, f"touch {mark}"), inner, _use_new_zipfile_serialization=zipped)
        for raw in (inner.getvalue(), pickle.dumps(Runs(os.system, f"touch {mark}"))):
            path.write_bytes(pickle.dumps({"G_ema": {"synthesis.b4.const": Storage(raw)}}))
            refuses(path, "not a whole checkpoint|is not read")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "synthesis.to_rgb|it draws at 0 sizes"),  # this one tensor is read, the others are missing
        ({"offset": 1}, "outside its storage"),
        ({"offset": -1}, "outside its storage"),
        ({"size": (7, 4, 4)}, "outside its storage"),
        ({"size": (1 << 40, 4, 4), "stride": (0, 0, 0)}, "outside its storage"),
        ({"stride": (-1, 4, 1)}, "outside its storage"),
        ({"stride": (1 << 62, 1 << 62, 1 << 62)}, "outside its storage"),
        ({"stride": (4, 1)}, "not a whole checkpoint"),
    ],
)
def test_tensors_lie_within_their_storage(tmp_path, options, says):
    path = tmp_path / "bad.pkl"
    path.write_bytes(pickle.dumps({"G_ema": {"synthesis.b4.const": Storage(raw_storage(torch.zeros(96)), **options)}}))
    refuses(path, says)


@pytest.mark.parametrize("raw", [b"", b"abc", 10**12, None, "x", ()])
def test_bytes_that_are_no_storage(tmp_path, raw):
    path = tmp_path / "bad.pkl"
    path.write_bytes(pickle.dumps({"G_ema": {"synthesis.b4.const": Storage(raw)}}))
    refuses(path, "not a whole checkpoint")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (b"\x80\x04cbuiltins\neval\n.", "names 'builtins.eval'"),
        (b"\x80\x04ctorch\nload\n.", "names 'torch.load'"),
        (b"\x80\x04X\x01\x00\x00\x000Q.", "instruction BINPERSID"),
        (b"(ios\nsystem\nN.", "instruction INST"),
        (b"\x80\x02\x82\x01.", "instruction EXT1"),
        (b"\x80\x04Nr" + struct.pack("<I", 1 << 31) + b".", "remembers more"),
        (b"\x80\x04}\x94" + b"\xff.", "not a whole checkpoint"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 1 << 50) + b"x.", "not a whole checkpoint"),
        (b"\x80\x04\x95" + struct.pack("<Q", 1 << 50) + b"N.", "not a whole checkpoint"),
        (b"\x80\x04N.", "not hold a dict"),
        (b"\x80\x04}X\x05\x00\x00\x00G_emaNs.", "neither a module"),
        (b"\x80\x04}.", "neither the tensor"),
        (b"", "not a whole checkpoint"),
        (b"\xff\xd8\xff\xe0 a photo", "not a whole checkpoint"),
        (b"PK\x03\x04", "not a whole checkpoint"),
    ],
)
def test_strange_programs(tmp_path, program, says):
    (tmp_path / "bad.pkl").write_bytes(program)
    refuses(tmp_path / "bad.pkl", says)


def test_what_the_pickle_hangs_onto_our_names_is_gone_with_it(tmp_path, nvidia):
    program = b"\x80\x02"
    for name in (
        b"torch._utils\n_rebuild_parameter",
        b"torch_utils.persistence\n_reconstruct_persistent_obj",
        b"dnnlib.util\nEasyDict",
    ):
        program += b"c" + name + b"\n}X\x04\x00\x00\x00evilNsb"
    (tmp_path / "bad.pkl").write_bytes(program + b"\x87.")
    refuses(tmp_path / "bad.pkl", "not hold a dict|not a whole")
    check_against_reference(read_generator(nvidia[0]), nvidia[1])


@pytest.mark.parametrize("layout", ["pkl", "zip", "legacy"])
def test_cut_files(tmp_path, nvidia, layout):
    path, state = nvidia
    if layout != "pkl":
        path = saved(tmp_path / "faces.pt", {"g_ema": port_names(state)}, _use_new_zipfile_serialization=layout == "zip")
    whole = path.read_bytes()
    for length in (1, 10, 100, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:length])
        refuses(tmp_path / "cut", "not a whole checkpoint|is not read")


def test_compressed_records_are_not_unfolded(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("archive/data.pkl", bytes(1_000_000))
    refuses(tmp_path / "bomb.pt", "compressed")


def test_places_without_a_file(tmp_path):
    refuses(tmp_path, "cannot be read")
    refuses(tmp_path / "none.pkl", "cannot be read")


def change(name, value):
    """Replaces a setting, a buffer or a parameter of the generator."""

    def changed(root):
        path, _, last = name.rpartition(".")
        module = root.get_submodule(path)
        for group in (module._parameters, module._buffers, module._modules, module.__dict__):
            if last in group:
                group[last] = value

    return changed


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (change("mapping.c_dim", 10), "conditional"),
        (change("mapping.fc0", torch.nn.Linear(2, 2)), "names 'torch.nn.modules.linear.Linear'"),
        (change("mapping.fc1.bias_gain", 0.1), "mapping.fc1.bias_gain is not 0.01"),
        (change("mapping.fc1.activation", "relu"), "mapping.fc1.activation is not lrelu"),
        (change("synthesis.b8.architecture", "resnet"), "architecture is not skip"),
        (change("synthesis.b8.conv0.activation", "relu"), "activation is not lrelu"),
        (change("synthesis.b8.conv0.conv_clamp", 256), "conv_clamp"),
        (change("synthesis.b8.conv0.resample_filter", torch.ones(4, 4)), "filter 'synthesis.b8.conv0.resample_filter'"),
        (change("synthesis.b8.conv0.weight", None), "synthesis.convs.1.weight is missing"),
        (change("synthesis.b8.conv0.weight", torch.zeros(5, 6, 1, 1)), r"convs.1.weight has the shape \(5, 6, 1, 1\)"),
        (change("synthesis.b8.conv1.bias", torch.full((5,), math.nan)), "not finite"),
        (change("synthesis.b8.conv0.noise_const", None), "synthesis.convs.1.noise is missing"),
        (change("synthesis.b8.torgb.weight", torch.zeros(1, 5, 1, 1)), "to_rgb.1.weight has the shape"),
        (change("synthesis.b4.const", torch.zeros(6, 4, 8)), "synthesis.constant has the shape"),
        (change("mapping.w_avg", torch.zeros(STYLE + 1)), "w_mean has the shape"),
        (change("mapping.w_avg", torch.zeros(STYLE, dtype=torch.int64)), "'mapping.w_avg' is not a plain tensor of floats"),
    ],
)
def test_other_networks_are_refused(tmp_path, changed, says):
    write_nvidia(tmp_path / "faces.pkl", changed)
    refuses(tmp_path / "faces.pkl", says)


def test_stylegan3_is_named(tmp_path):
    def changed(root):
        root.synthesis.input = Module("SynthesisInput", "", size=np.array([36, 36]), bandwidth=2)
        root.synthesis.input.register_buffer("freqs", torch.zeros(8, 2))

    write_nvidia(tmp_path / "faces.pkl", changed)
    refuses(tmp_path / "faces.pkl", "it is a StyleGAN3")


def test_tensorflow_is_named(tmp_path):
    with nvidia_packages():
        network = sys.modules["dnnlib.tflib.network"].Network()
        (tmp_path / "old.pkl").write_bytes(pickle.dumps((network, network, network)))
    refuses(tmp_path / "old.pkl", "TensorFlow")


def test_shared_branches_are_no_tree(tmp_path):
    with nvidia_packages():
        root = generator_module()
        for _ in range(30):  # 2 ** 30 modules, if one counted them
            above = Module("MappingNetwork", "", c_dim=0)
            above.a = above.b = root.mapping
            root.mapping = above
        (tmp_path / "faces.pkl").write_bytes(pickle.dumps({"G_ema": root}))
    refuses(tmp_path / "faces.pkl", "not a tree of at most")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("conv1.conv.weight", None, "synthesis.convs.0.weight is missing"),
        ("noises.noise_2", None, "synthesis.convs.2.noise is missing"),
        ("noises.noise_2", torch.zeros(1, 1, 4, 4), "synthesis.convs.2.noise has the shape"),
        ("noises.noise_9", torch.zeros(1, 1, 4, 4), "synthesis.convs.9.noise, which"),
        ("to_rgbs.0.upsample.kernel", torch.ones(2, 2), "filter 'to_rgbs.0.upsample.kernel'"),
        ("convs.0.conv.weight", torch.zeros(1).expand(1, 5, 6, 3, 3), "not a plain tensor"),
        ("convs.0.conv.weight", torch.zeros(1, 5, 6, 3, 3, dtype=torch.complex64), "not a plain tensor"),
        ("convs.0.conv.weight", torch.zeros(1, 5, 6, 3, 3, device="meta"), "not a plain tensor"),
        ("convs.0.conv.weight", torch.eye(3).to_sparse(), "not a plain tensor"),
        ("convs.0.conv.weight", "text", "not a plain tensor"),
        ("mapping.embed.weight", torch.zeros(2, 2), "conditional"),
        ("dwt.ll", torch.zeros(2), "it has the tensor 'dwt.ll'"),
        ("input.input", None, "neither the tensor"),
        (3, torch.zeros(2), "not a whole checkpoint"),
    ],
)
def test_other_pt_files_are_refused(tmp_path, nvidia, name, value, says):
    content = port_names(nvidia[1])
    content.pop(name, None)
    if value is not None:
        content[name] = value
    refuses(saved(tmp_path / "faces.pt", {"g_ema": content}), says)
