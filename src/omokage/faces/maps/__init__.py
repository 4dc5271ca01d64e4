"""Maps of faces: the spaces that faces can be grouped in, and those that they can be averaged in.

``FACE_MAPS`` lists them by the names that the command line knows. A map of your own is ``package.module:Class``.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...base.registry import Entry, Registry
from ...errors import InputError, MapError

_GROUP, _BOTH = frozenset({"group", "cache"}), frozenset({"group", "synthesize"})
FACE_MAPS = Registry(
    "face map",
    Entry(
        "recognition", "omokage.faces.maps.recognition:Recognition", "ArcFace's embedding, and the turn of the head", can=_GROUP
    ),
    Entry("attribute", "omokage.faces.maps.attribute:Attribute", "predicted chances of 14 attributes", can=_GROUP),
    Entry("latent", "omokage.faces.maps.latent:Latent", "styles of a generator, W+", can=_BOTH | {"cache"}),
    Entry("direct", "omokage.faces.maps.direct:Direct", "pixels before a plain ground; 32 × 32 to group in", can=_BOTH),
    Entry(
        "morph", "omokage.faces.maps.morph:Morph", "shape and texture, each averaged on its own", can=frozenset({"synthesize"})
    ),
    error=MapError,
    methods=("fit", "transform"),
)
_GROUP_SIDE = 32  # of DIRECT's pictures where they are only grouped


def is_listed(mapping: Any) -> bool:
    """Whether a map is one of these, so that its name and options say what its codes are; your own class may change."""
    return FACE_MAPS.name_of(mapping) in FACE_MAPS


def has_small_codes(mapping: Any) -> bool:
    """Whether the codes of a whole folder fit into memory, so that they serve to group and to average."""
    return is_listed(mapping) and "cache" in FACE_MAPS.entry(FACE_MAPS.name_of(mapping)).can


@dataclass(frozen=True)
class Networks:
    """Files of your own networks, instead of those that ship or the zoo has.

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

    @property
    def options(self) -> dict[str, Path | None]:
        """The files, by the options of the maps that take them."""
        return {"generator": self.generator, "encoder": self.encoder, "weights": self.attributes}


OURS = Networks()


def make_face_map(text: str, *, group: bool = False, networks: Networks = OURS, **settings: Any) -> Any:
    """A face map by its name; of the settings (size, texture, steps …) and networks it is given those that it takes."""
    ability = "group" if group else "synthesize"
    name = text.partition(":")[0]
    if name in FACE_MAPS and ability not in FACE_MAPS.entry(name).can:
        raise MapError(
            f"{name} cannot {'group' if group else 'draw a face from its numbers'}: choose {_able(ability)}"
            + ("" if group else f", and give {name} as the group map")
        )
    chosen = settings | networks.options | ({"size": _GROUP_SIDE} if group and name == "direct" else {})
    taken = inspect.signature(FACE_MAPS.class_of(text)).parameters
    return FACE_MAPS.make(text, **{option: value for option, value in chosen.items() if option in taken})


def _able(ability: str) -> str:
    return ", ".join(entry.name for entry in FACE_MAPS.able(ability))


def require_networks(*maps: Any, judges: tuple[str, ...] = ()) -> None:
    """Fetch every network that such a run needs, so that one that cannot be had is noticed before the work and not after it."""
    from ...networks import get

    for name in dict.fromkeys(["scrfd", "dlib-68", "bisenet", *judges, *(n for m in maps for n in getattr(m, "networks", ()))]):
        get(name)
