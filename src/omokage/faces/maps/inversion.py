"""Inversion I → W+ by gradient descent (the papers' LATENT map; Abdal et al., *Image2StyleGAN*, 2019).

    W+* = argmin  |I − G(W+)|² + λ · Σ |VGG(I) − VGG(G(W+))|² + κ · |W+ − start|²      over conv1_1, conv1_2, conv3_2, conv4_2

over the person's pixels alone: the background is masked out of both pictures. The papers do not say how the terms are scaled;
here each is a weighted mean over places, the face counting more than hair and clothes. At each place of a VGG layer the direction
of the features is compared, not their length: what is there, rather than how bright. That finds the person in half the steps
that squared differences need. VGG looks at the window where an FFHQ crop has its face, which is most of what it has to say in
half the time. The last term keeps a face where the generator draws faces.

Adam moves every coordinate by about the same, whatever it means. So the steps are taken along the principal axes of W, in units
of the styles' own deviation there: far where faces differ much, little where they hardly differ.

Drawing 1024 pixels to look at 128 of them is most of the work. The generator's map of 64 px holds the wavelet bands of a
picture of 128 px, and a linear look at it (``head``, fitted once on drawn faces) shows nearly that picture in a sixth of the
time, but for its colours. So the difference to the true picture is measured at the start, and again now and then, and added:
the look is exact where it was measured, and close nearby.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ...errors import MapError
from ...networks.generator import FaceGenerator
from ...networks.vgg import PERCEPTUAL, VGG, directions
from ..portrait import Portrait

_FIRST, _SECOND = 0.8, 0.99  # Adam's memories: short, as there are few steps
_WINDOW = (slice(24, 120), slice(16, 112))  # rows and columns of 128 that VGG sees
_HAIR = 0.3  # how much the rest of the person counts beside the face


@dataclass(frozen=True)
class State:
    """Where a descent stands; hand it back to go on. Tensors have the batch first."""

    w: Tensor  # (b, layers, 512)
    start: Tensor
    first: Tensor  # Adam's moments
    second: Tensor
    losses: NDArray[np.float32]  # (steps, b)
    resting: Tensor  # (b,) those that stopped early

    @classmethod
    def at(cls, start: Tensor) -> State:
        """The beginning."""
        none = torch.zeros_like(start)
        losses = np.empty((0, len(start)), np.float32)
        return cls(start.clone(), start.clone(), none, none.clone(), losses, torch.zeros(len(start), dtype=torch.bool))


class Inversion:
    """Inverts the generator.

    Parameters
    ----------
    generator, vgg : FaceGenerator, VGG
        What draws, and what compares; ``vgg=None`` compares pixels only.
    head : Tensor
        (12, channels + 1), see :func:`fit_head`.
    exit : int
        Size of the inner map that is looked at; the loss sees twice that.
    rate : float
        Adam's step, in deviations of a style along each principal axis.
    perceptual : float
        λ.
    keep : float
        κ: how dear it is to leave the start.
    refresh : int
        Steps after which the look is measured against the true picture again.
    patience : int
        A face rests when its loss fell by less than 1 % over so many steps.
    """

    def __init__(
        self,
        generator: FaceGenerator,
        vgg: VGG | None,
        head: Tensor,
        *,
        exit: int = 64,
        rate: float = 0.12,
        perceptual: float = 1.0,
        keep: float = 0.002,
        refresh: int = 10,
        patience: int = 8,
    ) -> None:
        if rate <= 0 or min(perceptual, keep) < 0 or min(refresh, patience) < 1:
            raise MapError(
                f"rate={rate}, perceptual={perceptual}, keep={keep}, refresh={refresh}, patience={patience}: the rate has to be "
                "above 0, the weights 0 or more, the numbers of steps 1 or more"
            )
        self.generator = generator
        self.vgg = vgg
        self.head = head
        self.exit = exit
        self.rate = rate
        self.perceptual = perceptual
        self.keep = keep
        self.refresh = refresh
        self.patience = patience
        self.axes = principal_axes(generator)

    def run(
        self,
        portraits: Sequence[Portrait],
        state: State,
        steps: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> State:
        """So many steps on from ``state`` (``State.at`` the encoder's guess or the mean style); one batch."""
        if len(portraits) != len(state.w):
            raise MapError(f"{len(portraits)} portraits, but {len(state.w)} styles to start from")
        goal = self._goal(portraits)
        rest: Tensor | None = None
        for step in range(steps):
            if bool(state.resting.all()):
                break
            if rest is None or len(state.losses) % self.refresh == 0:
                rest = self._unseen(state.w)
            state = self._step(state, goal, rest)
            if progress:
                progress(step + 1, steps)
        return state

    def look(self, w: Tensor) -> Tensor:
        """Nearly the picture of W+, (b, 3, 2·exit, 2·exit), in about [−1, 1]."""
        inner = self.generator(w, exit=self.exit)
        return F.pixel_shuffle(F.conv2d(inner, self.head[:, :-1, None, None], self.head[:, -1]), 2)

    @torch.no_grad()
    def _unseen(self, w: Tensor) -> Tensor:
        """What the look lacks of the true picture."""
        true = torch.cat([self.generator(one).clamp_(-1, 1) for one in torch.split(w, 1)])
        return F.adaptive_avg_pool2d(true, 2 * self.exit) - self.look(w)

    def _goal(self, portraits: Sequence[Portrait]) -> _Goal:
        side = 2 * self.exit
        photos = torch.stack([torch.from_numpy(p.crop.astype(np.float32)) for p in portraits]).permute(0, 3, 1, 2) / 127.5 - 1
        person = torch.stack([torch.from_numpy(p.person) for p in portraits])[:, None]
        face = torch.stack([torch.from_numpy(p.part("face", "glasses")) for p in portraits])[:, None]
        photo, mask, inner = (F.interpolate(each, size=side, mode="area") for each in (photos, person, face))
        weight = _HAIR * mask + (1 - _HAIR) * inner
        weight = weight / weight.mean((1, 2, 3), keepdim=True).clamp(min=0.01)
        features = {}
        if self.vgg is not None and self.perceptual:
            with torch.no_grad():
                features = {name: directions(x) for name, x in self.vgg(_windowed(photo * mask), PERCEPTUAL).items()}
        return _Goal(photo * mask, mask, weight, features)

    def loss(self, w: Tensor, start: Tensor, goal: _Goal, rest: Tensor) -> Tensor:
        """The loss of each face, (b,)."""
        shown = (self.look(w) + rest) * goal.mask
        total = ((shown - goal.photo).square() * goal.weight).mean((1, 2, 3))
        if self.vgg is not None and goal.features:
            for name, features in self.vgg(_windowed(shown), tuple(goal.features)).items():
                apart = (directions(features) - goal.features[name]).square().sum(1, keepdim=True)
                weight = F.interpolate(_windowed(goal.weight), size=apart.shape[2:], mode="area")
                total = total + self.perceptual / len(goal.features) * (apart * weight).mean((1, 2, 3))
        return total + self.keep * (w - start).square().sum(-1).mean(-1)

    def _step(self, state: State, goal: _Goal, rest: Tensor) -> State:
        """One step of Adam for the faces that do not rest."""
        w = state.w.clone().requires_grad_()
        losses = self.loss(w, state.start, goal, rest)
        gradient = torch.autograd.grad(losses.sum(), w)[0] @ self.axes
        number = len(state.losses) + 1
        first = torch.lerp(gradient, state.first, _FIRST)
        second = torch.lerp(gradient.square(), state.second, _SECOND)
        slope = (first / (1 - _FIRST**number)) / ((second / (1 - _SECOND**number)).sqrt() + 1e-8)
        moved = torch.where(state.resting[:, None, None], state.w, state.w - self.rate * slope @ self.axes.T)
        history = np.concatenate([state.losses, losses.detach().numpy()[None]])
        resting = state.resting
        if len(history) > self.patience:
            resting = resting | torch.from_numpy(history[-1] > 0.99 * history[-1 - self.patience])
        return replace(state, w=moved.detach(), first=first, second=second, losses=history, resting=resting)


@dataclass(frozen=True)
class _Goal:
    photo: Tensor  # (b, 3, side, side), masked
    mask: Tensor  # (b, 1, side, side) the person
    weight: Tensor  # (b, 1, side, side) how much a place counts, 1 in the mean
    features: dict[str, Tensor]  # of unit length at each place


@torch.no_grad()
def principal_axes(generator: FaceGenerator, number: int = 2048) -> Tensor:
    """(style, style): in its columns the principal axes of W, as long as styles deviate along them; none shorter than a tenth."""
    z = torch.from_numpy(np.random.default_rng(0).standard_normal((number, generator.inputs)).astype(np.float32))
    w = generator.mapping(z).double()
    values, vectors = torch.linalg.eigh(torch.cov(w.T))
    return (vectors * (values + 0.01 * values.mean()).sqrt()).float()


def _windowed(x: Tensor) -> Tensor:
    """The part of a picture that VGG sees."""
    rows, columns = (slice(part.start * x.shape[-1] // 128, part.stop * x.shape[-1] // 128) for part in _WINDOW)
    return x[..., rows, columns]


@torch.no_grad()
def fit_head(generator: FaceGenerator, styles: Sequence[Tensor], exit: int) -> Tensor:
    """The linear look from the map of ``exit`` px to the picture of twice that, by least squares over W+ of some faces.

    (12, channels + 1): 2 × 2 pixels of 3 colours, as ``pixel_shuffle`` orders them, and a constant in the last column.
    """
    square: Tensor | None = None
    product: Tensor | None = None
    for w in styles:
        inner = generator(w, exit=exit)[0].flatten(1)  # (c, exit²)
        inner = torch.cat([inner, inner.new_ones(1, inner.shape[1])]).double()
        true = F.adaptive_avg_pool2d(generator(w).clamp_(-1, 1), 2 * exit)
        pixels = F.pixel_unshuffle(true, 2)[0].flatten(1).double()  # (12, exit²)
        square = inner @ inner.T if square is None else square + inner @ inner.T
        product = pixels @ inner.T if product is None else product + pixels @ inner.T
    if square is None or product is None:
        raise MapError("the head needs at least one face to be fitted on")
    ridge = 1e-6 * square.diagonal().mean() * torch.eye(len(square), dtype=square.dtype)
    return torch.linalg.solve(square + ridge, product.T).T.float()
