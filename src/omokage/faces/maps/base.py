"""What a face map is: an ordinary batch map whose records are portraits.

``fit(portraits)``, ``transform(portraits) -> (n, d)`` and, where there is a way back, ``inverse_transform(vectors) -> pictures``.
Anything with these methods works; the classes here save a map that looks at one portrait at a time from writing the loops.

A map may also say: ``size``, the side of the portraits that it takes (256 if it does not say); ``networks``, the names of what it
needs from the zoo; ``recognizer``, the recognizer that should look at the photo for it; ``quick``, that it is not worth starting
processes for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..image import Picture
from ..portrait import Portrait

Vector = NDArray[np.float32]


class FaceMap(BaseEstimator):
    """A map that looks at portraits one by one: a subclass says what :meth:`encode` makes of one."""

    recognizer: ClassVar[str | None] = None
    quick: ClassVar[bool] = False  # whether starting processes would take longer than coding the faces of a folder

    @property
    def networks(self) -> tuple[str, ...]:
        """What it needs from the zoo."""
        return ()

    def fit(self, portraits: Sequence[Portrait], y: Any = None) -> Any:
        """Nothing is learned."""
        return self

    def encode(self, portrait: Portrait) -> Vector:
        """One portrait as a vector."""
        raise NotImplementedError

    def transform(self, portraits: Sequence[Portrait]) -> NDArray[np.float32]:
        """Portraits as vectors (n, d)."""
        return np.stack([self.encode(portrait) for portrait in portraits])


class SynthesisMap(FaceMap):
    """A face map with a way back: a subclass says what picture :meth:`decode` makes of one vector."""

    def decode(self, vector: NDArray[Any]) -> Picture:
        """One vector as a picture."""
        raise NotImplementedError

    def inverse_transform(self, vectors: NDArray[Any]) -> list[Picture]:
        """Vectors (n, d) as pictures."""
        return [self.decode(vector) for vector in vectors]
