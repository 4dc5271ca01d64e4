"""ResNet-50 (He et al. 2015) with the ImageNet weights that Keras publishes: the trunk of the ATTRIBUTE map.

The published network follows the original one: the stride is in the first 1 × 1 convolution of a block, batch normalisation
adds 0.001 to the variance, and pictures are BGR less the mean colour of ImageNet. On conversion the biases of the convolutions
go into the batch normalisations behind them, which take them up exactly, and the first convolution is turned to RGB; so the
network here takes RGB from 0 to 255. Batch normalisation stays apart, because the weights are to be trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import ModelError

MEAN = (123.68, 116.779, 103.939)  # of ImageNet, RGB
EPSILON = 1e-3
DEPTHS = (3, 4, 6, 3)  # blocks of each stage


class _Normed(nn.Module):
    """A convolution and its batch normalisation."""

    def __init__(self, into: int, out: int, side: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, out, side, stride, side // 2, bias=False)
        self.norm = nn.BatchNorm2d(out, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(self.conv(x))
        return out


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 and 1 × 1 convolutions, and a short cut past them."""

    def __init__(self, into: int, inner: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.first = _Normed(into, inner, 1, stride)
        self.second = _Normed(inner, inner, 3)
        self.third = _Normed(inner, out, 1)
        self.short = _Normed(into, out, 1, stride) if stride > 1 or into != out else None

    def forward(self, x: Tensor) -> Tensor:
        past = x if self.short is None else self.short(x)
        return F.relu(past + self.third(F.relu(self.second(F.relu(self.first(x))))))


class ResNet(nn.Module):
    """A residual trunk: RGB pictures (n, 3, h, w), 0 … 255, to features (n, channels, h/2^(s+1), w/2^(s+1)) after s stages.

    With ``classes`` it ends in logits over them instead; ``width`` is 64 in the published network.
    """

    def __init__(self, depths: tuple[int, ...] = DEPTHS, *, classes: int = 0, width: int = 64) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1), persistent=False)
        self.stem = _Normed(3, width, 7, 2)
        stages, into = [], width
        for number, depth in enumerate(depths):
            inner = width << number
            blocks = []
            for block in range(depth):
                blocks.append(Bottleneck(into, inner, 4 * inner, 2 if number and not block else 1))
                into = 4 * inner
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.classify = nn.Linear(into, classes) if classes else None
        self.channels = into

    def forward(self, x: Tensor) -> Tensor:
        mean: Tensor = self.get_buffer("mean")
        x = F.max_pool2d(F.relu(self.stem(x - mean)), 3, 2, 1)
        out: Tensor = self.stages(x)
        return out if self.classify is None else self.classify(out.mean((2, 3)))

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Start from converted weights; stages and classes that this trunk does not have are left aside."""
        own = self.state_dict()
        missing = [name for name in own if name not in weights and not name.endswith("num_batches_tracked")]
        if missing:
            raise ModelError(f"the weights do not hold a ResNet-50: {missing[0]} and {len(missing) - 1} more are missing")
        try:
            self.load_state_dict({name: weights[name] for name in own if name in weights}, strict=False)
        except RuntimeError:
            raise ModelError("the weights do not fit a ResNet-50: an array has another shape; fetch them again") from None


# ---------------------------------------------------------------------- conversion


def from_tfjs(files: Mapping[str, Path]) -> dict[str, NDArray[Any]]:
    """The published layers model (model.json and its shards of weights) under this module's names, ready for training on."""
    try:
        found = _arrays(files)
        names = _names(found)
        arrays: dict[str, NDArray[Any]] = {}
        for ours, (conv, norm) in names.items():
            arrays |= {f"{ours}.{name}": array for name, array in _normed(found, conv, norm).items()}
        arrays["stem.conv.weight"] = arrays["stem.conv.weight"][:, ::-1]  # published for BGR
        (dense,) = {name.split("/")[0] for name, array in found.items() if name.endswith("/kernel") and array.ndim == 2}
        arrays["classify.weight"], arrays["classify.bias"] = found[f"{dense}/kernel"].T, found[f"{dense}/bias"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"model.json and its shards cannot be read as a Keras ResNet-50 ({type(error).__name__})") from None
    return {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}


def _arrays(files: Mapping[str, Path]) -> dict[str, NDArray[Any]]:
    """Every array of the manifest: float32, one after the other over the shards."""
    model = json.loads(files["model.json"].read_text(encoding="utf-8"))
    found = {}
    for group in model["weightsManifest"]:
        raw = b"".join(files[path].read_bytes() for path in group["paths"])
        start = 0
        for spec in group["weights"]:
            if spec["dtype"] != "float32" or "quantization" in spec:
                raise ValueError(spec["name"])
            length = prod(spec["shape"])
            found[spec["name"]] = np.frombuffer(raw, "<f4", length, start).reshape(spec["shape"])
            start += 4 * length
        if start != len(raw):
            raise ValueError("the shards hold more than the manifest lists")
    for layer in model["modelTopology"]["model_config"]["config"]["layers"]:
        if layer["class_name"] == "BatchNormalization" and layer["config"]["epsilon"] != EPSILON:
            raise ValueError(layer["name"])
    return found


def _names(found: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Our name of each convolution → Keras' names of it and of its batch normalisation; as many blocks as there are."""
    names = {"stem": ("conv1", "bn_conv1")}
    parts = {"first": "branch2a", "second": "branch2b", "third": "branch2c", "short": "branch1"}
    for stage in count():
        for block in count():
            theirs = f"{stage + 2}{chr(ord('a') + block)}"
            if f"res{theirs}_branch2a/kernel" not in found:
                break
            for ours, branch in parts.items():
                if f"res{theirs}_{branch}/kernel" in found:
                    names[f"stages.{stage}.{block}.{ours}"] = (f"res{theirs}_{branch}", f"bn{theirs}_{branch}")
        if not block:
            return names
    raise AssertionError  # count() does not end


def _normed(found: Mapping[str, NDArray[Any]], conv: str, norm: str) -> dict[str, NDArray[Any]]:
    """A convolution (h, w, in, out) → (out, in, h, w) and its normalisation, which takes up the bias."""
    return {
        "conv.weight": found[f"{conv}/kernel"].transpose(3, 2, 0, 1),
        "norm.weight": found[f"{norm}/gamma"],
        "norm.bias": found[f"{norm}/beta"],
        "norm.running_mean": found[f"{norm}/moving_mean"] - found[f"{conv}/bias"],
        "norm.running_var": found[f"{norm}/moving_variance"],
    }
