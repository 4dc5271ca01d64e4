"""Which generators of faces there are: listed here, apart from their code, so that listing them needs no PyTorch."""

from __future__ import annotations

from ..base.registry import Entry, Registry

# Those that can "fetch" are networks of the zoo; the others are read from a file that you bring.
GENERATORS = Registry(
    "generator",
    Entry(
        "mobilestylegan",
        "omokage.networks.mobilestylegan:Generator",
        "The zoo's generator, 1024 × 1024.",
        title="MobileStyleGAN",
        can=frozenset({"fetch"}),
    ),
    Entry(
        "stylegan2",
        "omokage.networks.stylegan2:StyleGAN2",
        "A StyleGAN2 of your own: NVIDIA's .pkl, or the PyTorch port's .pt.",
        title="StyleGAN2",
        files=(".pkl", ".pt"),
    ),
    own=False,
)


def generator_choices() -> str:
    """How to name a generator: by its name in the zoo, or by its file."""
    fetched = [each.name for each in GENERATORS.able("fetch")]
    read = [f"the file of a {each.title} ({', '.join(each.files)})" for each in GENERATORS.entries if each.files]
    return ", or ".join([*fetched, *read])
