"""A release of faces in figures: how near its pictures are to the originals, and who is still recognized in them.

Pure functions of what was measured on pictures (see ``faces_measure``): nothing here opens a file or a network.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...base.intervals import Risk, wilson
from ...base.matrix import Labels
from ...faces.recognize import RECOGNIZERS
from ...release.certificate import Certificate, Found
from .fid import Fid, FidFloor, Kid, fid, fid_floor, kid
from .labels import Agreement, LabelDistance
from .recognition import Linkage, Recognition, calibrate, link, recognize, within

RULERS: tuple[Literal["distance", "direction"], ...] = ("distance", "direction")  # in the codes of maps
DLIB_SAME = 0.6  # dlib's own rule: a distance of at most this is the same person


@dataclass(frozen=True)
class Measured:
    """What the instruments say of pictures, a row for each.

    found : whether a face was found. inception : 2048 features. arcface, facenet, dlib : embeddings. attributes : probabilities
    of labels, where that network is there. group_code, synthesis_code : codes of the release's own maps, where they are there.
    """

    found: NDArray[np.bool_]
    inception: NDArray[np.float32]
    arcface: NDArray[np.float32]
    facenet: NDArray[np.float32]
    dlib: NDArray[np.float32]
    attributes: NDArray[np.float32] | None = None
    group_code: NDArray[np.float32] | None = None
    synthesis_code: NDArray[np.float32] | None = None

    def embeddings(self, name: str) -> NDArray[np.float32]:
        """What one of ``RECOGNIZERS`` says."""
        said: NDArray[np.float32] = getattr(self, RECOGNIZERS.entry(name).name)
        return said

    @classmethod
    def stacked(cls, rows: list[dict[str, Any]]) -> Measured:
        """From the measurements of single pictures."""
        names = [each.name for each in fields(cls) if each.name in rows[0]]
        return cls(**{name: np.stack([row[name] for row in rows]) for name in names})


@dataclass(frozen=True)
class Figures:
    """One set of pictures against the originals.

    fid, floor : the Fréchet distance, and what as many different originals, drawn at random, would have. kid : None below 4
    pictures. attacks : by recognizer. codes : by dlib's distance and in the release's own maps. same_by_dlib : share of pairs of
    a picture and its member within 0.6; baseline: strangers. detected : share of the different pictures in which a face is found.
    """

    fid: Fid
    floor: FidFloor
    kid: Kid | None
    attacks: dict[str, Recognition]
    codes: dict[str, Linkage]
    same_by_dlib: Risk
    detected: float
    detected_interval: tuple[float, float]
    pictures: int

    @property
    def attackers(self) -> dict[str, Linkage]:
        """Every attack by its name, the one that names most first."""
        return dict(sorted({**self.attacks, **self.codes}.items(), key=lambda each: -each[1].rate))

    @property
    def strongest(self) -> Linkage:
        """The attack that names most."""
        return next(iter(self.attackers.values()))


@dataclass(frozen=True)
class Pair:
    """A released picture, and the face that became it if the caller asked to keep it: JPEG files."""

    released: bytes = field(repr=False)
    original: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FaceEvaluation:
    """What was promised, what was measured.

    found : counted on the pictures' bytes. faces : originals that were looked at again. before : what the originals stand before
    when FID and labels compare them. unaveraged : the baseline, single originals sent through the synthesis map and back; None
    says why in ``notes``. calibration : how well the recognizers know untouched faces; empty where everyone has one photo.
    agreement, distances : empty without the attribute network (and labels). pairs : pictures to show; never part of the JSON.
    """

    certificate: Certificate
    found: Found
    faces: int
    persons: int
    before: str
    released: Figures
    unaveraged: Figures | None
    calibration: dict[str, Recognition]
    agreement: tuple[Agreement, ...]
    distances: tuple[LabelDistance, ...]
    labels_from: str | None
    notes: tuple[str, ...]
    pairs: tuple[Pair, ...] = field(default=(), repr=False)

    @property
    def k(self) -> int:
        """The k that was promised."""
        return int(self.certificate.k or 0)

    def to_dict(self) -> dict[str, Any]:
        """Figures without pictures."""
        out = {name: value for name, value in asdict(self).items() if name != "pairs"}
        for name, each in (("released", self.released), ("unaveraged", self.unaveraged)):
            if each is not None:
                out[name]["strongest"] = next(iter(each.attackers))
                out[name]["fid"] |= {"value": each.fid.value, "note": each.fid.note}
        return out

    def to_json(self) -> str:
        """The figures for machines; what is no number is null."""
        return json.dumps(_finite(self.to_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def figures(originals: Measured, pictures: Measured, groups: Labels, persons: Labels, everyone: Labels, seed: int = 0) -> Figures:
    """Pictures against the originals.

    Parameters
    ----------
    groups, persons : (records,) the picture each record was released as, and whom it shows
    everyone : (originals,) whom the originals show; the attacker holds them all
    """
    n, before, after = len(groups), originals.inception, pictures.inception
    weights = np.bincount(groups, minlength=len(after)).astype(np.float64)
    hits, number = int(pictures.found.sum()), len(pictures.found)
    return Figures(
        fid(before, after, weights_b=weights * (len(before) / n)),
        fid_floor(before, min(number, len(before)), seed),
        kid(before, after, seed=seed) if min(number, len(before)) >= 4 else None,
        {
            each.name: recognize(pictures.embeddings(each.name), groups, persons, originals.embeddings(each.name), everyone)
            for each in RECOGNIZERS.able("cosine")
        },
        _in_codes(originals, pictures, groups, persons, everyone),
        within(pictures.dlib, groups, persons, originals.dlib, everyone, distance=DLIB_SAME),
        hits / number,
        wilson(hits, number),
        number,
    )


def _in_codes(originals: Measured, pictures: Measured, groups: Labels, persons: Labels, everyone: Labels) -> dict[str, Linkage]:
    """Attacks by the distance of dlib's numbers, and by distance and direction of the codes of the release's own maps."""
    found = {
        each.name: link(pictures.embeddings(each.name), groups, persons, originals.embeddings(each.name), everyone)
        for each in RECOGNIZERS.able("distance")
    }
    for name, after, before in (
        ("group map", pictures.group_code, originals.group_code),
        ("synthesis map", pictures.synthesis_code, originals.synthesis_code),
    ):
        if after is not None and before is not None:
            for ruler in RULERS:
                found[f"{name}, {ruler}"] = link(after, groups, persons, before, everyone, ruler=ruler)
    return found


def calibrations(originals: Measured, everyone: Labels) -> dict[str, Recognition]:
    """How well each recognizer finds a person's second photo; empty where nobody has two."""
    if len(np.unique(everyone)) == len(everyone):
        return {}
    return {each.name: calibrate(originals.embeddings(each.name), everyone) for each in RECOGNIZERS.able("cosine")}
