"""Pictures of faces, measured: found anew, recognized, and described, one after the other and on several processes.

Released pictures are seen as an attacker sees them: the face is found and aligned again. Where none is found, its points are
taken to be where they are on average, as whoever knows how such pictures are made would do; so no picture escapes the attack.
Originals are seen in crops of at least 256 pixels whatever the release's size, as the attacker's photos are not small because the
release is. FID and labels compare pictures of one size and before one ground.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import networks
from ...base.progress import Progress, silent
from ...base.workers import in_parallel
from ...errors import OmokageError
from ...faces.image import Picture, decoded
from ...faces.maps.ground import ground
from ...faces.portrait import Portrait
from ...faces.recognize import RECOGNIZERS
from ...faces.survey import FaceRecord, Portraits
from .codes import attacking_maps, sketched
from .figures import Measured
from .published import PublishedMaps

LEAST = 256  # side of the crops in which recognizers see originals, at least
_MEAN_OF = 512  # faces that a mean shape is taken from: some hundreds are as good as all


@lru_cache(maxsize=1)
def attribute_network() -> Any:
    """The network that tells labels, or None where it or its weights are not there."""
    try:
        from ...faces.maps.attribute import Attribute

        return Attribute().fit([])
    except (ImportError, OmokageError, OSError):
        return None


def attribute_labels() -> tuple[str, ...]:
    """The names of the labels it tells."""
    network = attribute_network()
    return () if network is None else tuple(network.all_labels)


@lru_cache(maxsize=1)
def _instruments() -> dict[str, Any]:
    from ...faces.find import Finder
    from ...faces.parse import Parser
    from ...networks.inception import Inception

    return {"finder": Finder(), "parser": Parser(), "inception": Inception.load(networks.get("inception"))} | {
        name: made() for name, made in RECOGNIZERS.items()
    }


@dataclass(frozen=True)
class Setting:
    """What all measurements of a release share: small, as it goes to every process once.

    size : side of the pictures. plain_ground : what originals are put before. points : mean landmarks in units of the side.
    maps : the release's own maps, fitted, that code faces. synthesis : the fitted synthesis map, or None.
    """

    size: int
    plain_ground: bool
    points: NDArray[np.float64]
    maps: dict[str, Any]
    synthesis: Any

    @classmethod
    def of(cls, found: Sequence[FaceRecord], maps: PublishedMaps, unaveraged: bool) -> Setting:
        """Mean landmarks and fitted maps, from a sample of the originals."""
        sample, size = found[:: max(1, len(found) // _MEAN_OF)], maps.method.size
        points = np.mean([portrait.points / portrait.size for portrait in Portraits(sample)], axis=0)
        own = {name: made.fit(Resized(sample, size)) for name, made in attacking_maps(maps).items()}
        synthesis = maps.make("synthesis").fit(Resized(sample, size)) if unaveraged else None
        return cls(size, maps.plain_ground, points, own, synthesis)


class Resized(Portraits):
    """Portraits at another size."""

    def __init__(self, faces: Sequence[FaceRecord], size: int) -> None:
        super().__init__(faces)
        self.size = size

    def __iter__(self) -> Iterator[Portrait]:
        return (portrait.at(self.size) for portrait in super().__iter__())


def _measured(face: Portrait, whole: Picture, found: bool, setting: Setting) -> dict[str, Any]:
    """Recognizers and the release's own maps look at the face by its points; Inception and the labels' network at ``whole``."""
    tools, network = _instruments(), attribute_network()
    out = {name: tools[name].embed(face.crop, face.points) for name in RECOGNIZERS}
    out |= {"found": np.array(found), "inception": tools["inception"].features(np.ascontiguousarray(whole)[None])[0]}
    small = replace(face.at(setting.size), embedding=out["arcface"])
    out |= {name: sketched(made.transform([small])[0]) for name, made in setting.maps.items()}
    return out if network is None else out | {"attributes": network.many(whole[None])[0]}


def _measure_picture(picture: Picture, setting: Setting) -> dict[str, Any]:
    """A released picture, or one as it would be released."""
    faces = _instruments()["finder"].find(picture)
    points = faces[0].points if faces else setting.points * len(picture)
    portrait = Portrait(picture, points, _instruments()["parser"].parse(picture))
    return _measured(portrait, picture, bool(faces), setting)


def _measure_original(portrait: Portrait, setting: Setting) -> dict[str, Any]:
    small = portrait.at(setting.size)
    whole = np.round(small.on(ground(small.size))).astype(np.uint8) if setting.plain_ground else small.crop
    return _measured(portrait, whole, True, setting)


def _measure_one(setting: Setting, kind: str, index: int, what: FaceRecord | Path) -> tuple[str, int, dict[str, Any]]:
    """One picture of any kind."""
    if isinstance(what, Path):
        return kind, index, _measure_picture(decoded(what.read_bytes()).copy(), setting)
    portrait = what.portrait()
    if kind == "original":
        return kind, index, _measure_original(portrait, setting)
    (picture,) = setting.synthesis.inverse_transform(setting.synthesis.transform([portrait.at(setting.size)]))
    return kind, index, _measure_picture(picture, setting)


def measure(
    found: Sequence[FaceRecord],
    pictures: Sequence[Path],
    sample: Sequence[int],
    maps: PublishedMaps,
    workers: int,
    progress: Progress = silent,
) -> tuple[Measured, Measured, Measured | None]:
    """Originals, released pictures, and a sample of the originals sent through the synthesis map (None if it is empty)."""
    setting = Setting.of(found, maps, unaveraged=bool(sample))
    parts: list[tuple[str, Sequence[FaceRecord | Path]]] = [
        ("original", found), ("released", pictures), ("unaveraged", [found[i] for i in sample])
    ]  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {kind: [{}] * len(each) for kind, each in parts}
    total = sum(len(each) for each in rows.values())
    tasks = ((kind, i, what) for kind, each in parts for i, what in enumerate(each))
    progress("measuring faces", 0, total)
    for done, (kind, i, row) in enumerate(in_parallel(_measure_one, tasks, workers, shared=(setting,)), 1):
        rows[kind][i] = row
        progress("measuring faces", done, total)
    unaveraged = Measured.stacked(rows["unaveraged"]) if len(sample) else None
    return Measured.stacked(rows["original"]), Measured.stacked(rows["released"]), unaveraged
