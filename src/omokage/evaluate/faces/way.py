"""How a release of faces was made, as far as measuring has to know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import InputError, MapError
from ...faces.align import Points
from ...faces.maps import OURS, Networks, face_map
from ...release.certificate import Certificate, FaceMethod


@dataclass(frozen=True)
class Way:
    """The method of a release, from its certificate.

    networks : those at hand. same : whether their generator and encoder are those of the release; same_attributes : whether their
    attribute network is.
    """

    synthesis: str
    size: int
    texture: float
    steps: int = 0
    networks: Networks = OURS
    same: bool = True
    every_face: bool = False
    aligned: bool = False
    group: str = "recognition"
    same_attributes: bool = True

    @classmethod
    def of(cls, certificate: Certificate, networks: Networks = OURS) -> Way:
        method = certificate.method
        if not isinstance(method, FaceMethod):
            raise InputError("the certificate is not one of faces: omokage evaluate judges tables")
        same = {name: method.networks.get(name) == networks.digests.get(name) for name in ("generator", "encoder", "attributes")}
        return cls(
            method.synthesis_map, method.size, method.texture, method.steps, networks, same["generator"] and same["encoder"],
            method.every_face, method.aligned, method.group_map, same["attributes"],
        )  # fmt: skip

    @property
    def calm(self) -> bool:
        """Whether its pictures stand before the calm ground; a generator draws its own."""
        return self.synthesis in ("morph", "direct")

    def missing(self, which: Literal["group", "synthesis"]) -> str | None:
        """Why a map of the release is not at hand; None if it is."""
        name = self.group if which == "group" else self.synthesis
        if name == "latent" and not self.same:
            return "the release was made with other networks; give them by --generator and --encoder"
        if name == "attribute" and not self.same_attributes:
            return "the release was made with another attribute network; give it by --attributes"
        return None

    def synthesis_map(self, shapes: Sequence[Points] = ()) -> Any:
        """The synthesis map, fitted to these shapes if any; MapError if this installation has none of that name."""
        if (reason := self.missing("synthesis")) is not None:
            raise MapError(reason)
        made = face_map(self.synthesis, self.size, self.texture, self.steps, self.networks)
        return made.fit(shapes) if shapes else made
