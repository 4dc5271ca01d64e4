"""LATENT: faces in the style space W+ of a generator, where a mean of faces is again a face (the papers' map of that name).

Encoding is ``encoder``'s guess, with a few steps of ``inversion`` on top if asked. Decoding draws the face. A mean of many faces
lies near the generator's mean style, and what is drawn there is nearly always the same person: the further people differ, the
more their differences cancel. So decoding gives the spread back: for each group of layers it lengthens the deviation from the
mean style towards what a single face has. That is a function of the group's mean alone, and leaves its promise, k, as it is.

A data set's own mean face is not the generator's, if only because photos differ from drawings; what it has in common would be
lengthened in everybody. ``centre`` is the vector to lengthen from: the mean over a whole release, itself a function of its
groups' means and sizes, or by default the mean style.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ... import networks
from ...errors import MapError
from ...networks.generator import FaceGenerator, load_generator
from ...networks.vgg import VGG
from ..image import Picture
from ..portrait import Portrait
from ..recognize import ArcFace
from .base import SynthesisMap
from .encoder import Embeds, Encoder, describe, shipped
from .inversion import Inversion, State

_MOST = 3.0  # a deviation is never lengthened more: what is left of it by then is chance rather than the group


class Latent(SynthesisMap):
    """The LATENT map of faces. Groups and synthesizes.

    Parameters
    ----------
    size : int
        Side of the pictures, a divisor of what the generator draws (1024).
    steps : int
        Steps of inversion after the encoder's guess; each takes about as long as drawing a face.
    spread : float
        How much of the spread that averaging takes away is given back, 0 (none) … 1 (as far as a single face's).
    centre : vector, optional
        Where deviations are measured from; give the mean of all vectors of a release. None is the generator's mean style.
    generator, encoder : network or its file, optional
        Others than the zoo's MobileStyleGAN and the encoder that ships; an encoder belongs to its generator.
    """

    def __init__(
        self,
        size: int = 256,
        steps: int = 0,
        spread: float = 0.85,
        centre: NDArray[np.float32] | None = None,
        generator: FaceGenerator | Path | None = None,
        encoder: Encoder | Path | None = None,
    ) -> None:
        if not 0 <= spread <= 1 or steps < 0:
            raise MapError(f"spread={spread}, steps={steps}: the spread has to lie between 0 and 1, steps be 0 or more")
        drawn = 1024 if generator is None or isinstance(generator, Path) else generator.size
        if size < 1 or drawn % size:
            raise MapError(f"size={size}: LATENT draws {drawn} pixels, so the size has to divide {drawn}")
        self.size = size
        self.steps = steps
        self.spread = spread
        self.centre = centre
        self.generator = generator
        self.encoder = encoder

    @property
    def networks(self) -> tuple[str, ...]:
        drawing = () if self.generator is not None else ("mobilestylegan",)
        return ("arcface", *drawing, *(("vgg",) if self.steps else ()))

    def fit(self, portraits: Sequence[Portrait], y: Any = None) -> Latent:
        """Nothing is learned: the generator knows what faces are. An encoder of another generator is refused."""
        if tuple(self._encoder.groups.tolist()) != self._generator.groups:
            raise MapError("the encoder was made for another generator: train one for this")
        if self._generator.size % self.size:
            raise MapError(f"size={self.size}: the generator draws {self._generator.size} pixels: give a divisor of it")
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the networks, which every process loads for itself."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @cached_property
    def _generator(self) -> FaceGenerator:
        given = self.generator
        if given is None:
            return load_generator()
        return load_generator(given) if isinstance(given, Path) else given

    @cached_property
    def _encoder(self) -> Encoder:
        given = self.encoder
        return shipped() if given is None else Encoder.load(given) if isinstance(given, Path) else given

    @cached_property
    def _recognizer(self) -> Embeds:
        return ArcFace()

    @cached_property
    def _inversion(self) -> Inversion:
        return Inversion(self._generator, VGG.load(networks.get("vgg")), self._encoder.head)

    def encode(self, portrait: Portrait) -> NDArray[np.float32]:
        """W+ of a portrait as one vector, of 23 · 512 numbers for the published generator."""
        found: NDArray[np.float32] = self.transform([portrait])[0]
        return found

    def transform(self, portraits: Sequence[Portrait]) -> NDArray[np.float32]:
        """W+ of several portraits, (n, layers · style); with ``steps``, inverted as one batch."""
        seen = np.stack([describe(portrait, self._recognizer) for portrait in portraits])
        with torch.no_grad():
            w = self._encoder(torch.from_numpy(seen))
        if self.steps:
            w = self._inversion.run(portraits, State.at(w), self.steps).w
        return np.asarray(w.flatten(1).numpy(), np.float32)

    def decode(self, vector: NDArray[Any]) -> Picture:
        """The face of a vector, drawn whole: the background is the generator's own."""
        layers, style = self._generator.styles
        if vector.shape != (layers * style,):
            raise MapError(f"LATENT cannot decode a vector of {vector.size} numbers: it needs {layers} × {style}")
        return self._generator.picture(torch.from_numpy(self.widened(vector).reshape(1, layers, style)), self.size)

    def widened(self, vector: NDArray[Any]) -> NDArray[np.float32]:
        """The vector with the spread given back: a function of this vector alone."""
        layers, style = self._generator.styles
        centre = self._generator.w_mean.numpy() if self.centre is None else self.centre.reshape(layers, style)
        apart = vector.reshape(layers, style).astype(np.float32) - centre
        ends = np.cumsum(self._generator.groups)[:-1]
        for group, typical in zip(np.split(apart, ends), self._encoder.norm.tolist(), strict=True):
            group *= lengthening(float(np.linalg.norm(group, axis=1).mean()), typical, self.spread)
        return np.asarray(apart + centre, np.float32).ravel()


def lengthening(norm: float, typical: float, spread: float) -> float:
    """The factor for a deviation of this norm, where single faces have the typical one; never shortens, never more than 3.

    >>> lengthening(2.0, 4.0, 1.0), lengthening(2.0, 4.0, 0.0), lengthening(5.0, 4.0, 1.0), lengthening(0.1, 4.0, 1.0)
    (2.0, 1.0, 1.0, 3.0)
    """
    return float(min(max(typical / max(norm, 1e-9), 1.0) ** spread, _MOST))
