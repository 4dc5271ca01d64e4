"""BiSeNet (Yu et al. 2018) as trained on CelebAMask-HQ: which part of a face does each pixel show?

A ResNet-18 gives features at 1/8, 1/16 and 1/32 of the size; the deep ones are weighted by what they hold as a whole
(attention), added up the pyramid, joined with the 1/8 features, and classified into 19 parts. The batch normalisations are
folded into the convolutions when the published file is converted, and the two heads that only served training are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import ModelError

PARTS = (
    "background", "skin", "left brow", "right brow", "left eye", "right eye", "glasses", "left ear", "right ear", "earring",
    "nose", "mouth", "upper lip", "lower lip", "neck", "necklace", "clothes", "hair", "hat",
)  # fmt: skip
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def from_checkpoint(files: Mapping[str, Path]) -> dict[str, NDArray[Any]]:
    """The published weights, folded: a weight and a bias for every convolution."""
    (path,) = files.values()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        found = {name: tensor.double().numpy() for name, tensor in state.items()}
        return {name: array.astype(np.float32) for name, array in _folded(found).items()}
    except Exception as error:  # noqa: BLE001  torch raises many kinds for a damaged file
        raise ModelError(f"{path.name} cannot be read as a BiSeNet checkpoint ({type(error).__name__})") from None


def _folded(state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    folded: dict[str, NDArray[Any]] = {}
    for ours, (conv, norm) in _convolutions().items():
        weight = state[f"{conv}.weight"]
        if norm is None:
            folded[f"{ours}.weight"] = weight
            continue
        scale = state[f"{norm}.weight"] / np.sqrt(state[f"{norm}.running_var"] + 1e-5)
        folded[f"{ours}.weight"] = weight * scale[:, None, None, None]
        folded[f"{ours}.bias"] = state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale
    return folded


def _convolutions() -> dict[str, tuple[str, str | None]]:
    """Our name of each convolution → the published names of it and of its batch normalisation."""
    names: dict[str, tuple[str, str | None]] = {"stem": ("cp.resnet.conv1", "cp.resnet.bn1")}
    for layer in range(1, 5):
        for block in range(2):
            theirs = f"cp.resnet.layer{layer}.{block}"
            names[f"trunk.{layer - 1}.{block}.first"] = (f"{theirs}.conv1", f"{theirs}.bn1")
            names[f"trunk.{layer - 1}.{block}.second"] = (f"{theirs}.conv2", f"{theirs}.bn2")
            if layer > 1 and block == 0:
                names[f"trunk.{layer - 1}.{block}.short"] = (f"{theirs}.downsample.0", f"{theirs}.downsample.1")
    for level in ("16", "32"):
        names[f"refine{level}.conv"] = (f"cp.arm{level}.conv.conv", f"cp.arm{level}.conv.bn")
        names[f"refine{level}.attention"] = (f"cp.arm{level}.conv_atten", f"cp.arm{level}.bn_atten")
        names[f"head{level}"] = (f"cp.conv_head{level}.conv", f"cp.conv_head{level}.bn")
    names["whole"] = ("cp.conv_avg.conv", "cp.conv_avg.bn")
    names["join"] = ("ffm.convblk.conv", "ffm.convblk.bn")
    names["squeeze"], names["excite"] = ("ffm.conv1", None), ("ffm.conv2", None)
    names["classify.0"], names["classify.1"] = ("conv_out.conv.conv", "conv_out.conv.bn"), ("conv_out.conv_out", None)
    return names


class _Block(nn.Module):
    """Two convolutions and a short cut."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(into, out, 3, stride, 1)
        self.second = nn.Conv2d(out, out, 3, 1, 1)
        self.short = nn.Conv2d(into, out, 1, stride) if stride > 1 or into != out else None

    def forward(self, x: Tensor) -> Tensor:
        past = x if self.short is None else self.short(x)
        return F.relu(past + self.second(F.relu(self.first(x))))


class _Refine(nn.Module):
    """Features weighted by what they hold over the whole picture."""

    def __init__(self, into: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, 128, 3, 1, 1)
        self.attention = nn.Conv2d(128, 128, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv(x))
        return x * torch.sigmoid(self.attention(x.mean((2, 3), keepdim=True)))


class BiSeNet(nn.Module):
    """Logits of 19 parts at an eighth of the input's size."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 128, 256, 512)
        self.stem = nn.Conv2d(3, 64, 7, 2, 3)
        self.trunk = nn.ModuleList(
            nn.Sequential(_Block(widths[max(i - 1, 0)], width, 2 if i else 1), _Block(width, width, 1))
            for i, width in enumerate(widths)
        )
        self.refine16, self.refine32 = _Refine(256), _Refine(512)
        self.head16, self.head32 = nn.Conv2d(128, 128, 3, 1, 1), nn.Conv2d(128, 128, 3, 1, 1)
        self.whole = nn.Conv2d(512, 128, 1)
        self.join = nn.Conv2d(256, 256, 1)
        self.squeeze, self.excite = nn.Conv2d(256, 64, 1, bias=False), nn.Conv2d(64, 256, 1, bias=False)
        self.classify = nn.Sequential(nn.Conv2d(256, 256, 3, 1, 1), nn.Conv2d(256, 19, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        x8 = self.trunk[1](self.trunk[0](x))
        x16 = self.trunk[2](x8)
        x32 = self.trunk[3](x16)
        whole = F.relu(self.whole(x32.mean((2, 3), keepdim=True)))
        up32 = F.relu(self.head32(F.interpolate(self.refine32(x32) + whole, size=x16.shape[2:])))
        up16 = F.relu(self.head16(F.interpolate(self.refine16(x16) + up32, size=x8.shape[2:])))
        joined = F.relu(self.join(torch.cat([x8, up16], 1)))
        weight = torch.sigmoid(self.excite(F.relu(self.squeeze(joined.mean((2, 3), keepdim=True)))))
        joined = joined * weight + joined
        logits: Tensor = self.classify[1](F.relu(self.classify[0](joined)))
        return logits

    @classmethod
    def load(cls, path: Path) -> BiSeNet:
        """The network with converted weights."""
        from safetensors.torch import load_file

        net = cls()
        try:
            net.load_state_dict(load_file(path))
        except Exception as error:  # noqa: BLE001
            raise ModelError(f"{path.name} does not hold a BiSeNet ({type(error).__name__}): fetch it again") from None
        return net.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.inference_mode()
    def parts(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Probability of each part (n, 19, h/8, w/8) in RGB pictures (n, h, w, 3); sides must be multiples of 32."""
        x = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float().div_(255)
        x = x.sub_(torch.tensor(_MEAN).view(1, 3, 1, 1)).div_(torch.tensor(_DEVIATION).view(1, 3, 1, 1))
        logits = self(x.contiguous(memory_format=torch.channels_last))
        probabilities: NDArray[np.float32] = logits.softmax(1).numpy()
        return probabilities
