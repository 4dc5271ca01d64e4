"""The contract between the method and the media.

The method knows no medium: it asks for vectors, makes groups, and says which record belongs to which. A medium knows neither
groupers nor the pipeline: it says what its records are, gives their vectors under a map, and renders what the groups became.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.matrix import Labels
from ..base.parts import Part
from ..base.progress import Progress, silent
from ..base.registry import Entry, Registry
from .certificate import Certificate, Column, Found, Source
from .contents import Contents
from .key import Key
from .methods import FaceMethod, TableMethod
from .rules import Constraint, Sensitive

Counted = Literal["rows", "persons", "photos"]


@dataclass(frozen=True)
class Plan:
    """What a medium needs to know of the method.

    k : least number of persons in a group; None with noise. group_map, synthesis_map : fresh copies, not fitted; None for the
    identity. unifier : has ``unify(Z, labels, weights)``. noise : has ``add(Z)``, instead of groups. seed : of maps, groupers
    and the order of what is released.
    """

    k: int | None
    group_map: Any
    synthesis_map: Any
    unifier: Any
    unifier_name: str
    noise: Any
    constraints: Sequence[Constraint]
    seed: int
    progress: Progress = silent


@dataclass(frozen=True)
class Recipe:
    """How a release was made, as parts: what every medium's method in the certificate begins with."""

    grouping: Part | None
    group_map: tuple[Part, ...]
    synthesis_map: tuple[Part, ...]
    unifier: str


class Writer(Protocol):
    """Writes what is released into a stage, and reads it back once."""

    def fill(self, stage: Path, certificate: Certificate, key: Key) -> Filled: ...


@dataclass(frozen=True)
class Filled:
    """What was written into a stage and read back: the certificate as far as it is known, the key, and the files' hashes."""

    certificate: Certificate
    key: Key
    contents: Contents | None = None


@dataclass(frozen=True)
class Rendered:
    """What the groups became, ready to be certified: in memory, not written yet."""

    data: Any
    key: Key
    found: Found
    method: TableMethod | FaceMethod
    source: Source
    writer: Writer
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    group_map: Any = None  # fitted
    synthesis_map: Any = None  # fitted


class Prepared(Protocol):
    """A data set that has been looked at.

    persons : whose record each is, as numbers; None takes every record for a different person. counted : what k counts. mixed :
    whether the records mix numbers with categories, which halves along axes keep together best.
    """

    @property
    def persons(self) -> Labels | None: ...
    @property
    def counted(self) -> Counted: ...
    @property
    def mixed(self) -> bool: ...

    def vectors(self, ordinal: bool) -> NDArray[Any]:
        """Every record in the space where groups are made (n, d); ``ordinal`` if the grouper cuts along axes."""

    def sensitive(self) -> Sequence[Sensitive]:
        """What l-diversity and t-closeness are measured on."""

    def render(self, labels: Labels | None, recipe: Recipe) -> Rendered:
        """What each group becomes, or without labels each record under noise."""


class Medium(Protocol):
    """A data set that can be released. ``maps`` are the maps it can be sent through."""

    maps: ClassVar[Registry]

    def prepare(self, plan: Plan) -> Prepared:
        """Look at the data; refuse what this medium cannot do."""

    @classmethod
    def count(cls, contents: Contents, certificate: Certificate, persons: np.ndarray | None) -> Found:
        """Count a written release on its bytes."""


MEDIA = Registry(
    "medium",
    Entry("table", "omokage.tables.medium:TableMedium", "rows of a table or an array"),
    Entry("faces", "omokage.faces.folder:FaceFolder", "a folder of face photos"),
)
