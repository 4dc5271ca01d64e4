"""VGG-16: the published file comes back as convolutions, and what an attacker wrote does not run."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hostile_pickles import Runs

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.numpy import save_file  # noqa: E402

from omokage import networks  # noqa: E402
from omokage.errors import InputError, ModelError  # noqa: E402
from omokage.networks import vgg  # noqa: E402
from omokage.networks.vgg import LPIPS, PERCEPTUAL, VGG, from_flax, read_arrays  # noqa: E402

SMALL = ((3, 4), (4, 5), (5, 5, 6), (6, 6, 6), (6, 6, 7))


def flax_tree(stages=SMALL):
    rng = np.random.default_rng(0)
    trunk, channels = {}, 3
    for number, width in enumerate(width for widths in stages for width in widths):
        kernel, bias = rng.normal(size=(3, 3, channels, width)), rng.normal(size=width)
        trunk[f"Conv_{number}"] = {"kernel": kernel.astype("f4"), "bias": bias.astype("f4")}
        channels = width
    tree = {"VGG16_0": trunk}
    for number, widths in enumerate(stages):
        tree[f"NetLinLayer_{number}"] = {"Conv_0": {"kernel": rng.uniform(size=(1, 1, widths[-1], 1)).astype("f4")}}
    return tree


def written(path, thing):
    path.write_bytes(pickle.dumps(thing, protocol=3))
    return path


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(vgg, "STAGES", SMALL)
    tree = flax_tree()
    arrays = from_flax({"vgg16.ckpt": written(tmp_path / "vgg16.ckpt", tree)})
    net = VGG(SMALL)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    return net, tree


def test_convolutions_are_those_of_the_file(small):
    net, tree = small
    picture = np.random.default_rng(1).uniform(-1, 1, (6, 8, 3)).astype("f4")
    found = net(torch.from_numpy(picture).permute(2, 0, 1)[None], ("conv1_1",))["conv1_1"][0].numpy()
    layer = tree["VGG16_0"]["Conv_0"]
    x = np.pad((picture - vgg._SHIFT) / vgg._SCALE, ((1, 1), (1, 1), (0, 0)))
    for i, j in ((0, 0), (3, 5), (5, 7)):
        by_hand = np.einsum("hwc,hwco->o", x[i : i + 3, j : j + 3], layer["kernel"]) + layer["bias"]
        np.testing.assert_allclose(found[:, i, j], np.maximum(by_hand, 0), rtol=1e-4, atol=1e-5)


def test_each_stage_halves_the_size(small):
    shapes = {name: tuple(x.shape[1:]) for name, x in small[0](torch.zeros(1, 3, 32, 32), PERCEPTUAL).items()}
    assert shapes == {"conv1_1": (3, 32, 32), "conv1_2": (4, 32, 32), "conv3_2": (5, 8, 8), "conv4_2": (6, 4, 4)}


def test_gradients_reach_the_picture_and_not_the_weights(small):
    picture = torch.zeros(1, 3, 16, 16, requires_grad=True)
    small[0](picture)["conv4_2"].sum().backward()
    assert picture.grad is not None
    assert not any(parameter.requires_grad for parameter in small[0].parameters())


def test_lpips_grows_with_the_difference(small):
    rng = torch.Generator().manual_seed(0)
    one, noise = torch.rand(2, 3, 32, 32, generator=rng) - 0.5, torch.randn(2, 3, 32, 32, generator=rng)
    none, little, much = (small[0].lpips(one, one + amount * noise) for amount in (0, 0.02, 0.3))
    assert none.tolist() == [0, 0]
    assert (little > 0).all()
    assert (little < much).all()


def test_lpips_is_its_definition(small):
    net, tree = small
    one, other = torch.rand(2, 1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    total = 0.0
    for number, name in enumerate(LPIPS):
        a, b = (net(x, (name,))[name][0].numpy().transpose(1, 2, 0) for x in (one, other))
        a, b = (x / (np.linalg.norm(x, axis=-1, keepdims=True) + 1e-10) for x in (a, b))
        total += float((np.square(a - b) @ tree[f"NetLinLayer_{number}"]["Conv_0"]["kernel"][0, 0]).mean())
    assert float(net.lpips(one, other)) == pytest.approx(total, rel=1e-4)


def test_an_unknown_layer_is_named(small):
    with pytest.raises(InputError, match="conv9_1"):
        small[0](torch.zeros(1, 3, 16, 16), ("conv9_1",))


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5])
def test_nothing_in_the_file_runs(tmp_path, protocol):
    mark = tmp_path / "mark"
    (tmp_path / "bad.ckpt").write_bytes(pickle.dumps({"VGG16_0": Runs(Path.touch, mark)}, protocol=protocol))
    with pytest.raises(ModelError):
        read_arrays(tmp_path / "bad.ckpt")
    assert not mark.exists()


def test_names_beside_the_three_are_refused(tmp_path):
    bad = written(tmp_path / "bad.ckpt", {"a": Runs(np.load, "x.npy")})
    with pytest.raises(ModelError, match=r"only arrays are read|instruction"):
        read_arrays(bad)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros(3, ">f4"), np.asfortranarray(np.ones((2, 3), "f4")), np.array(["a"])])
def test_other_arrays_are_refused(tmp_path, array):
    with pytest.raises(ModelError):
        read_arrays(written(tmp_path / "bad.ckpt", {"a": array}))


def test_a_tree_without_end_is_refused(tmp_path):
    branch = {"a": np.zeros(1, "f4")}
    for _ in range(7):
        branch = {str(i): branch for i in range(30)}  # 30⁷ leaves in a small file
    with pytest.raises(ModelError):
        read_arrays(written(tmp_path / "bad.ckpt", branch))


@pytest.mark.parametrize("cut", [0, 1, 100, 1000])
def test_a_file_cut_short_is_refused(tmp_path, cut):
    whole = pickle.dumps(flax_tree(), protocol=3)
    (tmp_path / "short.ckpt").write_bytes(whole[:cut])
    with pytest.raises(ModelError, match=r"short\.ckpt"):
        read_arrays(tmp_path / "short.ckpt")


def test_a_file_without_the_layers_is_refused(tmp_path):
    with pytest.raises(ModelError, match="layers of VGG-16"):
        from_flax({"x": written(tmp_path / "x.ckpt", {"VGG16_0": {"Conv_0": {"bias": np.zeros(3, "f4")}}})})


def test_loading_names_a_wrong_file(tmp_path):
    save_file({"a": np.zeros(1, "f4")}, tmp_path / "x.safetensors")
    with pytest.raises(InputError, match=r"x\.safetensors"):
        VGG.load(tmp_path / "x.safetensors")


@pytest.mark.skipif("vgg" not in networks.ZOO or networks.cached("vgg") is None, reason="vgg was not fetched")
def test_the_published_network_tells_noise_from_sameness():
    net = VGG.load(networks.cached("vgg"))
    one = torch.nn.functional.interpolate(torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)), size=64) * 2 - 1
    noise = torch.randn(one.shape, generator=torch.Generator().manual_seed(1))
    assert float(net.lpips(one, one)) == 0
    assert 0.05 < float(net.lpips(one, one + 0.1 * noise)) < float(net.lpips(one, one + 0.5 * noise)) < 2
