"""Inception-v3 of 2015 (Szegedy et al. 2016) as published FIDs use it: 2048 features of a picture.

It differs from the usual Inception-v3: average pools leave the padding out, the last block takes a maximum where the others take
an average, and pictures come to 299 × 299 as TensorFlow 1 did it: bilinear from the upper left corner, without smoothing before
a reduction. FIDs compare only if all of this is kept, so it is. The published archive takes pictures already reduced and scaled
to (x − 128)/128; the package that carries it does both outside, and here :meth:`Inception.features` does.

Ours is the order of sums: batch normalisations are folded into the convolutions, and an average pool comes after its 1×1
convolution, where it has fewer channels. Both are exact but for rounding.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError, ModelError
from .torchscript import read_torchscript

SIDE, FEATURES = 299, 2048
_EPSILON = 1e-3  # of the published batch normalisations
_LAYOUT = {1: torch.contiguous_format, 4: torch.channels_last}  # of biases, of weights
_Step = tuple[int, str] | tuple[int, str, int]  # width, kernel, stride


def from_torchscript(files: Mapping[str, Path]) -> dict[str, NDArray[np.float32]]:
    """The published weights, folded: a weight and a bias for every convolution, under nearly the published names."""
    (path,) = files.values()
    found = {name: array.astype(np.float64) for name, array in read_torchscript(path).items()}
    folded: dict[str, NDArray[np.float32]] = {}
    try:
        for theirs in (name.removesuffix(".weight") for name in found if name.endswith(".weight")):
            scale = 1 / np.sqrt(found[f"{theirs}.var"] + _EPSILON)  # (out,)
            bias = found[f"{theirs}.beta"] - found[f"{theirs}.mean"] * scale
            ours = re.sub(r"tower_2[._]conv", "pooled", theirs.removeprefix("net."))
            ours = re.sub(r"(tower(_1)?)_(conv|mixed)", r"\1.\3", ours)
            folded[f"{ours}.weight"] = (found[f"{theirs}.weight"] * scale[:, None, None, None]).astype(np.float32)
            folded[f"{ours}.bias"] = bias.astype(np.float32)
        return {name: folded[name] for name in _network().state_dict()}
    except (KeyError, ValueError, IndexError):
        raise ModelError(f"{path.name} does not hold the Inception-v3 of FID") from None


class _Convolution(nn.Conv2d):
    """Convolution and ReLU. It keeps the size, but with stride 2 or ``same=False`` takes only whole windows."""

    def __init__(self, into: int, out: int, kernel: str, stride: int = 1, same: bool = True) -> None:
        height, width = (int(side) for side in kernel.split("×"))
        padding = (height // 2, width // 2) if same and stride == 1 else (0, 0)
        super().__init__(into, out, (height, width), stride, padding)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu_(super().forward(x))


class _Averaged(_Convolution):
    """Average over the neighbours, then convolution and ReLU. The first two are linear, so the narrower side is averaged."""

    def forward(self, x: Tensor) -> Tensor:
        return F.relu_(F.avg_pool2d(nn.Conv2d.forward(self, x), 3, 1, 1, count_include_pad=False))


class _Highest(_Convolution):
    """Maximum over the neighbours, then convolution and ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.max_pool2d(x, 3, 1, 1))


class _Tower(nn.Sequential):
    """Convolutions one after the other: conv, conv_1, conv_2, …"""

    def __init__(self, into: int, *steps: _Step) -> None:
        widths = [into, *(step[0] for step in steps)]
        super().__init__(OrderedDict((_nth("conv", i), _Convolution(widths[i], *step)) for i, step in enumerate(steps)))


class _Forked(_Tower):
    """A tower that ends in a row and a column beside each other."""

    def __init__(self, into: int, *steps: _Step) -> None:
        super().__init__(into, *steps)
        self.mixed_conv = _Convolution(384, 384, "1×3")
        self.mixed_conv_1 = _Convolution(384, 384, "3×1")

    def forward(self, x: Tensor) -> Tensor:
        *steps, row, column = self
        for step in steps:
            x = step(x)
        return torch.cat([row(x), column(x)], 1)


class _Mixed(nn.ModuleDict):
    """Branches beside each other; their channels are joined in the order given."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.values()], 1)


def _nth(name: str, i: int) -> str:
    return f"{name}_{i}" if i else name


def _fine(into: int, pooled: int) -> _Mixed:  # 35 × 35
    return _Mixed({
        "conv": _Convolution(into, 64, "1×1"),
        "tower": _Tower(into, (48, "1×1"), (64, "5×5")),
        "tower_1": _Tower(into, (64, "1×1"), (96, "3×3"), (96, "3×3")),
        "pooled": _Averaged(into, pooled, "1×1"),
    })  # fmt: skip


def _middle(width: int) -> _Mixed:  # 17 × 17
    row, column = (width, "1×7"), (width, "7×1")
    return _Mixed({
        "conv": _Convolution(768, 192, "1×1"),
        "tower": _Tower(768, (width, "1×1"), row, (192, "7×1")),
        "tower_1": _Tower(768, (width, "1×1"), column, row, column, (192, "1×7")),
        "pooled": _Averaged(768, 192, "1×1"),
    })  # fmt: skip


def _coarse(into: int, pool: type[_Convolution]) -> _Mixed:  # 8 × 8
    return _Mixed({
        "conv": _Convolution(into, 320, "1×1"),
        "tower": _Forked(into, (384, "1×1")),
        "tower_1": _Forked(into, (448, "1×1"), (384, "3×3")),
        "pooled": pool(into, 192, "1×1"),
    })  # fmt: skip


def _network() -> nn.Module:
    first_reduction = _Mixed({
        "conv": _Convolution(288, 384, "3×3", 2),
        "tower": _Tower(288, (64, "1×1"), (96, "3×3"), (96, "3×3", 2)),
        "pool": nn.MaxPool2d(3, 2),
    })  # fmt: skip
    second_reduction = _Mixed({
        "tower": _Tower(768, (192, "1×1"), (320, "3×3", 2)),
        "tower_1": _Tower(768, (192, "1×1"), (192, "1×7"), (192, "7×1"), (192, "3×3", 2)),
        "pool": nn.MaxPool2d(3, 2),
    })  # fmt: skip
    blocks = [
        _fine(192, 32), _fine(256, 64), _fine(288, 64), first_reduction,
        _middle(128), _middle(160), _middle(160), _middle(192), second_reduction,
        _coarse(1280, _Averaged), _coarse(2048, _Highest),
    ]  # fmt: skip
    layers = {
        "conv": _Convolution(3, 32, "3×3", 2),
        "conv_1": _Convolution(32, 32, "3×3", same=False),
        "conv_2": _Convolution(32, 64, "3×3"),
        "pool0": nn.MaxPool2d(3, 2),
        "conv_3": _Convolution(64, 80, "1×1"),
        "conv_4": _Convolution(80, 192, "3×3", same=False),
        "pool1": nn.MaxPool2d(3, 2),
        **{_nth("mixed", i): block for i, block in enumerate(blocks)},
    }
    return nn.ModuleDict({"layers": nn.Sequential(OrderedDict(layers))})


class Inception(nn.Module):
    """The network from pictures to features."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = _network().get_submodule("layers")

    def forward(self, x: Tensor) -> Tensor:
        """Features (n, 2048) of pictures (n, 3, 299, 299) scaled to (x − 128)/128."""
        features: Tensor = self.layers(x).mean((2, 3))
        return features

    @classmethod
    def load(cls, path: Path) -> Inception:
        """The network with converted weights."""
        from safetensors.torch import load_file

        with torch.device("meta"):  # no random weights that are thrown away
            net = cls()
        try:
            found = {name: tensor.to(memory_format=_LAYOUT[tensor.ndim]) for name, tensor in load_file(path).items()}
            net.load_state_dict(found, assign=True)
        except Exception as error:  # noqa: BLE001  safetensors and torch raise many kinds for a damaged file
            raise ModelError(f"{path.name} does not hold an Inception ({type(error).__name__}): fetch it again") from None
        return net.eval().requires_grad_(False)

    @torch.inference_mode()
    def features(self, images: NDArray[np.uint8], batch: int = 4) -> NDArray[np.float32]:
        """Features (n, 2048) of RGB pictures (n, h, w, 3) of any one size."""
        images = np.asarray(images)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or not images.size:
            raise InputError(f"pictures are bytes in the shape (n, height, width, 3), not {images.dtype} in {images.shape}")
        found = np.empty((len(images), FEATURES), np.float32)
        for at in range(0, len(images), batch):
            x = _reduced(torch.from_numpy(images[at : at + batch].copy()))
            found[at : at + batch] = self(x.sub_(128).div_(128)).numpy()
        return found


def _reduced(images: Tensor) -> Tensor:
    """Pictures (n, h, w, 3) as (n, 3, 299, 299) floats, by TensorFlow 1's bilinear rule: pixel i comes from i · old/new."""
    x = images
    for axis in (1, 2):
        old = x.shape[axis]
        place = torch.arange(SIDE, dtype=torch.float64) * old / SIDE
        low = place.long()
        part = (place - low).float().view((SIDE, 1, 1) if axis == 1 else (SIDE, 1))
        after = x.index_select(axis, (low + 1).clamp_(max=old - 1)).float()
        x = x.index_select(axis, low).float().lerp_(after, part)
    return x.permute(0, 3, 1, 2)  # laid out channels last, as the convolutions like it
