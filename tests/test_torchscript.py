"""Reading TorchScript archives: what torch wrote comes back, and what an attacker wrote does not run."""

from __future__ import annotations

import os
import pickle
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile_pickles import Runs

from omokage.errors import InputError, ModelError
from omokage.networks.torchscript import read_torchscript

torch = pytest.importorskip("torch")
WEIGHTS = Path(os.environ.get("OMOKAGE_HOME", "~/.cache/omokage")).expanduser() / "models" / "inception" / "weights.safetensors"


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.rest = torch.nn.Sequential(torch.nn.Conv2d(4, 2, 1, bias=False), torch.nn.ReLU())
        self.sizes = [1, 2, 3]
        self.register_buffer("turned", torch.arange(12, dtype=torch.float64).view(3, 4).t())
        self.register_buffer("corner", torch.arange(12, dtype=torch.int32).view(3, 4)[1:, 2:])
        self.register_buffer("nothing", torch.zeros(0, 5))

    def forward(self, x):
        return self.rest(self.norm(self.first(x))) * self.sizes[0]


@pytest.fixture
def small(tmp_path):
    torch.manual_seed(0)
    net = Small()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit is on its way out; published files are not
        torch.jit.save(torch.jit.script(net), tmp_path / "small.pt")
    return net, tmp_path / "small.pt"


def archive(path, program, records=(), **options):
    with zipfile.ZipFile(path, "w", **options) as made:
        made.writestr("net/data.pkl", program)
        for name, content in records:
            made.writestr(f"net/{name}", content)
    return path


def test_reads_what_torch_wrote(small):
    net, path = small
    expected = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    found = read_torchscript(path)
    assert set(found) == set(expected)
    for name, array in found.items():
        assert array.dtype == expected[name].dtype
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_runs_nothing(tmp_path, protocol):
    here = tmp_path / "ran"
    for attack in (Runs(os.system, f"touch {here}"), Runs(eval, f"open({str(here)!r}, 'w')"), Runs(Path.touch, here)):
        for program in (pickle.dumps(attack, protocol), pickle.dumps({"a": [attack]}, protocol)):
            with pytest.raises(InputError, match=r"bad\.pt is not read"):
                read_torchscript(archive(tmp_path / "bad.pt", program))
    assert not here.exists()


@pytest.mark.parametrize("name", [
    "torch load", "torch.serialization load", "torch.hub load", "torch._utils _rebuild_tensor", "torch.nn.modules.linear Linear",
    "builtins getattr", "__torch__x y", "collections Counter", "numpy.core.multiarray _reconstruct", "os system",
])  # fmt: skip
def test_names_other_than_tensors_are_refused(tmp_path, name):
    program = b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n)R."
    with pytest.raises(InputError, match="only tensors and scripted modules"):
        read_torchscript(archive(tmp_path / "bad.pt", program))


def test_what_the_pickle_hangs_onto_our_names_is_gone_with_it(tmp_path):
    state = b"X\x0a\x00\x00\x00attributes}"  # every node born with other attributes
    for pollution in (b"}" + state + b"sb", b"N}" + state + b"s\x86b"):
        with pytest.raises(InputError):
            read_torchscript(archive(tmp_path / "bad.pt", b"\x80\x02c__torch__.a\nB\n" + pollution + b")\x81" + b"."))
    assert read_torchscript(archive(tmp_path / "good.pt", b"\x80\x02c__torch__.a\nB\n)\x81.")) == {}


def tensor(offset=b"K\x00", size=b"K\x04\x85", stride=b"K\x01\x85", key=b"0", count=b"K\x04", kind=b"FloatStorage"):
    """The pickle of one tensor named w; a storage of four floats lies beside it."""
    text = b"X\x01\x00\x00\x00"
    storage = b"(X\x07\x00\x00\x00storagectorch\n" + kind + b"\n" + text + key + b"X\x03\x00\x00\x00cpu" + count + b"tQ"
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + size + stride + b"\x89ccollections\nOrderedDict\n)RtR"
    return b"\x80\x02c__torch__.a\nB\n)\x81}" + text + b"w" + rebuild + b"sb."


def test_tensors_stay_inside_their_storage(tmp_path):
    floats = struct.pack("<4f", 1, 2, 3, 4)

    def read(program):
        return read_torchscript(archive(tmp_path / "net.pt", program, [("data/0", floats)]))["w"].tolist()

    assert read(tensor()) == [1, 2, 3, 4]
    assert read(tensor(offset=b"K\x01", size=b"K\x02\x85", stride=b"K\x02\x85")) == [2, 4]
    assert read(tensor(size=b"K\x02K\x02\x86", stride=b"K\x01K\x02\x86")) == [[1, 3], [2, 4]]
    assert read(tensor(size=b")", stride=b")", offset=b"K\x03")) == 4
    below = b"J\xff\xff\xff\xff"
    for bad in (
        tensor(offset=b"K\x01"), tensor(offset=below), tensor(size=b"K\x05\x85"), tensor(size=below + b"\x85"),
        tensor(stride=b"K\x02\x85"), tensor(stride=below + b"\x85"), tensor(size=b"K\x04K\x04\x86", stride=b"K\x00K\x00\x86"),
        tensor(stride=b"K\x01K\x01\x86"), tensor(key=b"1"), tensor(count=b"K\x05"), tensor(kind=b"LongStorage"),
        tensor(kind=b"ObjectStorage"), tensor(offset=b"N"),
    ):  # fmt: skip
        with pytest.raises(InputError):
            read(bad)


def test_a_tensor_is_no_storage_for_another(tmp_path):
    """Four elements of step 0 take the place of one; to read them with step 1 would leave the storage."""
    inner = tensor(offset=b"K\x03", stride=b"K\x00\x85").split(b"X\x01\x00\x00\x00w", 1)[1].removesuffix(b"sb.")
    outer = b"ctorch._utils\n_rebuild_tensor_v2\n(" + inner + b"K\x00K\x04\x85K\x01\x85\x89}tR"
    program = b"\x80\x02c__torch__.a\nB\n)\x81}X\x01\x00\x00\x00w" + outer + b"sb."
    with pytest.raises(InputError, match="outside"):
        read_torchscript(archive(tmp_path / "net.pt", program, [("data/0", struct.pack("<4f", 1, 2, 3, 4))]))


def test_trees_without_end_are_refused(tmp_path):
    loop = b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s."  # a dict that holds itself
    doubling = (
        b"\x80\x02}" + b"".join(b"q" + bytes([i]) + b"]h" + bytes([i]) + b"ah" + bytes([i]) + b"a" for i in range(60)) + b"."
    )
    memory = b"\x80\x02Nr\xff\xff\xff\x7f."
    for program in (loop, doubling, memory):
        with pytest.raises(InputError):
            read_torchscript(archive(tmp_path / "bad.pt", program))


def test_damaged_files_are_named(tmp_path, small):
    whole = small[1].read_bytes()
    bad = tmp_path / "bad.pt"
    for content in (b"", b"PK", whole[:-30], whole[: len(whole) // 2], whole[len(whole) // 2 :]):
        bad.write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.pt"):
            read_torchscript(bad)
    for program in (b"", b"\x80\x02", b".", b"\x80\x02N", b"hello", b"\x80\x02b.", b"\x80\x02NQ."):
        with pytest.raises(InputError, match=r"bad\.pt"):
            read_torchscript(archive(bad, program))
    with pytest.raises(InputError, match="compressed"):
        read_torchscript(archive(bad, tensor(), [("data/0", bytes(16))], compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(InputError, match="little-endian"):
        read_torchscript(archive(bad, tensor(), [("data/0", bytes(16)), ("byteorder", b"big")]))
    with pytest.raises(InputError, match="cannot be read"):
        read_torchscript(tmp_path / "none.pt")


def test_flipped_bytes_raise_nothing_else(tmp_path, small):
    with zipfile.ZipFile(small[1]) as whole:
        program = whole.read("small/data.pkl")
        records = [(name.removeprefix("small/"), whole.read(name)) for name in whole.namelist() if "/data/" in name]
    rng, read = np.random.default_rng(0), 0
    for _ in range(300):
        broken = bytearray(program)
        broken[rng.integers(len(broken))] = rng.integers(256)
        try:
            read_torchscript(archive(tmp_path / "bad.pt", bytes(broken), records))
            read += 1
        except InputError:
            pass
    assert 0 < read < 300  # a letter of a name may change without harm


def test_another_network_is_not_taken_for_inception(tmp_path, small):
    from omokage.networks.inception import Inception, from_torchscript

    with pytest.raises(ModelError, match=r"small\.pt"):
        from_torchscript({"small.pt": small[1]})
    (tmp_path / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="fetch it again"):
        Inception.load(tmp_path / "weights.safetensors")


def test_pictures_are_reduced_as_tensorflow_did():
    from omokage.networks.inception import _reduced

    rng = np.random.default_rng(0)
    for height, width in ((1, 1), (64, 90), (299, 299), (700, 310)):
        picture = rng.integers(0, 256, (1, height, width, 3), dtype=np.uint8)
        found = _reduced(torch.from_numpy(picture)).numpy()[0]  # (3, 299, 299)
        for i, j in rng.integers(0, 299, (20, 2)):
            y, x = i * height / 299, j * width / 299
            rows, columns = (min(int(y), height - 1), min(int(y) + 1, height - 1)), (int(x), min(int(x) + 1, width - 1))
            corners = picture[0][np.ix_(rows, columns)].astype(float)  # (2, 2, 3)
            u, v = y - int(y), x - int(x)
            expected = np.tensordot([1 - u, u], np.tensordot([1 - v, v], corners, (0, 1)), (0, 0))
            np.testing.assert_allclose(found[:, i, j], expected, atol=1e-3)


@pytest.mark.skipif(not WEIGHTS.exists(), reason="the network was not fetched")
def test_features_of_the_published_network():
    from omokage.networks.inception import Inception

    net = Inception.load(WEIGHTS)
    ramp = np.add.outer(np.arange(120), np.arange(100)).astype(np.uint8)
    pictures = np.stack([np.stack([ramp, ramp[::-1], 255 - ramp], axis=2), np.full((120, 100, 3), 128, np.uint8)])
    features = net.features(pictures, batch=1)
    assert features.shape == (2, 2048)
    assert features.dtype == np.float32
    assert (features >= 0).all()
    np.testing.assert_allclose(net.features(pictures), features, atol=1e-4)
    published = [
        [0.4767, 0.0138, 0.6478, 0.6045],
        [0.4927, 0.1060, 0.0395, 0.0871],
    ]  # of the TorchScript archive, as torch ran it
    np.testing.assert_allclose(features[:, [0, 2, 1000, 2000]], published, atol=1e-3)
    for bad in (pictures[0], pictures.astype(float), pictures[:0]):
        with pytest.raises(InputError, match="pictures are bytes"):
            net.features(bad)
