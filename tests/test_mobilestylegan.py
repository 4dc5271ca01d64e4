"""MobileStyleGAN: its parts against their definitions, the reader against small graphs, the whole against OpenVINO."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.numpy import save_file  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from omokage.errors import InputError  # noqa: E402
from omokage.networks import mobilestylegan, mobilestylegan_ir  # noqa: E402
from omokage.networks.mobilestylegan import Generator, Synthesis, from_openvino, haar_upsample, modulate  # noqa: E402

STYLE, CHANNELS = 6, (8, 16, 8, 4)  # 64 px
FILES = ("MappingNetwork.xml", "MappingNetwork.bin", "SynthesisNetwork.xml", "SynthesisNetwork.bin")


class Writer:
    """A small OpenVINO graph, with the nodes that the reader looks at; ``arrays`` keeps the constants by name."""

    def __init__(self) -> None:
        self.layers, self.edges, self.raw, self.arrays = [], [], b"", {}

    def const(self, name, array):
        array = np.asarray(array, np.float32)
        where = f'offset="{len(self.raw)}" size="{array.nbytes}"'
        shape = ", ".join(map(str, array.shape))
        self.raw += array.tobytes()
        self.arrays[name] = array
        return self.op("Const", name, data=f'<data element_type="f32" shape="{shape}" {where}/>')

    def op(self, kind, name, *inputs, data=""):
        key = len(self.layers)
        self.layers.append(f"<layer id={quoteattr(str(key))} name={quoteattr(name)} type={quoteattr(kind)}>{data}</layer>")
        for port, source in enumerate(inputs):
            self.edges.append(f'<edge from-layer="{source}" from-port="0" to-layer="{key}" to-port="{port}"/>')
        return key

    def save(self, folder, stem):
        body = f"<layers>{''.join(self.layers)}</layers><edges>{''.join(self.edges)}</edges>"
        (folder / f"{stem}.xml").write_text(f'<?xml version="1.0"?><net name="{stem}" version="10">{body}</net>')
        (folder / f"{stem}.bin").write_bytes(self.raw)


def mapping_graph(style=STYLE, layers=8, weight=None):
    rng, graph = np.random.default_rng(1), Writer()
    x = graph.op("Parameter", "var")
    for i in range(layers):
        product = graph.op(
            "MatMul", f"product{i}", x, graph.const(f"w{i}", rng.normal(size=(style, style)) if weight is None else weight)
        )
        bias = graph.op("Reshape", f"reshape{i}", graph.const(f"b{i}", rng.normal(size=style)))
        x = graph.op("PReLU", f"act{i}", graph.op("Add", f"add{i}", product, bias), graph.const(f"slope{i}", [0.2]))
    return graph


def synthesis_graph(style=STYLE, channels=CHANNELS, taps=(1, -1)):
    """The published graph in small: the same names where there are any, the same order of channels."""
    rng, graph = np.random.default_rng(2), Writer()
    w = graph.op("Parameter", "style")
    x = graph.const("m.input.input", rng.normal(size=(1, channels[0], 4, 4)))

    def random(name, *shape):
        return graph.const(name, rng.normal(size=shape) / 2)

    def modulated(x, name, count, scale=True):
        product = graph.op("MatMul", f"{name}.p", w, random(f"{name}.modulation.weight", count, style))
        y = graph.op("Reshape", f"{name}.r", graph.op("Add", f"{name}.s", product, random(f"{name}.modulation.bias", 1, count)))
        if scale:
            y = graph.op("Multiply", f"{name}.c", y, graph.const(f"{name}.scale", np.full((1, 1, 1, 1), 0.5)))
        return graph.op("Multiply", f"{name}.m", y, x)

    def activated(y, name, count, size):
        y = graph.op("Add", f"{name}.n", y, random(f"{name}.noise", 1, 1, size, size))
        y = graph.op("Add", f"{name}.b", y, random(f"{name}.bias", 1, count, 1, 1))
        return graph.op("PReLU", f"{name}.a", y, graph.const(f"{name}.slope", [0.2]))

    def separable(x, name, coarse, fine, size):
        y = modulated(x, f"{name}.conv", coarse)
        y = graph.op("GroupConvolution", f"{name}.d", y, random(f"{name}.conv.weight_dw", coarse, 1, 1, 3, 3))
        return activated(graph.op("Convolution", f"{name}.w", y, random(f"{name}.pw", fine, coarse, 1, 1)), name, fine, size)

    c = channels[0]
    x = graph.op("Convolution", "first", modulated(x, "m.conv1.conv", c), random("m.conv1.w", c, c, 3, 3))
    x = activated(x, "m.conv1", c, 4)
    for i, (coarse, fine) in enumerate(pairwise(channels)):
        name = f"m.layers.{i}"
        haar = graph.const(f"{name}.haar", np.tile(np.reshape(taps, (1, 1, 1, 2, 1)), (coarse // 4, 1, 1, 1, 1)) / np.sqrt(2))
        x = graph.op("GroupConvolutionBackpropData", f"{name}.t", modulated(x, f"{name}.up", coarse, scale=False), haar)
        x = separable(separable(x, f"{name}.conv1", coarse // 4, fine, 8 << i), f"{name}.conv2", fine, fine, 8 << i)
    name = f"m.layers.{len(channels) - 2}.to_img"
    head = random(f"{name}.conv.weight", 12, channels[-1], 1, 1)
    x = graph.op("Convolution", "head", modulated(x, f"{name}.conv", channels[-1]), head)
    graph.op("Add", "img", x, random(f"{name}.bias", 1, 12, 1, 1))
    return graph


def inverse_haar(x):
    """By the definition, on the published order of channels: (b, 4c, h, w) → (b, c, 2h, 2w)."""
    c = x.shape[1] // 4
    details = x[:, c:].reshape(x.shape[0], c, 3, *x.shape[2:])
    low, high = torch.tensor([1.0, 1.0]) / 2**0.5, torch.tensor([1.0, -1.0]) / 2**0.5

    def rows(a, taps):
        return F.conv_transpose2d(a, taps.view(1, 1, 2, 1).repeat(c, 1, 1, 1), stride=(2, 1), groups=c)

    def columns(a, taps):
        return F.conv_transpose2d(a, taps.view(1, 1, 1, 2).repeat(c, 1, 1, 1), stride=(1, 2), groups=c)

    left = rows(x[:, :c], low) + rows(details[:, :, 0], high)
    right = rows(details[:, :, 1], low) + rows(details[:, :, 2], high)
    return columns(left, low) + columns(right, high)


def reference(arrays, w, channels=CHANNELS):
    """The network as published, sample by sample with weights of its own for each; w is W+."""
    a = {name: torch.from_numpy(array) for name, array in arrays.items()}

    def style(name, row, one, scale=1.0):
        return scale * (a[f"{name}.modulation.weight"] @ one[row] + a[f"{name}.modulation.bias"][0])

    def layer(x, name, row, one):
        scale = style(f"{name}.conv", row, one, 0.5)
        if name == "m.conv1":
            x = F.conv2d(x, a["m.conv1.w"] * scale[:, None, None], padding=1)
        else:
            depthwise = a[f"{name}.conv.weight_dw"][:, 0] * scale[:, None, None, None]
            x = F.conv2d(F.conv2d(x, depthwise, padding=1, groups=len(scale)), a[f"{name}.pw"])
        return F.leaky_relu(x + a[f"{name}.noise"] + a[f"{name}.bias"], 0.2)

    images = []
    for one in w:
        x = layer(a["m.input.input"], "m.conv1", 0, one)
        for i in range(len(channels) - 1):
            name = f"m.layers.{i}"
            x = inverse_haar(x * style(f"{name}.up", 1 + 3 * i, one)[:, None, None])
            x = layer(layer(x, f"{name}.conv1", 2 + 3 * i, one), f"{name}.conv2", 3 + 3 * i, one)
        name = f"m.layers.{len(channels) - 2}.to_img"
        weight = a[f"{name}.conv.weight"] * style(f"{name}.conv", -1, one, 0.5)[:, None, None]
        images.append(inverse_haar(F.conv2d(x, weight) + a[f"{name}.bias"]))
    return torch.cat(images)


@pytest.fixture
def graph(tmp_path):
    written = synthesis_graph()
    written.save(tmp_path, "SynthesisNetwork")
    return written


@pytest.fixture
def synthesis(graph, tmp_path):
    read = mobilestylegan_ir.Graph.read(tmp_path / FILES[2], tmp_path / FILES[3])
    arrays = mobilestylegan_ir.read_synthesis(read, STYLE, CHANNELS)
    network = Synthesis(STYLE, CHANNELS).requires_grad_(False)
    network.load_state_dict({name.removeprefix("synthesis."): torch.tensor(array) for name, array in arrays.items()})
    return network


@pytest.fixture
def styles():
    return torch.from_numpy(np.random.default_rng(3).normal(size=(2, 3 * len(CHANNELS) - 1, STYLE)).astype(np.float32))


def test_haar_is_its_definition():
    x = torch.randn(2, 12, 3, 5)
    order = torch.from_numpy(mobilestylegan_ir.by_band(12))
    ours = haar_upsample(x[:, order].permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    torch.testing.assert_close(ours, inverse_haar(x))


def test_haar_keeps_the_norm_and_has_the_right_gradient():
    x = torch.randn(2, 3, 2, 8, dtype=torch.float64, requires_grad=True)
    assert haar_upsample(x).norm().item() == pytest.approx(x.norm().item())
    assert torch.autograd.gradcheck(haar_upsample, x)


def test_modulated_activations_are_weights_for_each_sample():
    x, scale, weight = torch.randn(3, 5, 4, 6), torch.randn(3, 6), torch.randn(7, 6, 3, 3)
    ours = F.conv2d(modulate(x.clone(), scale).permute(0, 3, 1, 2), weight, padding=1)
    theirs = [F.conv2d(one.permute(2, 0, 1)[None], weight * s[:, None, None], padding=1) for one, s in zip(x, scale, strict=True)]
    torch.testing.assert_close(ours, torch.cat(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strip_bytes", [1, 1 << 12, 1 << 30])
@pytest.mark.parametrize("grad", [False, True])
def test_a_read_graph_draws_what_it_says(graph, synthesis, styles, strip_bytes, grad, monkeypatch):
    monkeypatch.setattr(mobilestylegan, "STRIP_BYTES", strip_bytes)
    expected = reference(graph.arrays, styles)
    with torch.set_grad_enabled(grad):
        image = synthesis(styles)
    assert image.shape == (2, 3, 64, 64)
    torch.testing.assert_close(image, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())


def test_one_style_for_all_layers(synthesis, styles):
    repeated = styles[:, :1].repeat(1, styles.shape[1], 1)
    torch.testing.assert_close(synthesis(styles[:, 0]), synthesis(repeated), rtol=1e-4, atol=1e-4)


def test_gradients_reach_every_style_and_are_those_of_the_definition(graph, synthesis, styles, monkeypatch):
    monkeypatch.setattr(mobilestylegan, "STRIP_BYTES", 1)
    ours, theirs = styles.clone().requires_grad_(), styles.clone().requires_grad_()
    synthesis(ours).square().mean().backward()
    reference(graph.arrays, theirs).square().mean().backward()
    assert (ours.grad.abs().sum((0, 2)) > 0).all()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4 * theirs.grad.abs().max().item())


def test_an_early_exit_uses_only_earlier_styles(synthesis, styles):
    w = styles.clone().requires_grad_()
    features = synthesis(w, exit=16)
    assert features.shape == (2, CHANNELS[2], 16, 16)
    features.sum().backward()
    used = w.grad.abs().sum((0, 2)) > 0
    assert used[:7].all()
    assert not used[7:].any()


@pytest.mark.parametrize("shape", [(6,), (2, 5), (2, 4, 6), (1, 2, 11, 6)])
def test_wrong_styles_are_refused(synthesis, shape):
    with pytest.raises(InputError, match="styles of shape"):
        synthesis(torch.zeros(shape))


def test_a_wrong_exit_is_refused(synthesis, styles):
    with pytest.raises(InputError, match="exit=64"):
        synthesis(styles, exit=64)


def test_samples_are_repeatable_and_stream():
    generator = Generator(STYLE, CHANNELS)
    torch.nn.init.normal_(generator.synthesis.to_img.bias, generator=torch.Generator().manual_seed(0))
    batches = list(generator.sample(5, seed=7, size=16, batch=2))
    assert [batch.shape for batch in batches] == [(2, 16, 16, 3), (2, 16, 16, 3), (1, 16, 16, 3)]
    assert all(batch.dtype == np.uint8 for batch in batches)
    again = list(generator.sample(5, seed=7, size=16, batch=5))
    np.testing.assert_array_equal(np.concatenate(batches), again[0])
    torch.testing.assert_close(generator.sample_w(3, seed=1)[:2], generator.sample_w(2, seed=1))
    torch.testing.assert_close(generator.sample_w(2, seed=1, truncation=0), generator.w_mean.repeat(2, 1))
    for bad in ({"n": 0}, {"truncation": 1.5}, {"size": 48}, {"size": 128}, {"batch": 0}):
        with pytest.raises(InputError):
            generator.sample(**{"n": 1, "seed": 0, **bad})


@pytest.fixture
def published(tmp_path):
    mapping_graph().save(tmp_path, "MappingNetwork")
    synthesis_graph().save(tmp_path, "SynthesisNetwork")
    return {name: tmp_path / name for name in FILES}


@pytest.fixture
def small(monkeypatch):
    """The reader with the sizes of the small network."""
    whole = (mobilestylegan_ir.read_mapping, mobilestylegan_ir.read_synthesis)
    monkeypatch.setattr(mobilestylegan_ir, "read_mapping", lambda graph: whole[0](graph, STYLE))
    monkeypatch.setattr(mobilestylegan_ir, "read_synthesis", lambda graph: whole[1](graph, STYLE, CHANNELS))


@pytest.mark.usefixtures("small")
def test_what_is_read_is_what_the_generator_takes(published, tmp_path):
    weights = from_openvino(published)
    assert {name: array.shape for name, array in weights.items()} == {
        name: tuple(tensor.shape) for name, tensor in Generator(STYLE, CHANNELS).state_dict().items()
    }
    assert all(array.dtype == np.float32 and array.flags.c_contiguous for array in weights.values())
    generator = Generator(STYLE, CHANNELS)
    generator.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    w = generator.sample_w(4000, seed=5, truncation=1.0)
    torch.testing.assert_close(w.mean(0), generator.w_mean, rtol=0.1, atol=0.1 * w.std().item())
    torch.testing.assert_close((w - generator.w_mean).norm(dim=1).mean(), generator.w_norm, rtol=0.05, atol=0)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_truncated_file_is_refused(published, name):
    with pytest.raises(InputError, match=name):
        from_openvino({key: path for key, path in published.items() if key != name})
    published[name].write_bytes(published[name].read_bytes()[:-40])
    with pytest.raises(InputError, match="damaged"):
        from_openvino(published)
    published[name].unlink()
    with pytest.raises(InputError, match="cannot be read"):
        from_openvino(published)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<net ", '<!DOCTYPE net [<!ENTITY a "b">]><net ', "document type"),
        ('version="10"', 'version="11"', "version 10"),
        ("<net ", "\udcff<net ", "cannot be read"),
        ('name="m.conv1.bias"', 'name="m.conv9.bias"', "0 constants are named m.conv1.bias"),
        ('element_type="f32"', 'element_type="f16"', "f32"),
        ('type="GroupConvolution"', 'type="Convolution"', "GroupConvolution is expected"),
        ('offset="', 'offset="-', "lies outside"),
        ('shape="', 'shape="x', "does not state its shape"),
        ("to-port", "to-gate", "not an OpenVINO graph"),
    ],
)
def test_a_damaged_graph_is_refused(published, old, new, message):
    path = published["SynthesisNetwork.xml"]
    text = path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=message):
        from_openvino(published)


@pytest.mark.usefixtures("small")
def test_other_wavelets_and_numbers_that_are_none_are_refused(published, tmp_path):
    synthesis_graph(taps=(1, 0.5)).save(tmp_path, "SynthesisNetwork")
    with pytest.raises(InputError, match="Haar"):
        from_openvino(published)
    synthesis_graph().save(tmp_path, "SynthesisNetwork")
    mapping_graph(weight=np.full((STYLE, STYLE), np.nan)).save(tmp_path, "MappingNetwork")
    with pytest.raises(InputError, match="not finite"):
        from_openvino(published)
    mapping_graph(layers=7).save(tmp_path, "MappingNetwork")
    with pytest.raises(InputError, match="7 matrix products"):
        from_openvino(published)


def test_a_network_of_another_size_is_refused(published):
    with pytest.raises(InputError, match="is expected"):
        from_openvino(published)


def test_weights_that_are_not_these_are_refused(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"no weights")
    save_file({"w_mean": np.zeros(512, np.float32)}, tmp_path / "b.safetensors")
    for name in ("a", "b", "c"):
        with pytest.raises(InputError, match="MobileStyleGAN"):
            Generator.load(tmp_path / f"{name}.safetensors")


# The published network. The numbers are OpenVINO's (2026.4, f32) for sample_w(1, seed=0), an image in [−1, 1].

GREEN = (
    (0.0280, 0.0351, 0.1172, -0.0412, -0.0814, 0.0915, -0.0233, -0.0480),
    (0.0225, 0.0587, -0.0261, 0.1070, 0.3665, 0.1702, -0.1671, -0.3052),
    (-0.0222, 0.0228, 0.0764, 0.5838, 0.6238, 0.5785, -0.2618, -0.4632),
    (0.0705, -0.0038, -0.1459, 0.1668, 0.0688, 0.2642, -0.0932, -0.4387),
    (0.2832, -0.0709, 0.1887, 0.4840, 0.3518, 0.5191, 0.0512, -0.5624),
    (0.2639, 0.0378, -0.1749, 0.0545, 0.0268, 0.1314, -0.1242, -0.4783),
    (0.0942, -0.0145, -0.5423, 0.1885, 0.3110, 0.1647, -0.3977, -0.3273),
    (-0.0834, -0.0585, -0.3874, -0.2716, 0.0118, -0.0629, -0.2009, -0.0681),
)  # the second channel, averaged to 8 × 8
PIXELS = {
    (480, 390): (-0.7797, -0.7757, -0.7411),
    (481, 390): (-0.6934, -0.6758, -0.6679),
    (480, 391): (-0.7532, -0.7365, -0.7102),
    (700, 512): (0.2648, -0.2585, -0.2784),
    (20, 1000): (0.1960, 0.0333, -0.1046),
}


@pytest.fixture(scope="module")
def generator():
    home = Path(os.environ.get("OMOKAGE_HOME", "~/.cache/omokage")).expanduser()
    path = home / "models" / "mobilestylegan" / "weights.safetensors"
    if not path.is_file():
        pytest.skip("the weights of MobileStyleGAN are not in the cache")
    return Generator.load(path)


def test_the_image_is_that_of_openvino(generator):
    with torch.inference_mode():
        image = generator(generator.sample_w(1, seed=0))[0].numpy()
    np.testing.assert_allclose(image[1].reshape(8, 128, 8, 128).mean((1, 3)), GREEN, atol=2e-3)
    np.testing.assert_allclose(image.mean((1, 2)), (0.2357, 0.0105, -0.0196), atol=2e-3)
    np.testing.assert_allclose(image.std((1, 2)), (0.3969, 0.3778, 0.4113), atol=2e-3)
    for (row, column), colour in PIXELS.items():
        np.testing.assert_allclose(image[:, row, column], colour, atol=2e-3)


def test_a_sample_is_the_image_in_bytes(generator):
    (picture,) = np.concatenate(list(generator.sample(1, seed=0, size=8)))
    np.testing.assert_allclose(picture[..., 1], np.add(GREEN, 1) * 127.5, atol=1.5)  # clipping moves the means a little


def test_an_exit_gives_the_map_of_that_size(generator):
    w = generator.w_mean[None, None].repeat(1, 23, 1).requires_grad_()
    features = generator(w, exit=64)
    assert features.shape == (1, 512, 64, 64)
    features.square().mean().backward()
    assert (w.grad[0, :13].abs().sum(1) > 0).all()
