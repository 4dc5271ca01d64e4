"""MobileStyleGAN, a face generator small enough for a CPU (Belousov, *MobileStyleGAN: A Lightweight Convolutional Neural
Network for High-Fidelity Image Synthesis*, 2021, arXiv:2104.04767), as published for FFHQ at 1024 px.

    z ──mapping──▶ w ──┬────────────┬─────────────────┬───────────────┐      23 modulations; w may differ in each (W+)
                       ▼            ▼                 ▼               ▼
           constant ▶ first ▶ block 0 (8 px) ▶ … ▶ block 6 (512 px) ▶ to_img ▶ image (1024 px)

The network predicts wavelet coefficients rather than pixels: the channels that enter a block are the four Haar bands of a map
twice as large. The inverse transform puts them together, two depthwise-separable convolutions follow. A style only scales
channels before a convolution: the paper's demodulation is a constant of the weights, and the published noise is fixed, so an
image is a function of w alone.

The conversion (``mobilestylegan_ir``) prepares the published weights without changing the function: factors such as 1/√fan-in
are inside the modulations, channels that hold bands are ordered band by band, and the last inverse transform, linear after a
linear layer, is inside ``to_img``.

Maps are (batch, height, width, channels), so that a pointwise convolution is one matrix product, and are made in strips of rows:
a strip stays in the cache, whereas a fresh tensor of 64 MB costs more in page faults than in arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from .generator import FaceGenerator
from .mobilestylegan_ir import CHANNELS, SLOPE, STYLE, from_openvino

__all__ = ["Generator", "Mapping", "Synthesis", "from_openvino"]

STRIP_BYTES = 4 << 20  # of a strip of a block's output


class Generator(FaceGenerator):
    """MobileStyleGAN. A W+ has a style for the first convolution, for up, conv1 and conv2 of each block, and for to_img."""

    def __init__(self, style: int = STYLE, channels: tuple[int, ...] = CHANNELS) -> None:
        super().__init__(Mapping(style), Synthesis(style, channels), style, style)

    @classmethod
    def load(cls, path: str | Path) -> Generator:
        """The published generator from the safetensors file of its converted weights."""
        with torch.device("meta"):
            generator = cls()
        try:
            generator.load_state_dict(load_file(path), assign=True)
        except (OSError, SafetensorError, RuntimeError) as error:
            raise InputError(
                f"{path}: not the converted weights of MobileStyleGAN ({type(error).__name__}); fetch it again"
            ) from error
        return generator.eval().requires_grad_(False)

    @property
    def groups(self) -> tuple[int, int, int]:
        """The first convolution is at 4 px; a block of three styles doubles the size."""
        layers = self.styles[0]
        coarse, middle = min(1 + 3 * 2, layers), min(1 + 3 * 4, layers)
        return coarse, middle - coarse, layers - middle


class Mapping(nn.Sequential):
    """z → w: eight fully connected layers on the normalized z."""

    def __init__(self, style: int = STYLE, layers: int = 8) -> None:
        super().__init__(*(nn.Linear(style, style) for _ in range(layers)))

    def forward(self, z: Tensor) -> Tensor:
        w = z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-8)
        for layer in self:
            w = F.leaky_relu(layer(w), SLOPE) * math.sqrt(2)
        return w


class Synthesis(nn.Module):
    """w → image; ``channels`` are those of the maps of 4, 8, 16, … px."""

    def __init__(self, style: int = STYLE, channels: tuple[int, ...] = CHANNELS) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.zeros(1, channels[0], 4, 4))
        self.first = First(style, channels[0])
        self.blocks = nn.ModuleList(Block(style, *change, 8 << i) for i, change in enumerate(pairwise(channels)))
        self.to_img = ToImage(style, channels[-1])
        self.size = 4 << len(channels)
        self.styles = (3 * len(channels) - 1, style)  # shape of one W+

    def forward(self, w: Tensor, exit: int | None = None) -> Tensor:
        """See ``Generator.forward``."""
        if w.ndim == 2:
            w = w[:, None].expand(-1, self.styles[0], -1)
        if w.ndim != 3 or w.shape[1:] != self.styles:
            raise InputError(f"styles of shape {tuple(w.shape)}: (b, {self.styles[1]}) or (b, {self.styles}) is expected")
        last = self.size // 2
        if exit is not None and exit not in (8 << i for i in range(len(self.blocks))):
            raise InputError(f"exit={exit}: the generator has maps of 8, 16, … {last} px")
        strips = iter([self.first(self.constant, w[:, 0])])
        for i in range(int(math.log2(exit or last)) - 2):
            strips = self.blocks[i](list(strips), w[:, 1 + 3 * i : 4 + 3 * i])
        if exit is None:
            scale = self.to_img.modulation(w[:, -1])
            strips = (self.to_img(strip, scale) for strip in strips)  # the last map never exists as a whole
        return torch.cat(list(strips), 1).permute(0, 3, 1, 2)


class First(nn.Module):
    """Modulated 3 × 3 convolution of the constant that every image begins with."""

    def __init__(self, style: int, channels: int) -> None:
        super().__init__()
        self.modulation = nn.Linear(style, channels)
        self.weight = nn.Parameter(torch.zeros(channels, channels, 3, 3))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.noise = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """(1, c, 4, 4) and styles (b, style) → (b, 4, 4, c)."""
        x = F.conv2d(x * self.modulation(w)[:, :, None, None], self.weight, self.bias, padding=1)
        return F.leaky_relu(x + self.noise, SLOPE).permute(0, 2, 3, 1)


class Block(nn.Module):
    """Twice the size: modulated inverse Haar transform, then two modulated separable convolutions."""

    def __init__(self, style: int, channels: int, out_channels: int, size: int) -> None:
        super().__init__()
        self.up = nn.Linear(style, channels)  # a modulation, like those of the convolutions
        self.conv1 = Separable(style, channels // 4, out_channels, size)
        self.conv2 = Separable(style, out_channels, out_channels, size)

    def forward(self, x: list[Tensor], w: Tensor) -> Iterator[Tensor]:
        """Strips of a map (b, ·, w, c) and styles (b, 3, style) → strips of the new map (b, ·, 2w, c')."""
        scale = self.conv1.modulation(w[:, 1])  # (b, c/4), alike for the bands of a channel, so it is applied with that of up
        scale_up = (self.up(w[:, 0]).view(len(w), 4, -1) * scale[:, None]).flatten(1)  # (b, c)
        scale2 = self.conv2.modulation(w[:, 2])  # (b, c')
        bytes_a_row = 4 * scale2.numel() * x[0].shape[2] * x[0].element_size()
        for top, above, below, strip in with_neighbours(x, max(4, STRIP_BYTES // bytes_a_row)):
            y = haar_upsample(modulate(strip, scale_up))
            y = self.conv1(y, 2 * top - 1 + above, above, below)
            yield self.conv2(modulate(y, scale2), 2 * top, above, below)


class Separable(nn.Module):
    """3 × 3 depthwise and pointwise convolution, noise, bias, leaky ReLU; the input comes modulated."""

    def __init__(self, style: int, channels: int, out_channels: int, size: int) -> None:
        super().__init__()
        self.modulation = nn.Linear(style, channels)
        self.depthwise = nn.Parameter(torch.zeros(channels, 1, 3, 3))
        self.pointwise = nn.Parameter(torch.zeros(out_channels, channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.noise = nn.Parameter(torch.zeros(size, size))

    def forward(self, x: Tensor, top: int, above: bool, below: bool) -> Tensor:
        """A strip whose output begins at row ``top``: each side loses a row unless the map ends there (``above``, ``below``)."""
        if above != below:
            x = F.pad(x, (0, 0, 0, 0, int(above), int(below)))
        pads = (int(above and below), 1)
        x = F.conv2d(x.permute(0, 3, 1, 2), self.depthwise, padding=pads, groups=x.shape[3]).permute(0, 2, 3, 1)
        noise = self.noise[top : top + x.shape[1]].expand(x.shape[0], -1, -1).reshape(-1, 1)
        y = (noise + self.bias).addmm_(x.flatten(0, 2), self.pointwise.T)
        return F.leaky_relu_(y, SLOPE).view(*x.shape[:3], -1)


class ToImage(nn.Module):
    """Modulated pointwise convolution from a pixel's channels to the 2 × 2 pixels (row, column, colour) that it becomes."""

    def __init__(self, style: int, channels: int) -> None:
        super().__init__()
        self.modulation = nn.Linear(style, channels)
        self.weight = nn.Parameter(torch.zeros(12, channels))
        self.bias = nn.Parameter(torch.zeros(12))

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        """(b, h, w, c) and (b, c) → (b, 2h, 2w, 3)."""
        y = F.linear(modulate(x, scale), self.weight, self.bias).view(*x.shape[:3], 2, 2, 3)
        return y.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def modulate(x: Tensor, scale: Tensor) -> Tensor:
    """Scale each sample's channels: the same as scaling the input channels of a convolution's weights for each sample."""
    scale = scale[:, None, None]
    return x * scale if torch.is_grad_enabled() else x.mul_(scale)  # every caller owns its x


def with_neighbours(x: list[Tensor], rows: int) -> Iterator[tuple[int, bool, bool, Tensor]]:
    """(top, above, below, strip): at most ``rows`` rows from ``top`` on, and a row more on each side where the map goes on.

    ``above`` and ``below`` tell where it ends instead.
    """
    pieces = [piece for strip in x for piece in torch.split(strip, rows, 1)]
    top = 0
    for i, piece in enumerate(pieces):
        before, after = pieces[max(i - 1, 0) : i], pieces[i + 1 : i + 2]
        yield top, not before, not after, torch.cat([*(p[:, -1:] for p in before), piece, *(p[:, :1] for p in after)], 1)
        top += piece.shape[1]


def haar_upsample(x: Tensor) -> Tensor:
    """Inverse Haar transform: bands (mean, column, row, diagonal) in the channels (b, h, w, 4c) → (b, 2h, 2w, c).

    >>> haar_upsample(torch.tensor([10.0, 4.0, 2.0, 0.0]).view(1, 1, 1, 4)).view(2, 2)
    tensor([[8., 4.],
            [6., 2.]])
    """
    pixels: Tensor = _Haar.apply(x)  # type: ignore[no-untyped-call]
    return pixels


class _Haar(torch.autograd.Function):
    """Two butterflies that write where the result belongs; the transform is orthogonal, so its gradient is its inverse."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        tall = x.new_empty(b, h, 2, w, c // 2)
        _butterfly(x.chunk(2, 3), tall.unbind(2))
        wide = x.new_empty(b, 2 * h, w, 2, c // 4)
        _butterfly(tall.flatten(1, 2).chunk(2, 3), wide.unbind(3))
        return wide.flatten(2, 3).mul_(0.5)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        b, h, w, c = gradient.shape
        tall = gradient.new_empty(b, h, w // 2, 2 * c)
        _butterfly(torch.unflatten(gradient, 2, (-1, 2)).unbind(3), tall.chunk(2, 3))
        x = gradient.new_empty(b, h // 2, w // 2, 4 * c)
        _butterfly(torch.unflatten(tall, 1, (-1, 2)).unbind(2), x.chunk(2, 3))
        return x.mul_(0.5)


def _butterfly(pair: tuple[Tensor, ...], out: tuple[Tensor, ...]) -> None:
    torch.add(*pair, out=out[0])
    torch.sub(*pair, out=out[1])
