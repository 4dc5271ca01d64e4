"""The maps of a release of faces, as its certificate describes them and as far as their networks are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...base.parts import Part, digest_of, rebuild
from ...errors import InputError, MapError
from ...faces.maps import FACE_MAPS, OURS, Networks
from ...release.certificate import Certificate
from ...release.methods import FaceMethod

Which = Literal["group", "synthesis"]
WHICH: tuple[Which, ...] = ("group", "synthesis")
_OPTION = {"generator": "--generator", "encoder": "--encoder", "weights": "--attributes"}


@dataclass(frozen=True)
class PublishedMaps:
    """What the certificate says of a release's maps, and the networks that were given to evaluate it."""

    method: FaceMethod
    networks: Networks = OURS

    @classmethod
    def of(cls, certificate: Certificate, networks: Networks = OURS) -> PublishedMaps:
        if not isinstance(certificate.method, FaceMethod):
            raise InputError("the certificate is not one of faces: omokage evaluate judges tables")
        return cls(certificate.method, networks)

    @property
    def plain_ground(self) -> bool:
        """Whether its pictures stand before a plain ground; a generator draws its own background."""
        return self.name("synthesis") in ("morph", "direct")

    def name(self, which: Which) -> str:
        return self._part(which).name

    def missing(self, which: Which) -> str | None:
        """Why a map of the release is not at hand; None if it is."""
        part = self._part(which)
        if part.name not in FACE_MAPS:
            return f"{part.name} is not built in"
        for option, path in self._files(part).items():
            if part.options.get(option) != (None if path is None else digest_of(path)):
                return f"the release was made with another network; give it by {_OPTION[option]}"
        return None

    def make(self, which: Which, **changed: Any) -> Any:
        """A map of the release, not fitted; MapError if it is not at hand."""
        if (reason := self.missing(which)) is not None:
            raise MapError(reason)
        part = self._part(which)
        files = {option: path for option, path in self._files(part).items() if path is not None}
        return rebuild(part, FACE_MAPS, **files, **{name: value for name, value in changed.items() if name in part.options})

    def _part(self, which: Which) -> Part:
        parts = self.method.group_map if which == "group" else self.method.synthesis_map
        if len(parts) != 1:
            raise InputError("the certificate does not name one map of faces for each space")
        return parts[0]

    def _files(self, part: Part) -> dict[str, Any]:
        """The files given for the options of this map that take one."""
        takes = {"latent": ("generator", "encoder"), "attribute": ("weights",)}.get(part.name, ())
        return {option: self.networks.options[option] for option in takes}
