"""What a release promises and what was found on its bytes: JSON for machines, Markdown to show. No cell of the input."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import polars as pl

from .errors import VerificationError
from .grouping.constraints import Constraint, LDiversity, Sensitive, TCloseness, found
from .grouping.matrix import Labels
from .tables.table import Table, typed

FORMAT = "omokage-certificate/1"
PACKAGES = ("omokage", "numpy", "numba", "scikit-learn", "polars", "torch", "opencv-python-headless", "onnxruntime")
NOT_COVERED = (
    "k counts rows alike in the quasi-identifiers. Columns released as they are (sensitive, keep) are not hidden by it: "
    "whoever knows them may find a row by them.",
    "Within a group, sensitive values that are all the same are given away, unless l-diversity or t-closeness was asked.",
    "Several releases of the same people can be intersected; each certificate speaks of one release.",
    "The hashes show that a file is the one certified. They do not show who certified it.",
)
FACES_NOT_COVERED = (
    "k counts released faces that are the same picture. What the receiver knows besides (who was photographed, when, by whom) "
    "is not hidden by it.",
    "What the people of one group have in common (age, sex, a beard, glasses) can be seen in their picture, as it must be.",
    *NOT_COVERED[2:],
)
NOISE_NOT_COVERED = (
    "Noise hides records in the mapped space but promises no k, and no differential privacy: measure what an attacker "
    "can still do.",
    *NOT_COVERED[2:],
)


@dataclass(frozen=True)
class Column:
    """A released column."""

    name: str
    role: str
    kind: str
    unify: str | None = None


@dataclass(frozen=True)
class Found:
    """What was counted: rows, classes of equal quasi-identifiers, their sizes, and the constraints."""

    k: int
    rows: int
    groups: int
    sizes: dict[int, int]
    persons: int | None = None
    constraints: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Certificate:
    """The promise, what was found, how it was made, and the hashes of what went in and what came out."""

    promise: dict[str, Any]
    found: Found
    method: dict[str, Any]
    columns: tuple[Column, ...]
    input: dict[str, Any]
    output: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    format: str = FORMAT

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate; anything that is not one is refused."""
        try:
            raw = json.loads(text)
            if raw["format"] != FORMAT:
                raise VerificationError(f"the certificate is of format {raw['format']!r}, but {FORMAT!r} is needed")
            sizes = {int(size): int(count) for size, count in raw["found"]["sizes"].items()}
            counted = Found(**{**raw["found"], "sizes": sizes, "constraints": tuple(raw["found"]["constraints"])})
            columns = tuple(Column(**column) for column in raw["columns"])
            return cls(**{**raw, "found": counted, "columns": columns, "notes": tuple(raw["notes"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            raise VerificationError("the certificate is damaged: it is not what a release writes") from None

    @property
    def of_faces(self) -> bool:
        """Whether it speaks of a folder of pictures rather than of a table."""
        return self.promise.get("of") == "faces"

    def promised(self) -> str:
        """The promise in one sentence."""
        if self.promise["kind"] == "noise":
            return f"{self.promise['distribution']} noise of scale {self.promise['scale']:g}; no k is promised"
        counted = self.promise["counted"]
        if self.of_faces:
            whom = "people" if counted == "persons" else "photos, each taken for a different person"
            return f"every released face is the same picture for at least {self.promise['k']} {whom}"
        rules = "".join(f", {c['name']} of {c['column']} at {c['asked']:g}" for c in self.found.constraints)
        return f"every combination of quasi-identifiers is shared by at least {self.promise['k']} {counted}{rules}"

    def to_markdown(self) -> str:
        """The certificate to show."""
        f = self.found
        unit = self.promise.get("counted", "rows")
        where = "the written file" if self.output else "the release in memory"
        sizes = sorted(f.sizes.items())
        shown = sizes if len(sizes) <= 12 else [*sizes[:10], ("…", "…"), sizes[-1]]
        lines = [
            "# Certificate of an anonymized release", "",
            f"**Promised:** {self.promised()}.", "",
            f"**Found on {where}:** {self._counted()}, the smallest of {f.k} {unit}"
            + (f"; {f.persons} persons" if f.persons is not None else "") + ".",
        ]  # fmt: skip
        lines += [f"- {c['name']} of `{c['column']}`: asked {c['asked']:g}, found {c['found']:.4g}" for c in f.constraints]
        lines += ["", f"| class size in {unit} | classes |", "|---|---|", *(f"| {size} | {count} |" for size, count in shown)]
        lines += self._columns()
        lines += ["", "## How it was made", ""] + [f"- {name}: {value}" for name, value in self.method.items()]
        lines += self._source()
        if self.output:
            lines += [f"- output: {self._files()}, {self.output['bytes']} bytes, sha256 {self.output['sha256']}"]
        lines += [f"- {name} {number}" for name, number in self.versions.items()]
        if self.notes:
            lines += ["", "## Notes", "", *(f"- {note}" for note in self.notes)]
        gaps = NOISE_NOT_COVERED if self.promise["kind"] == "noise" else FACES_NOT_COVERED if self.of_faces else NOT_COVERED
        lines += ["", "## What is not covered", "", *(f"- {gap}" for gap in gaps)]
        lines += ["", "Check it: `omokage verify` on this folder.", ""]
        return "\n".join(lines)

    def _counted(self) -> str:
        if self.of_faces:
            return f"{self.found.rows} faces, of which {self.found.groups} are different pictures"
        return f"{self.found.rows} rows in {self.found.groups} classes of equal quasi-identifiers"

    def _columns(self) -> list[str]:
        if not self.columns:
            return []
        lines = ["", "## Columns", "", "| column | role | kind | unified by |", "|---|---|---|---|"]
        lines += [f"| `{_cell(c.name)}` | {c.role} | {c.kind} | {c.unify or ''} |" for c in self.columns[:200]]
        if len(self.columns) > 200:
            lines.append(f"| … {len(self.columns) - 200} more | | | |")
        return lines

    def _source(self) -> list[str]:
        if self.of_faces:
            return [f"- input: {self.input['rows']} photos"]
        return [f"- input: {self.input['rows']} rows, sha256 {self.input['sha256'] or 'none (in memory)'}"]

    def _files(self) -> str:
        output = self.output or {}
        return f"{output['files']} pictures in {output['folder']}" if self.of_faces else str(output["file"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that made the release."""
    known = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known


def classes_of_frame(frame: pl.DataFrame, quasi: Sequence[str]) -> Labels:
    """A number for each row, equal where all quasi-identifiers are."""
    keys = frame.select(quasi)
    keys.columns = [f"c{j}" for j in range(len(quasi))]  # whatever the columns are called, "class" is free
    first = keys.unique(maintain_order=True).with_row_index("class")
    labels = keys.join(first, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["class"]
    return labels.cast(pl.Int64).to_numpy()


def classes_of_rows(matrix: np.ndarray) -> Labels:
    """A number for each row, equal where the rows are the same to the bit."""
    rows = np.ascontiguousarray(matrix)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    labels: Labels = np.unique(keys, return_inverse=True)[1].ravel().astype(np.int64)
    return labels


def count(
    labels: Labels,
    constraints: Sequence[Constraint] = (),
    sensitive: Sequence[Sensitive] = (),
    persons: Labels | None = None,
) -> Found:
    """Count the classes: rows in each, or different persons where ``persons`` says whose row it is."""
    pairs = labels if persons is None else np.unique(np.column_stack([labels, persons]), axis=0)[:, 0]
    per_class = np.bincount(pairs)
    sizes = dict(zip(*(a.tolist() for a in np.unique(per_class, return_counts=True)), strict=True))
    measured = tuple(
        {"name": c.name, "column": s.name, "asked": c.asked, "found": found(c, s, labels)} for c in constraints for s in sensitive
    )
    people = None if persons is None else len(np.unique(persons))
    return Found(int(per_class.min()), len(labels), len(per_class), sizes, people, measured)


def constraints_of(certificate: Certificate) -> list[Constraint]:
    """The constraints a certificate names."""
    known: list[Constraint] = []
    for entry in certificate.found.constraints:
        if entry["name"] == "t-closeness":
            rule: Constraint = TCloseness(entry["asked"])
        else:
            rule = LDiversity(entry["asked"], entry["name"].split()[0])
        if rule not in known:
            known.append(rule)
    return known


def sensitive_columns(frame: pl.DataFrame, columns: Sequence[Column]) -> list[Sensitive]:
    """The sensitive columns as codes; text from a CSV is first given its type again."""
    out = []
    for column in columns:
        if column.role == "sensitive":
            values = frame[column.name]
            values = typed(values) if values.dtype == pl.String and column.kind in ("number", "date", "boolean") else values
            if values.dtype in (pl.Categorical, pl.Enum):
                values = values.cast(pl.String)
            codes = values.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
            codes = np.unique(codes, return_inverse=True)[1].ravel().astype(np.int64)
            out.append(Sensitive(column.name, codes, column.kind in ("number", "date")))
    return out


def telling_columns(table: Table, role: Mapping[str, str]) -> list[str]:
    """Columns released as they are that nearly tell every row apart."""
    notes = []
    for name, part in role.items():
        if part in ("sensitive", "keep"):
            share = table.frame[name].n_unique() / max(len(table.frame), 1)
            if share > 0.5 and len(table.frame) > 20:
                notes.append(
                    f"Column {name} is released as it is and differs in {share:.0%} of the rows: it may identify people."
                )
    return notes


def uneven_units(x: np.ndarray, described: str) -> list[str]:
    """A note where the columns' units differ so much that a map would see only few of them."""
    deviation = x.std(axis=0)
    deviation = deviation[deviation > 0]
    if len(deviation) > 1 and deviation.max() > 1000 * deviation.min() and "Standardize" not in described:
        return [
            "The columns' standard deviations differ more than 1000-fold, so few columns decide: std+ before the map "
            "would even them out."
        ]
    return []
