"""I → W+ at a glance: from what a portrait shows to the styles of its face in the generator.

The papers invert the generator by gradient descent, 30 s a face, and wish for a learned inverse. This is one: a ridge regression
of low rank from four descriptions of a portrait to the styles of three groups of layers. It was learned from pairs that the
generator itself drew (``encoder_training``), so no photo of a person is in it.

    recognizer (512) ──┐
    68 landmarks ──────┤                                      ┌──▶ layers 0–6    pose, form
    parts, 16² ────────┼──▶ whitened ──▶ rank r ──▶ 3 × 512 ──┼──▶ layers 7–12   features       (MobileStyleGAN's 23)
    pixels, 32² ───────┘                                      └──▶ layers 13–22  colours, light

The background is left out: whatever it shows, the generator puts its own behind the face.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ...errors import ModelError
from ...networks.weights import trained
from ..portrait import PARTS, Portrait

PARTS_OF_W = 3  # groups of layers that are told apart: coarse, middle, fine
PIXELS, MASKS = 32, 16  # sides of the small pictures that are looked at
BLOCKS = {"recognition": 512, "landmarks": 136, "pixels": PIXELS * PIXELS * 3, "parts": MASKS * MASKS * len(PARTS)}


class Embeds(Protocol):
    """A recognizer, as ``faces.recognize`` has them."""

    def embed(self, picture: NDArray[np.uint8], points: NDArray[np.float64]) -> NDArray[np.float32]: ...


def describe(portrait: Portrait, recognizer: Embeds) -> NDArray[np.float32]:
    """What the encoder sees of a portrait, (5256,): the recognizer's numbers, the landmarks, the person's pixels, the parts."""
    pixels = cv2.resize(portrait.crop, (PIXELS, PIXELS), interpolation=cv2.INTER_AREA).astype(np.float32) / 127.5 - 1
    person = cv2.resize(portrait.person, (PIXELS, PIXELS), interpolation=cv2.INTER_AREA)
    parts = cv2.resize(portrait.parts, (MASKS, MASKS), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    seen = (
        recognizer.embed(portrait.crop, portrait.points),
        portrait.points.ravel() / portrait.size,
        (pixels * person[..., None]).ravel(),
        parts.ravel(),
    )
    return np.concatenate(seen, dtype=np.float32)


def widen(styles: Tensor, groups: Tensor) -> Tensor:
    """Styles of the three groups of layers (b, 3, s) → W+ (b, layers, s)."""
    return torch.repeat_interleave(styles, groups, 1)


class Encoder(nn.Module):
    """Descriptions (b, 5256) → W+ (b, layers, 512).

    Besides its own weights the file holds what decoding needs to know about the generator: ``groups``, how many layers are
    coarse, middle and fine; ``norm``, how far the styles of single faces lie from the mean style in each; and ``head``,
    inversion's linear look at the generator's map of 64 px.
    """

    shift: Tensor  # (f,) mean of the descriptions
    groups: Tensor  # (3,) layers of each
    norm: Tensor  # (3,) typical distance of a face's styles from w_mean, by group
    head: Tensor  # (12, channels + 1)

    def __init__(
        self,
        features: int = sum(BLOCKS.values()),
        rank: int = 256,
        style: int = 512,
        groups: tuple[int, ...] = (7, 6, 10),
    ) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(features))
        self.into = nn.Linear(features, rank, bias=False)
        self.out = nn.Linear(rank, PARTS_OF_W * style)
        self.register_buffer("groups", torch.tensor(groups))
        self.register_buffer("norm", torch.ones(PARTS_OF_W))
        self.register_buffer("head", torch.zeros(12, 1))
        self.eval().requires_grad_(False)

    def forward(self, description: Tensor) -> Tensor:
        styles: Tensor = self.out(self.into(description - self.shift))
        return widen(styles.view(len(description), PARTS_OF_W, -1), self.groups)

    def save(self, path: Path) -> None:
        """To a safetensors file, in half precision."""
        state = {name: value.half() if value.is_floating_point() else value for name, value in self.state_dict().items()}
        save_file({name: value.contiguous() for name, value in state.items()}, path)

    @classmethod
    def load(cls, path: Path | None = None) -> Encoder:
        """From a file that :meth:`save` wrote; the default is the one of ``omokage-weights``."""
        path = trained("encoder") if path is None else path
        try:
            state = {name: value.float() if value.is_floating_point() else value for name, value in load_file(path).items()}
            features, rank = state["into.weight"].shape[::-1]
            encoder = cls(features, rank, state["out.weight"].shape[0] // PARTS_OF_W)
            encoder.head = torch.zeros_like(state["head"])
            encoder.load_state_dict(state)
        except (OSError, SafetensorError, RuntimeError, KeyError, ValueError) as error:
            raise ModelError(f"{path.name}: not the weights of an encoder ({type(error).__name__}); train it again") from None
        return encoder


@cache
def shipped() -> Encoder:
    """The encoder of ``omokage-weights``, for the zoo's MobileStyleGAN."""
    return Encoder.load()
