"""How each medium was anonymized, as a certificate records it, and the words for it: one class for each medium."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..base.parts import Part
from .fields import STRICT, Number, Text


@dataclass(frozen=True)
class _Method:
    """What the methods of all media have: an empty map is the identity."""

    grouping: Part | None
    group_map: tuple[Part, ...]
    synthesis_map: tuple[Part, ...]
    unifier: Text

    records: ClassVar[str]  # what went in
    released: ClassVar[str]  # what came out
    gaps: ClassVar[tuple[str, ...]]  # what k does not cover

    def lines(self) -> list[str]:
        """The method in words, a line each."""
        return [
            f"grouping: {'none' if self.grouping is None else self.grouping}",
            f"group map: {_chain(self.group_map)}",
            f"synthesis map: {_chain(self.synthesis_map)}",
            f"unifier: {self.unifier}",
        ]

    def promise(self, k: int, counted: str) -> str:
        """What k promises, in one sentence."""
        raise NotImplementedError

    def count(self, released: int, classes: int) -> str:
        """What was counted, in words."""
        raise NotImplementedError


@dataclass(frozen=True)
class TableMethod(_Method):
    """How a table was anonymized."""

    scale: Literal["range", "std", "none"]
    digits: Number | None
    rare: Literal["hide", "show"] = "hide"
    medium: Literal["table"] = "table"

    __pydantic_config__ = STRICT
    records: ClassVar[str] = "rows"
    released: ClassVar[str] = "rows"
    gaps: ClassVar[tuple[str, ...]] = (
        "k counts rows alike in the quasi-identifiers. Omokage does not protect columns released unchanged (sensitive, keep): "
        "whoever knows their values may find a row by them.",
        "Within a group, sensitive values that are all the same are given away, unless l-diversity or t-closeness was asked.",
        "Whoever knows all members of a group but one can compute the last one's values from a mean, up to the released digits. "
        "This is inherent in averaging; a larger k, the median, or fewer digits (--digits) make it harder.",
    )

    def lines(self) -> list[str]:
        return [
            *super().lines(),
            f"scale: {self.scale}",
            f"digits: {'all' if self.digits is None else self.digits}",
            f"values of fewer than k people: {'hidden' if self.rare == 'hide' else 'shown'}",
        ]

    def promise(self, k: int, counted: str) -> str:
        return f"every combination of quasi-identifiers is shared by at least {k} {counted}"

    def count(self, released: int, classes: int) -> str:
        return f"{released} rows in {classes} classes of equal quasi-identifiers"


@dataclass(frozen=True)
class FaceMethod(_Method):
    """How a folder of faces was anonymized. A network that was given is named by its SHA-256 among the options of its map."""

    size: Annotated[int, Field(ge=1, le=4096)]
    format: Literal["png", "jpg", "webp"]
    every_face: bool
    aligned: bool
    medium: Literal["faces"] = "faces"

    __pydantic_config__ = STRICT
    records: ClassVar[str] = "photos"
    released: ClassVar[str] = "pictures"
    gaps: ClassVar[tuple[str, ...]] = (
        "k counts released faces that are the same picture. What the receiver knows besides (who was photographed, when, by "
        "whom) is not hidden by it.",
        "What the people of one group have in common (age, sex, a beard, glasses) can be seen in their picture, as it must be.",
        "Whoever has the photos of all members of a group but one can subtract them from the mean and see much of the last "
        "one's face. This is inherent in averaging; a larger k makes it harder.",
    )

    def lines(self) -> list[str]:
        return [
            *super().lines(),
            f"pictures: {self.size} × {self.size}, {self.format}",
            f"faces taken: {'all of a photo' if self.every_face else 'the largest of each photo'}"
            + (", from aligned square crops" if self.aligned else ""),
        ]

    def promise(self, k: int, counted: str) -> str:
        whom = "people" if counted == "persons" else "photos, each taken for a different person"
        return f"every released face is the same picture for at least {k} {whom}"

    def count(self, released: int, classes: int) -> str:
        return f"{released} faces, of which {classes} are different pictures"


def _chain(parts: tuple[Part, ...]) -> str:
    return " + ".join(str(part) for part in parts) or "none"
