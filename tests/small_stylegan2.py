"""Small StyleGAN2 checkpoints in the two layouts, and StyleGAN2 the slow way to compare with."""

from __future__ import annotations

import math
import pickle
import sys
import types
from contextlib import contextmanager

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

Z, STYLE, CHANNELS = 6, 8, {4: 6, 8: 5, 16: 4}  # a generator of 16 px
FILTER = torch.outer(torch.tensor([1.0, 3, 3, 1]), torch.tensor([1.0, 3, 3, 1])) / 64


# ---- NVIDIA's layout: modules that pickle themselves with their source code ------------------------------------------------


class Module(torch.nn.Module):
    """Pickled, it is what NVIDIA's persistent classes are: a call of their loader with the class's source and the state."""

    def __init__(self, kind, source, **settings):
        super().__init__()
        self.kind, self.source = kind, source
        self._init_args, self._init_kwargs = (), sys.modules["dnnlib.util"].EasyDict(width=3)
        self.__dict__.update(settings)

    def __reduce__(self):
        state = {name: value for name, value in self.__dict__.items() if name not in ("kind", "source")}
        meta = {"type": "class", "version": 6, "module_src": self.source, "class_name": self.kind, "state": state}
        return sys.modules["torch_utils.persistence"]._reconstruct_persistent_obj, (meta,), None


class EasyDict(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _reconstruct_persistent_obj(meta):
    raise AssertionError("NVIDIA's loader is called")


@contextmanager
def nvidia_packages():
    """NVIDIA's packages, as far as pickling looks at them."""
    wanted = {
        "torch_utils.persistence": _reconstruct_persistent_obj,
        "dnnlib.util": type("EasyDict", (EasyDict,), {}),
        "dnnlib.tflib.network": type("Network", (), {}),
    }
    names = {name.rsplit(".", depth)[0] for name in wanted for depth in range(3)}
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setitem(sys.modules, name, types.ModuleType(name))
        for name, thing in wanted.items():
            patch.setattr(thing, "__module__", name)
            setattr(sys.modules[name], thing.__name__, thing)
        yield


def dense(source, inputs, outputs, activation="linear", rate=1, bias=0.0):
    gain = rate / np.sqrt(inputs)  # a NumPy scalar, in NVIDIA's files too
    layer = Module("FullyConnectedLayer", source, activation=activation, weight_gain=gain, bias_gain=rate)
    layer.weight = torch.nn.Parameter(torch.randn(outputs, inputs) / rate)
    layer.bias = torch.nn.Parameter(torch.randn(outputs) * 0.1 / rate + bias)
    return layer


def styled(source, inputs, outputs, size, up, clamp):
    layer = Module("SynthesisLayer", source, activation="lrelu", up=up, conv_clamp=clamp, use_noise=True, act_gain=np.sqrt(2))
    layer.register_buffer("resample_filter", FILTER.clone())
    layer.affine = dense(source, STYLE, inputs, bias=1.0)
    layer.weight = torch.nn.Parameter(torch.randn(outputs, inputs, 3, 3).to(memory_format=torch.channels_last))
    layer.register_buffer("noise_const", torch.randn(size, size))
    layer.noise_strength = torch.nn.Parameter(torch.tensor(0.3))
    layer.bias = torch.nn.Parameter(torch.randn(outputs) * 0.2)
    return layer


def generator_module(source="", clamp=None, channels=CHANNELS, c_dim=0):
    torch.manual_seed(0)
    synthesis = Module("SynthesisNetwork", source, w_dim=STYLE, img_channels=3, block_resolutions=list(channels))
    before = 0
    for size, width in channels.items():
        block = Module("SynthesisBlock", source, architecture="skip", resolution=size, in_channels=before)
        block.register_buffer("resample_filter", FILTER.clone())
        if before:
            block.conv0 = styled(source, before, width, size, 2, clamp)
        else:
            block.const = torch.nn.Parameter(torch.randn(width, 4, 4))
        block.conv1 = styled(source, width, width, size, 1, clamp)
        block.torgb = Module("ToRGBLayer", source, conv_clamp=clamp, weight_gain=1 / np.sqrt(width))
        block.torgb.affine = dense(source, STYLE, width, bias=1.0)
        block.torgb.weight = torch.nn.Parameter(torch.randn(3, width, 1, 1))
        block.torgb.bias = torch.nn.Parameter(torch.randn(3) * 0.1)
        setattr(synthesis, f"b{size}", block)
        before = width
    mapping = Module("MappingNetwork", source, z_dim=Z, c_dim=c_dim, w_dim=STYLE, num_ws=6, num_layers=3, w_avg_beta=0.995)
    for i, (inputs, outputs) in enumerate(((Z, 7), (7, 7), (7, STYLE))):
        setattr(mapping, f"fc{i}", dense(source, inputs, outputs, "lrelu", 0.01))
    mapping.register_buffer("w_avg", torch.randn(STYLE) * 0.1)
    root = Module("Generator", source, z_dim=Z, c_dim=c_dim, w_dim=STYLE, img_resolution=max(channels), img_channels=3)
    root.synthesis, root.mapping = synthesis, mapping
    return root.eval().requires_grad_(False)


def write_nvidia(path, change=lambda root: None, protocol=4, **options):
    """Write a small checkpoint in NVIDIA's layout; its generator's tensors, by NVIDIA's names."""
    with nvidia_packages():
        root = generator_module(**options)
        change(root)
        kwargs = sys.modules["dnnlib.util"].EasyDict(path="faces.zip", resolution=16)
        snapshot = {"G": root, "D": None, "G_ema": root, "augment_pipe": None, "training_set_kwargs": kwargs}
        path.write_bytes(pickle.dumps(snapshot, protocol))
    return root.state_dict()


# ---- the PyTorch port's layout ----------------------------------------------------------------------------------------------


def port_names(state):
    """NVIDIA's names of a 16 px generator's tensors → the port's, in the port's shapes."""
    leaves = {"affine.weight": "conv.modulation.weight", "affine.bias": "conv.modulation.bias"}
    found = {"input.input": state["synthesis.b4.const"][None]}
    for i in range(3):
        for leaf in ("weight", "bias"):
            found[f"style.{i + 1}.{leaf}"] = state[f"mapping.fc{i}.{leaf}"]
    convs = {"b4.conv1": "conv1", "b8.conv0": "convs.0", "b8.conv1": "convs.1", "b16.conv0": "convs.2", "b16.conv1": "convs.3"}
    for number, (theirs, name) in enumerate(convs.items()):
        layer = f"synthesis.{theirs}"
        found |= {f"{name}.{leaf}": state[f"{layer}.{old}"] for old, leaf in leaves.items()}
        found[f"{name}.conv.weight"] = state[f"{layer}.weight"][None]
        found[f"{name}.activate.bias"] = state[f"{layer}.bias"]
        found[f"{name}.noise.weight"] = state[f"{layer}.noise_strength"].reshape(1)
        found[f"noises.noise_{number}"] = state[f"{layer}.noise_const"][None, None]
        if "conv0" in theirs:
            found[f"{name}.conv.blur.kernel"] = FILTER * 4
    for size, name in ((4, "to_rgb1"), (8, "to_rgbs.0"), (16, "to_rgbs.1")):
        layer = f"synthesis.b{size}.torgb"
        found |= {f"{name}.{leaf}": state[f"{layer}.{old}"] for old, leaf in leaves.items()}
        found[f"{name}.conv.weight"] = state[f"{layer}.weight"][None]
        found[f"{name}.bias"] = state[f"{layer}.bias"].view(1, 3, 1, 1)
        if size > 4:
            found[f"{name}.upsample.kernel"] = FILTER * 4
    return found


# ---- StyleGAN2 the slow way ----------------------------------------------------------------------------------------------------


def upfirdn(x, before, after):
    """Zeros between the pixels and around, then the filter, four times its sum."""
    b, c, h, w = x.shape
    spread = torch.zeros(b, c, 2 * h, 2 * w)
    spread[:, :, ::2, ::2] = x
    spread = F.pad(spread, (before, after, before, after))
    return F.conv2d(spread.reshape(b * c, 1, *spread.shape[2:]), 4 * FILTER[None, None]).reshape(
        b, c, 2 * h + before + after - 3, -1
    )


def reference_conv(state, name, x, w, up=False):
    style = w @ (state[f"{name}.affine.weight"] / math.sqrt(STYLE)).T + state[f"{name}.affine.bias"]
    weight = state[f"{name}.weight"][None] * style[:, None, :, None, None]  # (b, c', c, k, k), each sample its own
    demodulated = "torgb" not in name
    if demodulated:
        weight = weight / torch.sqrt((weight**2).sum((2, 3, 4), keepdim=True) + 1e-8)
    else:
        weight = weight / math.sqrt(weight.shape[2])
    if up:
        x = upfirdn(x, 3, 2)
        weight = weight.flip(3, 4)
    b, outputs, inputs, k, _ = weight.shape
    pads = 0 if up else k // 2
    x = F.conv2d(x.reshape(1, b * inputs, *x.shape[2:]), weight.reshape(b * outputs, inputs, k, k), groups=b, padding=pads)
    x = x.reshape(b, outputs, *x.shape[2:])
    if demodulated:
        x = x + state[f"{name}.noise_const"] * state[f"{name}.noise_strength"]
    x = x + state[f"{name}.bias"][:, None, None]
    return torch.where(x > 0, x, 0.2 * x) * math.sqrt(2) if demodulated else x


def reference_image(state, w, clamp=math.inf):
    """The image of W+ (b, 6, style) at 16 px, from NVIDIA's names."""
    bound = lambda x: x.clamp(-clamp, clamp)  # noqa: E731
    x = state["synthesis.b4.const"].repeat(len(w), 1, 1, 1)
    x = bound(reference_conv(state, "synthesis.b4.conv1", x, w[:, 0]))
    image = bound(reference_conv(state, "synthesis.b4.torgb", x, w[:, 1]))
    for size, row in ((8, 1), (16, 3)):
        x = bound(reference_conv(state, f"synthesis.b{size}.conv0", x, w[:, row], up=True))
        x = bound(reference_conv(state, f"synthesis.b{size}.conv1", x, w[:, row + 1]))
        image = upfirdn(image, 2, 1) + bound(reference_conv(state, f"synthesis.b{size}.torgb", x, w[:, row + 2]))
    return image


def reference_mapping(state, z):
    w = z / torch.sqrt((z**2).mean(1, keepdim=True) + 1e-8)
    for i in range(3):
        weight, bias = state[f"mapping.fc{i}.weight"], state[f"mapping.fc{i}.bias"]
        w = w @ (0.01 * weight / math.sqrt(weight.shape[1])).T + 0.01 * bias
        w = torch.where(w > 0, w, 0.2 * w) * math.sqrt(2)
    return w


def check_against_reference(found, state, clamp=math.inf):
    rng = torch.Generator().manual_seed(1)
    w_plus, z = torch.randn(3, 6, STYLE, generator=rng), torch.randn(3, Z, generator=rng)
    w = reference_mapping(state, z)
    torch.testing.assert_close(found(w_plus), reference_image(state, w_plus, clamp), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found(w), reference_image(state, w[:, None].expand(-1, 6, -1), clamp), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.mapping(z), w, atol=1e-5, rtol=1e-5)
