"""What a release promises, what was found on its bytes, and how it was made: one strict schema. No cell of the input.

A certificate is read only if it is, byte for byte, what Omokage writes: a field too many or too few, a word that is not one
of the allowed ones, a key twice, or a number beyond its bounds, and it is refused as a whole. It names neither the seed nor a
hash of the input, which would let anybody test guesses about the originals; both are in the secret
key (:mod:`omokage.release.key`).
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from ..base.reading import read_regular
from ..errors import InputError, VerificationError
from .fields import STRICT, Digest, FilePath, Number, Text
from .methods import FaceMethod, TableMethod

FORMAT: Literal["omokage-certificate/3"] = "omokage-certificate/3"
CERTIFICATE, READABLE, SIGNATURE = "certificate.json", "CERTIFICATE.md", "certificate.sig"
MOST_BYTES = 64 << 20
PACKAGES = ("omokage", "numpy", "numba", "scikit-learn", "polars", "torch", "opencv-python-headless", "onnxruntime")

Content = bytes  # a file has a field of that name


@dataclass(frozen=True)
class KAnonymity:
    """Every class has at least ``k`` of what is counted."""

    k: Annotated[int, Field(ge=2, lt=2**53)]
    counted: Literal["rows", "persons", "photos"]
    kind: Literal["k-anonymity"] = "k-anonymity"

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class Noisy:
    """Noise of a scale in the synthesis map's space; no k."""

    distribution: Literal["Laplace"]
    scale: Annotated[float, Field(gt=0)]
    kind: Literal["noise"] = "noise"

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class Column:
    """A released column."""

    name: Text
    role: Literal["quasi", "sensitive", "keep"]
    kind: Literal["number", "boolean", "date", "code", "category"]
    unify: Text | None = None

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class Rule:
    """l-diversity or t-closeness of a sensitive column: asked, and found."""

    name: Literal["distinct l-diversity", "entropy l-diversity", "t-closeness"]
    column: Text
    asked: float
    found: float

    __pydantic_config__ = STRICT

    @property
    def holds(self) -> bool:
        if self.name == "t-closeness":
            return self.found <= self.asked + 1e-9
        return self.found >= self.asked - 1e-9


@dataclass(frozen=True)
class Found:
    """What was counted: rows, classes of equal quasi-identifiers, ``(size, how many)`` for each size, and the constraints."""

    k: Number
    rows: Number
    groups: Number
    class_sizes: tuple[tuple[Number, Number], ...]
    persons: Number | None = None
    constraints: tuple[Rule, ...] = ()

    __pydantic_config__ = STRICT

    @property
    def sizes(self) -> dict[int, int]:
        return dict(self.class_sizes)


@dataclass(frozen=True)
class Around:
    """What the bytes say around the values (see :mod:`omokage.release.leaks`): all of it was searched, and nothing was found.

    hidden_values : different values, each of fewer than k people, of columns that are not released. searched_bytes : in all
    files, unpacked. orders : what was compared with the input's order.
    """

    hidden_values: Number
    searched_bytes: Number
    orders: tuple[Literal["rows", "buffers", "inodes", "change times"], ...]

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class Source:
    """What went in. ``fingerprint`` is keyed (HMAC-SHA256), and there only if a key was written: without it, it tells nothing."""

    records: Number
    columns: Number
    fingerprint: Digest | None = None

    __pydantic_config__ = STRICT


@dataclass(frozen=True)
class File:
    """A file of the release."""

    path: FilePath
    bytes: Number
    sha256: Digest

    __pydantic_config__ = STRICT

    @classmethod
    def of(cls, path: str, content: Content) -> File:
        return cls(path, len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class Certificate:
    """The promise, what was found, how it was made, and every file with its hash."""

    promise: Annotated[KAnonymity | Noisy, Field(discriminator="kind")]
    found: Found
    method: Annotated[TableMethod | FaceMethod, Field(discriminator="medium")]
    columns: tuple[Column, ...]
    source: Source
    files: tuple[File, ...] = ()
    around: Around | None = None
    notes: tuple[Text, ...] = ()
    versions: dict[Text, Text] = field(default_factory=dict)
    format: Literal["omokage-certificate/3"] = FORMAT

    __pydantic_config__ = STRICT

    @property
    def medium(self) -> Literal["table", "faces"]:
        return self.method.medium

    @property
    def k(self) -> int | None:
        """The promised k, if any."""
        return self.promise.k if isinstance(self.promise, KAnonymity) else None

    @property
    def counted(self) -> str:
        """What classes are counted in."""
        return self.promise.counted if isinstance(self.promise, KAnonymity) else "rows"

    def to_dict(self) -> dict[str, Any]:
        return {"format": self.format, **asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """Read a certificate; anything that is not one is refused."""
        content = text.encode() if isinstance(text, str) else text
        if len(content) > MOST_BYTES:
            raise VerificationError(f"the certificate has {len(content):,} bytes, but at most {MOST_BYTES:,} are read")
        try:
            certificate: Certificate = _adapter().validate_json(content)
        except ValidationError as error:
            _require_version(content)
            raise VerificationError(f"the certificate is damaged: {_reason(error)}") from None
        if certificate.to_json().encode("utf-8", "surrogatepass") != content:
            raise VerificationError("the certificate is damaged: it is not written the way Omokage writes it")
        _require_consistent(certificate)
        return certificate

    @classmethod
    def read(cls, folder: Path) -> tuple[Certificate, str]:
        """The certificate of a written release, and the SHA-256 of its bytes."""
        try:
            content = read_regular(folder / CERTIFICATE, MOST_BYTES)
        except InputError as error:
            raise VerificationError(f"the folder holds no certificate that can be read ({error}): is it a release?") from None
        return cls.from_json(content), hashlib.sha256(content).hexdigest()

    def promised(self) -> str:
        """The promise in one sentence."""
        if isinstance(self.promise, Noisy):
            return f"{self.promise.distribution} noise of scale {self.promise.scale:g}; no k is promised"
        rules = "".join(f", {c.name} of {c.column} at {c.asked:g}" for c in self.found.constraints)
        return self.method.promise(self.promise.k, self.promise.counted) + rules


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Certificate]:
    return TypeAdapter(Certificate)


def _require_version(content: bytes) -> None:
    """Refuse a certificate that another version of Omokage wrote, and say so."""
    found = re.match(rb'\s*\{\s*"format"\s*:\s*"omokage-certificate/([0-9]{1,9})"', content)
    if found is not None and found[1].decode() != FORMAT.rpartition("/")[2]:
        raise VerificationError(
            f"the certificate has version {found[1].decode()}, but this Omokage reads version {FORMAT.rpartition('/')[2]}: "
            "use the one that wrote it, or make the release again"
        )


def _reason(error: ValidationError) -> str:
    """Where it fails and which rule it breaks; not the value, which came from outside."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step)[:40] for step in first["loc"][:6])
    kind = str(first["type"]).replace("_", " ")
    return f"{where or 'as a whole'} breaks the rule '{kind}' ({error.error_count()} in all)"


def _require_consistent(certificate: Certificate) -> None:
    """What the schema cannot say: the parts belong to one medium, and names are there once."""
    faces = certificate.medium == "faces"
    names = [column.name for column in certificate.columns]
    paths = [file.path for file in certificate.files]
    wrong = (
        faces != (not certificate.columns)
        or faces != (certificate.counted == "photos" or (faces and certificate.counted == "persons"))
        or (faces and not isinstance(certificate.promise, KAnonymity))
        or len(set(names)) < len(names)
        or len({path.casefold() for path in paths}) < len(paths)  # where case does not count, one file would pass for two
        or any(path.startswith("faces/") != faces for path in paths)
        or (not faces and len(paths) > 1)
        or not (faces or any(column.role == "quasi" for column in certificate.columns))
        or not {CERTIFICATE, READABLE, SIGNATURE}.isdisjoint(paths)
    )
    if wrong:
        raise VerificationError("the certificate is damaged: its parts contradict each other")


def versions() -> Mapping[str, str]:
    """Versions of Python and of the packages that made the release."""
    known = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known
