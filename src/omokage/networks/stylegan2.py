"""StyleGAN2, the face generator of the papers (Karras et al., *Analyzing and Improving the Image Quality of StyleGAN*, CVPR 2020,
arXiv:1912.04958: section 2.2 and figure 2 d for the modulated convolution, figure 7 b for the skips, config F for the sizes).

    z ──mapping──▶ w ──┬─────────────┬──────────────────────┬───────────────────────┐       w may differ in each row (W+)
                       ▼ 0           ▼ 1, 2                 ▼ 3, 4                  ▼
           constant ▶ conv (4 px) ▶ up, conv (8 px) ─────▶ up, conv (16 px) ▶ … ▶ up, conv (1024 px)
                       ▼ 1           ▼ 3                    ▼ 5                     ▼ 17
                      RGB ─────up──▶ + RGB ──────────up──▶ + RGB ──────── … ──up──▶ + RGB  = image

The image of a resolution reads the row that the next resolution's first convolution reads, so 1024 px have 18 rows and W+ is
18 × 512 = 9,216 numbers. Weights are kept as trained, of unit variance; layers scale them by 1/√fan-in when they run. The noise
is the constant one of the file, so an image is a function of w alone. ``checkpoints`` reads published files into this class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from .generator import FaceGenerator

__all__ = ["StyleGAN2"]

STYLE = 512
CHANNELS = (512, 512, 512, 512, 512, 256, 128, 64, 32)  # config F: of the maps of 4, 8, … 1024 px
SLOPE, GAIN = 0.2, math.sqrt(2)  # of the leaky ReLU, and what keeps the variance after it
RATE = 0.01  # the mapping learns a hundred times slower, so its stored weights are a hundred times larger
_SURVEY = 2048  # styles that w_std and w_norm, and w_mean where the file has none, are estimated from


class StyleGAN2(FaceGenerator):
    """The papers' generator: W+ has a row for each convolution, and the last for the last layer to RGB.

    Parameters
    ----------
    channels : sequence of int
        Of the maps of 4, 8, 16, … px; their number sets the size of the image.
    style : int
        Length of w.
    widths : sequence of int
        Of z and of the mapping's layers, the last of which is w.
    clamp : float, optional
        What bounds the maps, in networks that were trained in half precision.
    """

    def __init__(
        self,
        channels: Sequence[int] = CHANNELS,
        style: int = STYLE,
        widths: Sequence[int] = (STYLE,) * 9,
        clamp: float | None = None,
    ) -> None:
        super().__init__(MappingNetwork(widths), Synthesis(channels, style, clamp), style, widths[0])

    @classmethod
    def load(cls, path: str | Path) -> StyleGAN2:
        """The generator in a checkpoint, NVIDIA's ``.pkl`` or the PyTorch port's ``.pt``."""
        from .checkpoints import read_generator

        return read_generator(path)

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor], clamp: float | None = None) -> StyleGAN2:
        """The generator of these weights, by our names; its sizes are theirs. ``w_mean`` may be missing and is then estimated."""
        found = {name: tensor.detach().float() for name, tensor in weights.items()}
        with torch.device("meta"):  # sizes that a broken file makes up cost no memory
            generator = cls(*_sizes(found), clamp)
        expected = {name: tensor.shape for name, tensor in generator.state_dict().items()}
        measured = {"w_mean", "w_std", "w_norm"}
        for name in [*expected, *found]:
            if name not in expected:
                raise InputError(f"it has the tensor {name}, which a StyleGAN2 of {generator.size} px has not")
            if name not in found and name not in measured:
                raise InputError(f"the tensor {name} is missing")
            if name in found and found[name].shape != expected[name]:
                shapes = tuple(found[name].shape), tuple(expected[name])
                raise InputError(f"the tensor {name} has the shape {shapes[0]}, and {shapes[1]} is expected")
            if name in found and not found[name].isfinite().all():
                raise InputError(f"the tensor {name} holds values that are not finite numbers")
        empty = {name: torch.zeros(expected[name]) for name in measured if name not in found}
        generator.load_state_dict({**found, **empty}, assign=True)
        generator._survey(found.get("w_mean"))
        return generator.eval().requires_grad_(False)

    @property
    def groups(self) -> tuple[int, int, int]:
        """A row at 4 px, two more at each double of it."""
        layers = self.styles[0]
        coarse, middle = min(5, layers), min(9, layers)
        return coarse, middle - coarse, layers - middle

    @torch.no_grad()
    def _survey(self, mean: Tensor | None) -> None:
        """Set the mean style, and measure how far random styles lie from it."""
        w = self.sample_w(_SURVEY, seed=0, truncation=1)
        self.w_mean.copy_(w.mean(0) if mean is None else mean)
        self.w_std.copy_(w.std(0))
        self.w_norm.copy_((w - self.w_mean).norm(dim=1).mean())


def _sizes(weights: Mapping[str, Tensor]) -> tuple[list[int], int, list[int]]:
    """(channels, style, widths) as the weights' shapes tell."""

    def shape(name: str, dimensions: int) -> tuple[int, ...]:
        if name not in weights or weights[name].ndim != dimensions or not weights[name].numel():
            raise InputError(f"the tensor {name} is missing or has not {dimensions} dimensions")
        return tuple(weights[name].shape)

    levels = sum(name.startswith("synthesis.to_rgb.") and name.endswith(".modulation.bias") for name in weights)
    if not 2 <= levels <= len(CHANNELS):
        raise InputError(f"it draws at {levels} sizes, and a StyleGAN2 of 8 … {4 << len(CHANNELS) - 1} px at 2 … {len(CHANNELS)}")
    depth = sum(name.startswith("mapping.") and name.endswith(".weight") for name in weights)
    channels = [shape(f"synthesis.convs.{2 * level}.weight", 4)[0] for level in range(levels)]
    widths = [shape("mapping.0.weight", 2)[1], *(shape(f"mapping.{i}.weight", 2)[0] for i in range(depth))]
    return channels, shape("synthesis.convs.0.modulation.weight", 2)[1], widths


class MappingNetwork(nn.Sequential):
    """z → w: fully connected layers on the normalized z."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__(*(Dense(*change, rate=RATE) for change in pairwise(widths)))

    def forward(self, z: Tensor) -> Tensor:
        """(b, inputs) → (b, style)."""
        w = z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-8)
        for layer in self:
            w = F.leaky_relu(layer(w), SLOPE) * GAIN
        return w


class Synthesis(nn.Module):
    """w → image."""

    def __init__(self, channels: Sequence[int], style: int, clamp: float | None) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.zeros(channels[0], 4, 4))
        convs = [StyledConv(style, channels[0], channels[0], 4, clamp)]
        for level, (inner, outer) in enumerate(pairwise(channels), 1):
            convs += [
                StyledConv(style, inner, outer, 4 << level, clamp, up=True),
                StyledConv(style, outer, outer, 4 << level, clamp),
            ]
        self.convs = nn.ModuleList(convs)
        self.to_rgb = nn.ModuleList(ToRGB(style, width, clamp) for width in channels)
        self.size = 2 << len(channels)
        self.styles = (2 * len(channels), style)  # shape of one W+

    def forward(self, w: Tensor, exit: int | None = None) -> Tensor:
        """See ``StyleGAN2.forward``."""
        if w.ndim == 2:
            w = w[:, None].expand(-1, self.styles[0], -1)
        if w.ndim != 3 or w.shape[1:] != self.styles:
            raise InputError(f"styles of shape {tuple(w.shape)}: (b, {self.styles[1]}) or (b, {self.styles}) is expected")
        if exit is not None and exit not in (4 << level for level in range(len(self.to_rgb))):
            raise InputError(f"exit={exit}: the generator has maps of 4, 8, … {self.size} px")
        x = self.constant.expand(len(w), -1, -1, -1)
        image = w.new_zeros(len(w), 3, 2, 2)  # black, before there is one
        for level, to_rgb in enumerate(self.to_rgb):
            for row in range(max(2 * level - 1, 0), 2 * level + 1):
                x = self.convs[row](x, w[:, row])
            if exit == 4 << level:
                return x
            image = upsample(image) + to_rgb(x, w[:, 2 * level + 1])
        return image


class Dense(nn.Module):
    """A fully connected layer whose weights are stored with unit variance, over the rate at which they learned."""

    def __init__(self, inputs: int, outputs: int, rate: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs) → (b, outputs)."""
        return F.linear(x, self.weight * (self.rate / math.sqrt(self.weight.shape[1])), self.bias * self.rate)


class StyledConv(nn.Module):
    """Modulated and demodulated 3 × 3 convolution, to twice the size if ``up``; noise, bias, leaky ReLU."""

    noise: Tensor  # (size, size)

    def __init__(self, style: int, channels: int, out_channels: int, size: int, clamp: float | None, up: bool = False) -> None:
        super().__init__()
        self.modulation = Dense(style, channels)
        self.weight = nn.Parameter(torch.zeros(out_channels, channels, 3, 3))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.register_buffer("noise", torch.zeros(size, size))
        self.strength = nn.Parameter(torch.zeros(()))
        self.clamp, self.up = clamp, up

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """(b, c, h, h) and styles (b, style) → (b, c', size, size)."""
        scale = self.modulation(w)  # (b, c): scaling the map is scaling each sample's weights, without copies of them
        demodulation = torch.rsqrt(scale.square() @ self.weight.square().sum((2, 3)).T + 1e-8)  # (b, c'), equation 3
        x = x * scale[:, :, None, None]
        if self.up:
            x = smooth(F.conv_transpose2d(x, self.weight.transpose(0, 1), stride=2))
        else:
            x = F.conv2d(x, self.weight, padding=1)
        shift = self.noise * self.strength + self.bias[:, None, None]  # (c', size, size)
        x = torch.addcmul(shift * GAIN, x, (demodulation * GAIN)[:, :, None, None])  # the gain passes through the leaky ReLU
        return clamped(F.leaky_relu(x, SLOPE), self.clamp)


class ToRGB(nn.Module):
    """Modulated pointwise convolution, not demodulated."""

    def __init__(self, style: int, channels: int, clamp: float | None) -> None:
        super().__init__()
        self.modulation = Dense(style, channels)
        self.weight = nn.Parameter(torch.zeros(3, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(3))
        self.clamp = clamp

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """(b, c, h, h) and styles (b, style) → (b, 3, h, h)."""
        scale = self.modulation(w) / math.sqrt(x.shape[1])
        return clamped(F.conv2d(x * scale[:, :, None, None], self.weight, self.bias), self.clamp)


def clamped(x: Tensor, bound: float | None) -> Tensor:
    return x if bound is None else x.clamp(-bound, bound)


def smooth(x: Tensor) -> Tensor:
    """What follows a transposed convolution: the filter [1, 3, 3, 1] both ways, a row and a column less, four times the sum.

    >>> smooth(torch.tensor([[1.0, 0, 0], [0, 0, 0], [0, 0, 0]]).view(1, 1, 3, 3)).view(2, 2) * 16
    tensor([[9., 3.],
            [3., 1.]])
    """
    taps = x.new_tensor([1, 3, 3, 1]) / 4
    filters = torch.outer(taps, taps).expand(x.shape[1], 1, 4, 4)
    return F.conv2d(x, filters, padding=1, groups=x.shape[1])


def upsample(x: Tensor) -> Tensor:
    """Twice the size by the filter [1, 3, 3, 1] with zeros around: bilinear interpolation of the picture in a black frame.

    >>> upsample(torch.ones(1, 1, 2, 2))[0, 0] * 16
    tensor([[ 9., 12., 12.,  9.],
            [12., 16., 16., 12.],
            [12., 16., 16., 12.],
            [ 9., 12., 12.,  9.]])
    """
    return F.interpolate(F.pad(x, (1, 1, 1, 1)), scale_factor=2, mode="bilinear", align_corners=False)[..., 2:-2, 2:-2]
