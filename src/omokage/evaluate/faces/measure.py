"""Pictures of faces, measured: found anew, recognized, and described, one after the other and on several processes.

Released pictures are seen as an attacker sees them: the face is found and aligned again. Where none is found, its points are
taken to be where they are on average, as whoever knows how such pictures are made would do; so no picture escapes the attack.
Originals are seen in crops of at least 256 pixels whatever the release's size, as the attacker's photos are not small because the
release is. FID and labels compare pictures of one size and before one ground.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ... import networks
from ...base.workers import spread
from ...errors import OmokageError
from ...faces.image import Picture, decoded
from ...faces.maps.mesh import mesh_points
from ...faces.maps.morph import ground
from ...faces.portrait import Portrait
from ...faces.recognize import RECOGNIZERS
from ...faces.survey import Found
from .codes import Coder, coders
from .figures import Measured
from .way import Way

LEAST = 256  # side of the crops in which recognizers see originals, at least
_MEAN_OF = 512  # faces that a mean shape is taken from: some hundreds are as good as all


@lru_cache(maxsize=1)
def attribute_network() -> Any:
    """The network that tells labels, or None where it or its weights are not there."""
    try:
        from ...faces.maps.attribute import Attribute

        return Attribute()
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


def _measured(face: Portrait, whole: Picture, found: bool, way: Way, means: Path) -> dict[str, Any]:
    """Recognizers and the release's own maps look at the face by its points; Inception and the labels' network at ``whole``."""
    tools, network = _instruments(), attribute_network()
    out = {name: tools[name].embed(face.crop, face.points) for name in RECOGNIZERS}
    out |= {"found": np.array(found), "inception": tools["inception"].features(np.ascontiguousarray(whole)[None])[0]}
    small = resized(face, way.size)
    out |= {name: code(small, out["arcface"]) for name, code in _coders(way, means).items()}
    return out if network is None else out | {"attributes": network.many(whole[None])[0]}


def _measure_picture(picture: Picture, way: Way, means: Path) -> dict[str, Any]:
    """A released picture, or one as it would be released."""
    faces = _instruments()["finder"].find(picture)
    points = faces[0].points if faces else _means(means)["points"] * len(picture)
    portrait = Portrait(picture, points, _instruments()["parser"].parse(picture))
    return _measured(portrait, picture, bool(faces), way, means)


def _measure_original(portrait: Portrait, way: Way, means: Path) -> dict[str, Any]:
    small = resized(portrait, way.size)
    whole = np.round(small.on(ground(small.size))).astype(np.uint8) if way.calm else small.crop
    return _measured(portrait, whole, True, way, means)


def resized(portrait: Portrait, size: int) -> Portrait:
    """The portrait at another size."""
    if portrait.size == size:
        return portrait
    how, factor = cv2.INTER_AREA if portrait.size > size else cv2.INTER_CUBIC, size / portrait.size
    crop, parts = (cv2.resize(layer, (size, size), interpolation=how) for layer in (portrait.crop, portrait.parts))
    return Portrait(np.asarray(crop), (portrait.points + 0.5) * factor - 0.5, np.asarray(parts))


@lru_cache(maxsize=1)
def _means(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


@lru_cache(maxsize=1)
def _synthesis(way: Way, path: Path) -> Any:
    return way.synthesis_map([_means(path)["shape"]])


@lru_cache(maxsize=1)
def _coders(way: Way, path: Path) -> dict[str, Coder]:
    return coders(way, _means(path)["shape"])


def _measure_one(kind: str, index: int, what: Found | Path, way: Way, means: Path) -> tuple[str, int, dict[str, Any]]:
    """One picture of any kind; small, as it goes from process to process."""
    if isinstance(what, Path):
        return kind, index, _measure_picture(decoded(what.read_bytes()).copy(), way, means)
    portrait = what.portrait()
    if kind == "original":
        return kind, index, _measure_original(portrait, way, means)
    synthesis = _synthesis(way, means)
    return kind, index, _measure_picture(synthesis.decode(synthesis.encode(resized(portrait, way.size))), way, means)


def keep_means(found: Sequence[Found], way: Way, target: Path) -> Path:
    """Mean landmarks and mean shape, in units of the side, as a file that every process reads."""
    points, shapes = [], []
    for face in found[:: max(1, len(found) // _MEAN_OF)]:
        portrait = face.portrait()
        points.append(portrait.points / portrait.size)
        shapes.append(mesh_points(resized(portrait, way.size)))
    np.savez(target, points=np.mean(points, 0), shape=np.mean(shapes, 0))
    return target


def measure(
    found: Sequence[Found],
    pictures: Sequence[Path],
    sample: Sequence[int],
    way: Way,
    work: Path,
    workers: int,
    progress: Callable[[int, int], None],
) -> tuple[Measured, Measured, Measured | None]:
    """Originals, released pictures, and a sample of the originals sent through the synthesis map (None if it is empty)."""
    means = keep_means(found, way, work / "means.npz")
    parts: list[tuple[str, Sequence[Found | Path]]] = [
        ("original", found), ("released", pictures), ("unaveraged", [found[i] for i in sample])
    ]  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {kind: [{}] * len(each) for kind, each in parts}
    total = sum(len(each) for each in rows.values())
    tasks = ((kind, i, what, way, means) for kind, each in parts for i, what in enumerate(each))
    progress(0, total)
    for done, (kind, i, row) in enumerate(spread(_measure_one, tasks, workers), 1):
        rows[kind][i] = row
        progress(done, total)
    unaveraged = Measured.stacked(rows["unaveraged"]) if len(sample) else None
    return Measured.stacked(rows["original"]), Measured.stacked(rows["released"]), unaveraged
