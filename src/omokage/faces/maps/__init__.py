"""Maps for faces by name: which spaces faces can be grouped in, and which they can be averaged in."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import InputError, MapError
from .morph import Direct, Morph

GROUP_MAPS = {
    "recognition": "RECOGNITION (ArcFace embedding, with the turn of the head)",
    "attribute": "ATTRIBUTE (predicted chances of 14 attributes)",
    "latent": "LATENT (styles of a generator, W+)",
    "direct": "DIRECT (32 × 32 pixels before one ground)",
}
SYNTHESIS_MAPS = ("morph", "latent", "direct")
CODED = ("latent",)  # synthesis maps whose numbers are small and dear to make

_NO_WAY_BACK = {
    "recognition": "recognition has no way back from its numbers to a face",
    "attribute": "attribute has no way back: fourteen chances do not make a face, as it has no decoder",
}


@dataclass(frozen=True)
class Networks:
    """Files of somebody's own networks, instead of those that ship or the zoo has.

    generator : a StyleGAN2 (.pkl, .pt). encoder : what ``omokage faces train-encoder`` made for it, or for the published
    generator. attributes : what ``omokage faces train-attributes`` made. A folder stands for the file that training wrote there.
    """

    generator: Path | None = None
    encoder: Path | None = None
    attributes: Path | None = None

    def __post_init__(self) -> None:
        for name in ("encoder", "attributes"):
            if (given := getattr(self, name)) is not None and given.is_dir():
                object.__setattr__(self, name, given / f"{name}.safetensors")
        for name, path in asdict(self).items():
            if path is not None and not path.is_file():
                raise InputError(f"there is no file {path} to take the {name} from")
        if self.generator is not None and self.encoder is None:
            raise InputError("your own generator needs its encoder: omokage faces train-encoder --generator FILE makes it")

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file given."""
        given = {name: path for name, path in asdict(self).items() if path is not None}
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in given.items()}


OURS = Networks()


def require_networks(
    group_map: str, synthesis_map: str, steps: int = 0, networks: Networks = OURS, judges: tuple[str, ...] = ()
) -> None:
    """Fetch every network that such a run needs, so that one that cannot be had is noticed before the work and not after it."""
    from ...networks import get

    used = {group_map, synthesis_map}
    wanted = ["scrfd", "dlib-68", "bisenet", *judges]
    if used & {"recognition", "latent"}:
        wanted.append("arcface")
    if "latent" in used and networks.generator is None:
        wanted.append("mobilestylegan")
    if "latent" in used and steps:
        wanted.append("vgg")
    for name in dict.fromkeys(wanted):
        get(name)


def face_map(name: str, size: int, texture: float = 1.0, steps: int = 0, networks: Networks = OURS) -> Any:
    """A synthesis map for faces by its name."""
    if name == "morph":
        return Morph(size, texture)
    if name == "direct":
        return Direct(size)
    if name == "latent":
        return _latent(size, steps, networks)
    if name in _NO_WAY_BACK:
        raise MapError(
            f"{_NO_WAY_BACK[name]}, so it can group but not synthesize: give it as --group-map, and one of "
            f"{', '.join(SYNTHESIS_MAPS)} as --synthesis-map"
        )
    raise MapError(f"there is no synthesis map {name!r} for faces: they are {', '.join(SYNTHESIS_MAPS)}")


def _latent(size: int, steps: int, networks: Networks) -> Any:
    from ...networks.generator import load_generator
    from .encoder import Encoder
    from .latent import Latent

    generator = None if networks.generator is None else load_generator(networks.generator)
    encoder = None if networks.encoder is None else Encoder.load(networks.encoder)
    return Latent(size, steps, generator=generator, encoder=encoder)


def group_map(name: str, networks: Networks = OURS) -> Any:
    """A map that faces are grouped in, where it looks at the portrait; recognition looks at the photo, in the survey."""
    if name == "attribute":
        from .attribute import Attribute

        return Attribute(networks.attributes)
    if name == "direct":
        return Direct(32)
    raise MapError(f"there is no group map {name!r} that looks at portraits")
