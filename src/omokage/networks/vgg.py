"""VGG-16 (Simonyan & Zisserman 2015), its convolutions only: how alike two pictures look, as a loss and as a measure.

Both papers' inversion compares the outputs of conv1_1, conv1_2, conv3_2 and conv4_2, after their ReLU: what a layer hands on, as
Image2StyleGAN's code takes it; before the ReLU a difference among values that are cut off would count, though no later layer
sees it. LPIPS (Zhang et al. 2018) compares the last convolution of each of the five stages with learned weights, which the same
published file holds.

The file is a pickle of a dict of arrays. The reader allows three names, each answered with a stand-in that can only make arrays
of floats (see :mod:`.unpickling`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError, ModelError
from .unpickling import BROKEN, Allowed, unpickle

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))  # a stage's maps; its end halves the size
PERCEPTUAL = ("conv1_1", "conv1_2", "conv3_2", "conv4_2")  # the papers' layers
LPIPS = ("conv1_2", "conv2_2", "conv3_3", "conv4_3", "conv5_3")
# LPIPS's own normalisation of pictures in [−1, 1]: ImageNet's
_SHIFT, _SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)

_INSTRUCTIONS = frozenset({"BINBYTES", "SHORT_BINBYTES"})
_MOST, _DEPTH = 1_000, 8  # bounds of the tree


class VGG(nn.Module):
    """The trunk; frozen, gradients reach the picture."""

    shift: Tensor
    scale: Tensor

    def __init__(self, stages: Sequence[Sequence[int]] = STAGES) -> None:
        super().__init__()
        self.layers = nn.ModuleDict()
        self.lpips_weights = nn.ParameterDict()
        self._pooled = {f"conv{stage}_1" for stage in range(2, len(stages) + 1)}
        channels = 3
        for stage, widths in enumerate(stages, 1):
            for number, width in enumerate(widths, 1):
                self.layers[f"conv{stage}_{number}"] = nn.Conv2d(channels, width, 3, padding=1)
                channels = width
            self.lpips_weights[f"conv{stage}_{len(widths)}"] = nn.Parameter(torch.zeros(channels))
        self.register_buffer("shift", torch.tensor(_SHIFT)[:, None, None], persistent=False)
        self.register_buffer("scale", torch.tensor(_SCALE)[:, None, None], persistent=False)
        self.eval().requires_grad_(False)

    @classmethod
    def load(cls, path: str | Path) -> VGG:
        """From the safetensors file of the converted weights."""
        net = cls()
        try:
            net.load_state_dict(load_file(path))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise InputError(f"{path}: not the converted weights of VGG-16 ({type(error).__name__}); fetch it again") from error
        return net

    def forward(self, picture: Tensor, layers: Sequence[str] = PERCEPTUAL) -> dict[str, Tensor]:
        """What these layers put out after their ReLU, (b, c, h, w) each, for pictures (b, 3, h, w) in [−1, 1]."""
        unknown = set(layers) - set(self.layers)
        if unknown:
            raise InputError(f"VGG-16 has no layer {sorted(unknown)[0]!r}: its layers are {', '.join(self.layers)}")
        x = (picture - self.shift) / self.scale
        found: dict[str, Tensor] = {}
        for name, layer in self.layers.items():
            if len(found) == len(layers):
                break
            x = F.relu(layer(F.max_pool2d(x, 2) if name in self._pooled else x))
            if name in layers:
                found[name] = x
        return found

    def lpips(self, one: Tensor, other: Tensor) -> Tensor:
        """LPIPS distance of pictures (b, 3, h, w) in [−1, 1], (b,)."""
        layers = tuple(self.lpips_weights)
        total = one.new_zeros(len(one))
        for (name, a), b in zip(self(one, layers).items(), self(other, layers).values(), strict=True):
            apart = (directions(a) - directions(b)).square().mean((2, 3))  # (b, c): weights may come after the mean over places
            total = total + apart @ self.lpips_weights[name]
        return total


def directions(features: Tensor) -> Tensor:
    """Features (b, c, h, w) of unit length at each place; where there are none, neither they nor their gradient are anything."""
    return features * (features.square().sum(1, keepdim=True) + 1e-16).rsqrt()


def from_flax(files: Mapping[str, Path]) -> dict[str, NDArray[Any]]:
    """The published weights under our names, kernels turned from (h, w, in, out) to (out, in, h, w)."""
    (path,) = files.values()
    try:
        tree = read_arrays(path)
        trunk = tree["VGG16_0"]
        names = [f"conv{stage}_{number}" for stage, widths in enumerate(STAGES, 1) for number in range(1, len(widths) + 1)]
        found: dict[str, NDArray[Any]] = {}
        for number, name in enumerate(names):
            layer = trunk[f"Conv_{number}"]
            found[f"layers.{name}.weight"] = np.array(layer["kernel"].transpose(3, 2, 0, 1), np.float32, order="C")
            found[f"layers.{name}.bias"] = np.array(layer["bias"], np.float32)
        for number, name in enumerate(LPIPS):
            kernel = tree[f"NetLinLayer_{number}"]["Conv_0"]["kernel"]  # (1, 1, c, 1)
            found[f"lpips_weights.{name}"] = np.array(kernel.reshape(-1), np.float32)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ModelError(f"{path.name} does not hold the layers of VGG-16") from None
    return found


def read_arrays(path: Path) -> dict[str, Any]:
    """A pickled tree of dicts of arrays, read without running anything in it."""
    try:
        return _finished(unpickle(path.read_bytes(), Allowed(_stand_in, "arrays", _INSTRUCTIONS)))
    except InputError as error:
        raise ModelError(f"{path.name} is not read: {error}") from None
    except OSError as error:
        raise ModelError(f"{path.name} cannot be read: {error.strerror}") from None
    except BROKEN:
        raise ModelError(f"{path.name} is not a whole pickle of arrays") from None


class _Type:
    """Stands for numpy's dtype: little-endian float32 or nothing."""

    def __init__(self, name: str, *_: Any) -> None:
        if name != "f4":
            raise ValueError("only float32 is read")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] != "<":
            raise ValueError("only little-endian numbers are read")


class _Array:
    """Stands for an array until its state has come."""

    values: NDArray[np.float32] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, _Type) or not isinstance(raw, bytes) or fortran is not False:
            raise ValueError("an array is not as numpy writes it")
        shape = tuple(int(n) for n in shape)
        if min(shape, default=0) < 0 or 4 * math.prod(shape) != len(raw):
            raise ValueError("an array has not the length that its shape says")
        self.values = np.frombuffer(raw, "<f4").reshape(shape)


def _stand_in(module: str, name: str) -> Callable[[], Any] | None:
    match module, name:
        case (("numpy.core.multiarray" | "numpy._core.multiarray"), "_reconstruct"):
            return lambda: lambda *_: _Array()
        case "numpy", "dtype":
            return lambda: lambda *arguments: _Type(*arguments)
        case "numpy", "ndarray":
            return lambda: None  # an argument of _reconstruct, which ignores it
    return None


def _finished(tree: Any) -> dict[str, Any]:
    """The dict with arrays in the place of the stand-ins; small and flat, as a pickle may share branches without end."""
    found: dict[str, Any] = {}
    waiting: list[tuple[dict[str, Any], Any, int]] = [(found, tree, 0)]
    for _ in range(_MOST):
        if not waiting:
            return found
        into, branch, depth = waiting.pop()
        if not isinstance(branch, dict) or depth > _DEPTH or len(branch) > _MOST:
            raise ValueError("not a small tree of dicts")
        for key, value in branch.items():
            if isinstance(value, _Array) and value.values is not None:
                into[str(key)] = value.values
            else:
                into[str(key)] = {}
                waiting.append((into[str(key)], value, depth + 1))
    raise ValueError("the tree has too many branches")
