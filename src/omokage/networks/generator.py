"""What every generator of faces here can do, whichever network draws: z → w → picture, and people who do not exist."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from .generators import GENERATORS, generator_choices

PUBLISHED = "mobilestylegan"  # the zoo's generator


class FaceGenerator(nn.Module):
    """z → w → image; its weights are frozen, gradients reach w.

    A network has a ``mapping`` z → w and a ``synthesis`` w → image with ``size``, the side of the image, and ``styles``, the
    shape (layers, style) of a W+.
    """

    mapping: nn.Module
    synthesis: nn.Module
    w_mean: Tensor  # (style,) the mean style, that of an average face
    w_std: Tensor  # (style,) the deviation of each dimension
    w_norm: Tensor  # () the mean distance of a style from w_mean

    def __init__(self, mapping: nn.Module, synthesis: nn.Module, style: int, inputs: int) -> None:
        super().__init__()
        self.mapping, self.synthesis = mapping, synthesis
        self.inputs = inputs  # length of z
        self.register_buffer("w_mean", torch.zeros(style))
        self.register_buffer("w_std", torch.ones(style))
        self.register_buffer("w_norm", torch.tensor(math.sqrt(style)))
        self.eval().requires_grad_(False)

    @property
    def size(self) -> int:
        """Pixels of a side."""
        side: int = self.synthesis.size  # type: ignore[assignment]
        return side

    @property
    def styles(self) -> tuple[int, int]:
        """Shape of a W+: layers, and the length of a style."""
        shape: tuple[int, int] = self.synthesis.styles  # type: ignore[assignment]
        return shape

    @property
    def groups(self) -> tuple[int, int, int]:
        """How many layers of W+ shape the maps up to 16 px (pose, form), up to 64 px (features), and beyond (colours, light)."""
        raise NotImplementedError

    def forward(self, w: Tensor, exit: int | None = None) -> Tensor:
        """The image of a style, in about [−1, 1], or the features of an earlier resolution.

        Parameters
        ----------
        w : Tensor
            W (b, style), or W+ (b, layers, style).
        exit : int, optional
            Stop at the map of that size and return it, (b, channels, exit, exit), after its activation. That is not an image;
            it costs a fraction and steers an inversion's steps.

        Returns
        -------
        Tensor
            (b, 3, size, size), RGB.
        """
        drawn: Tensor = self.synthesis(w, exit)
        return drawn

    @torch.no_grad()
    def sample_w(self, n: int, seed: int, truncation: float = 0.7) -> Tensor:
        """Styles of n random faces (n, style), drawn toward the mean: truncation 1 leaves them, 0 gives the mean."""
        if n < 1 or not 0 <= truncation <= 1:
            raise InputError(f"n={n}, truncation={truncation}: n has to be 1 or more, truncation between 0 and 1")
        z = np.random.default_rng(seed).standard_normal((n, self.inputs))
        return torch.lerp(self.w_mean, self.mapping(torch.from_numpy(z.astype(np.float32))), truncation)

    def sample(self, n: int, seed: int, truncation: float = 0.7, size: int = 256, batch: int = 8) -> Iterator[NDArray[np.uint8]]:
        """Pictures of n random faces in batches, (≤ batch, size, size, 3), RGB; ``size`` divides the generator's."""
        if not 1 <= size <= self.size or self.size % size or batch < 1:
            raise InputError(f"size={size}, batch={batch}: the size has to divide {self.size}, the batch be 1 or more")
        w = self.sample_w(n, seed, truncation)
        return (np.stack([self.picture(one, size) for one in torch.split(some, 1)]) for some in torch.split(w, batch))

    @torch.inference_mode()
    def picture(self, w: Tensor, size: int) -> NDArray[np.uint8]:
        """One face of W (1, style) or W+ (1, layers, style) as RGB (size, size, 3); one at a time fills the cache best."""
        image = F.adaptive_avg_pool2d(self(w).clamp_(-1, 1), size)[0]
        pixels: NDArray[np.uint8] = image.add_(1).mul_(127.5).round_().permute(1, 2, 0).to(torch.uint8).numpy()
        return pixels


def load_generator(name: str | Path = PUBLISHED) -> FaceGenerator:
    """The zoo's generator by its name, or one of your own from its file."""
    from . import get

    if str(name) in {each.name for each in GENERATORS.able("fetch")}:
        made: FaceGenerator = GENERATORS[str(name)].load(get(str(name)))
        return made
    if not Path(name).is_file():
        raise InputError(f"there is no generator {str(name)!r}: give {generator_choices()}")
    readers = [each for each in GENERATORS.entries if each.files]
    reader = next((each for each in readers if Path(name).suffix in each.files), readers[0])
    read: FaceGenerator = reader.load().load(name)
    return read
