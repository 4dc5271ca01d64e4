"""Networks that the Omokage authors trained. Their files are in a distribution of their own, ``omokage-weights``.

The training data limit what the files may be used for, so ``omokage`` itself does not contain them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ..errors import InputError, ModelError

_PACKAGE = "omokage_weights"


@dataclass(frozen=True)
class Trained:
    """A network of ``omokage-weights``."""

    name: str
    role: str
    file: str
    size: int
    licence: str
    limits: str


_ENTRIES = (
    Trained(
        "attributes",
        "tells hair, glasses, beard, sex and age of a face; the ATTRIBUTE map",
        "attributes.safetensors",
        8761936,
        "see omokage-weights",
        "trained on CelebA, which is for non-commercial research",
    ),
    Trained(
        "encoder",
        "finds the styles of a face in MobileStyleGAN; the LATENT map",
        "encoder.safetensors",
        4373318,
        "Apache-2.0",
        "from MobileStyleGAN, trained on FFHQ, whose terms exclude commercial use of the photos",
    ),
)

TRAINED: dict[str, Trained] = {entry.name: entry for entry in _ENTRIES}


def trained(name: str) -> Path:
    """The weights of one of these networks.

    Parameters
    ----------
    name : ``attributes`` or ``encoder``

    Raises
    ------
    ModelError
        If the distribution ``omokage-weights`` is not installed, or does not hold the file.
    """
    if name not in TRAINED:
        raise InputError(f"there are no trained weights {name!r}: there are {', '.join(TRAINED)}")
    try:
        path = Path(str(files(_PACKAGE) / TRAINED[name].file))
    except ModuleNotFoundError:
        path = None
    if path is None or not path.is_file():
        raise ModelError(
            f"the weights of {name!r} are not installed; in a checkout of Omokage, run: pip install ./packages/omokage-weights"
        )
    return path
