"""Is a written release what its certificate says? Everything is read again and counted from the bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from .certificate import Certificate, Found, constraints_of, count
from .errors import OmokageError, VerificationError
from .grouping.matrix import Labels
from .release import CERTIFICATE, KEY_FORMAT, READABLE, recount
from .tables.write import read_written


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks of a release, and what was counted on its bytes."""

    checks: tuple[Check, ...]
    found: Found | None
    certificate: Certificate

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


def verify(path: str | Path, *, key: str | Path | None = None) -> Verification:
    """Check the release in the folder ``path``; with its key, persons are counted too.

    Raises
    ------
    VerificationError
        If there is no certificate that can be read. A release that fails a check is returned, with ``passed`` false.
    """
    folder = Path(path)
    try:
        certificate = Certificate.from_json((folder / CERTIFICATE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise VerificationError(f"{folder} holds no certificate that can be read: is it a release?") from None
    if certificate.output is None:
        raise VerificationError("the certificate names no written file")
    if certificate.of_faces:
        return _verify_faces(folder, certificate, key)
    checks: list[Check] = []
    file = folder / Path(str(certificate.output["file"])).name
    found = None
    try:
        content = file.read_bytes()
        checks.append(_hash(content, certificate))
        written = read_written(file)
        checks.append(_shape(written, certificate))
        if checks[-1].passed:
            people = None if key is None else _persons(Path(key), certificate, len(written))
            found = recount(written, certificate.columns, constraints_of(certificate), people)
            checks += _counts(found, certificate, people is not None)
    except (OSError, OmokageError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, OmokageError) else "it cannot be read"
        checks.append(Check("data file", False, f"{file.name}: {reason}"))
    checks.append(_readable(folder, certificate))
    return Verification(tuple(checks), found, certificate)


def _verify_faces(folder: Path, certificate: Certificate, key: str | Path | None) -> Verification:
    """The pictures of a folder: their bytes, what they decode to, and how many are the same."""
    from .gallery.written import FOLDER, classes_of_pictures, digest_of

    checks: list[Check] = []
    found = None
    output = certificate.output or {}
    try:
        names, classes = classes_of_pictures(folder / FOLDER)
        now = digest_of(folder / FOLDER, names)
        same = now["sha256"] == output.get("sha256") and len(names) == output.get("files")
        checks.append(
            Check("bytes", same, f"{len(names)} pictures" + (" are those certified" if same else ", not those certified"))
        )
        people = None if key is None else _persons(Path(key), certificate, len(names))
        found = count(classes, persons=people)
        checks += _counts(found, certificate, people is not None)
    except (OSError, OmokageError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, OmokageError) else "it cannot be read"
        checks.append(Check("pictures", False, reason))
    checks.append(_readable(folder, certificate))
    return Verification(tuple(checks), found, certificate)


def _hash(content: bytes, certificate: Certificate) -> Check:
    same = hashlib.sha256(content).hexdigest() == (certificate.output or {}).get("sha256")
    return Check("bytes", same, "the file is the one certified" if same else "the file was changed after it was certified")


def _shape(written: pl.DataFrame, certificate: Certificate) -> Check:
    names = [column.name for column in certificate.columns]
    same = written.columns == names and len(written) == certificate.found.rows
    return Check(
        "rows and columns",
        same,
        f"{len(written)} rows, {len(written.columns)} columns"
        + ("" if same else f", but {certificate.found.rows} rows and {len(names)} columns were certified, or names differ"),
    )


def _counts(found: Found, certificate: Certificate, with_persons: bool) -> list[Check]:
    """Counted on the bytes: the promise, and the certificate's own figures."""
    checks = []
    if certificate.promise["kind"] == "k-anonymity":
        asked, counted = certificate.promise["k"], certificate.promise["counted"]
        if counted == "persons" and not with_persons:
            # rows are all the bytes can show; a class of at least k persons has at least k rows
            rows, whose = ("pictures", "whose face") if certificate.of_faces else ("rows", "whose row")
            checks.append(
                Check("k", found.k >= asked, f"every class has at least {found.k} {rows}, {asked} persons were promised")
            )
            checks.append(Check("persons", True, f"not counted: {whose} it is stands in the key alone (--key)"))
            return checks + _constraints(found, certificate)
        checks.append(Check("k", found.k >= asked, f"k = {found.k} found, {asked} promised, counted in {counted}"))
    same = found.sizes == certificate.found.sizes
    checks.append(Check("class sizes", same, f"{found.groups} classes" + ("" if same else ", not the sizes certified")))
    return checks + _constraints(found, certificate)


def _constraints(found: Found, certificate: Certificate) -> list[Check]:
    checks = []
    for now, then in zip(found.constraints, certificate.found.constraints, strict=True):
        close = now["name"] == "t-closeness"
        holds = now["found"] <= now["asked"] + 1e-9 if close else now["found"] >= now["asked"] - 1e-9
        same = bool(np.isclose(now["found"], then["found"]))
        detail = f"{now['found']:.4g} found, {now['asked']:g} promised" + ("" if same else f", {then['found']:.4g} certified")
        checks.append(Check(f"{now['name']} of {now['column']}", holds and same, detail))
    return checks


def _readable(folder: Path, certificate: Certificate) -> Check:
    try:
        same = (folder / READABLE).read_text(encoding="utf-8") == certificate.to_markdown()
    except (OSError, UnicodeDecodeError):
        same = False
    return Check(READABLE, same, "says the same as the certificate" if same else "does not say what the certificate says")


def _persons(path: Path, certificate: Certificate, rows: int) -> Labels | None:
    """Whose row each released row is, from the key."""
    try:
        key = json.loads(path.read_text(encoding="utf-8"))
        if key["format"] != KEY_FORMAT or key["release"] != (certificate.output or {})["sha256"]:
            raise VerificationError(f"{path.name} is not the key of this release")
        if "persons" not in key:
            return None
        place, person = np.array(key["rows"], dtype=np.int64), np.array(key["persons"], dtype=np.int64)
        if len(place) != rows or len(person) != rows or not (np.sort(place) == np.arange(rows)).all():
            raise VerificationError(f"{path.name} does not link every row once")
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError):
        raise VerificationError(f"{path.name} cannot be read as a key") from None
    by_row = np.empty(rows, dtype=np.int64)
    by_row[place] = person
    return by_row
