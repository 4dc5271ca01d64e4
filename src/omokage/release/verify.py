"""Is a written release what its certificate says? Everything is read again and counted from the bytes.

Each check passed, failed, or could not be made; what could not be made is never taken for passed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ..base.plain import plain
from ..base.reading import read_regular
from ..errors import InputError, OmokageError, VerificationError
from .certificate import CERTIFICATE, MOST_BYTES, READABLE, SIGNATURE, Certificate, Found, KAnonymity
from .contents import Contents
from .key import read_key
from .medium import MEDIA
from .publish import strangers
from .signing import LENGTH, is_signed, load_public
from .text import readable

State = Literal["passed", "failed", "unchecked", "note"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    detail: str

    @property
    def passed(self) -> bool:
        return self.state in ("passed", "note")


@dataclass(frozen=True)
class Verification:
    """All checks of a release, and what was counted on its bytes."""

    checks: tuple[Check, ...]
    found: Found | None
    certificate: Certificate

    @property
    def passed(self) -> bool:
        """Whether everything was checked and holds."""
        return all(check.passed for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0: it holds. 1: it does not. 2: it could not be checked."""
        states = {check.state for check in self.checks}
        return 1 if "failed" in states else 2 if "unchecked" in states else 0


def verify(path: str | Path, *, key: str | Path | None = None, signer: str | Path | None = None) -> Verification:
    """Check the release in the folder ``path``.

    Parameters
    ----------
    key : the secret key; with it, persons are counted too
    signer : file of the public key that the certificate must be signed with

    Raises
    ------
    VerificationError, InputError
        If there is nothing to check: no certificate, or one that is damaged; a key or a public key that cannot be read. A
        release that fails a check is returned, with ``passed`` false.
    """
    folder = Path(path)
    certificate, digest = Certificate.read(folder)
    persons = None if key is None else read_key(Path(key), digest).persons_by_row()
    listed, contents = _listed(folder, certificate), Contents(folder)
    checks = [_signature(folder, None if signer is None else Path(signer)), listed]
    found: list[Found] = []

    def counted() -> list[Check]:
        found.append(MEDIA[certificate.medium].count(contents, certificate, _fitting(persons, certificate.found.rows)))
        return _counts(found[0], certificate, persons is not None)

    if listed.passed:
        data = _guarded("data", counted)
    else:
        data = [Check("data", "failed", "not counted: the files are not those listed")]
    checks += [_bytes(contents, certificate), *data, _readable(folder, certificate)]
    return Verification(tuple(checks), found[0] if found else None, certificate)


def _guarded(name: str, check: Callable[[], list[Check]]) -> list[Check]:
    """Whatever a damaged file makes its reader raise, it is a failed check."""
    try:
        return check()
    except OmokageError as error:
        return [Check(name, "failed", str(error))]
    except (MemoryError, RecursionError):
        return [Check(name, "unchecked", "the memory is not enough to read it")]
    except Exception as error:  # noqa: BLE001 - readers of foreign files raise many kinds
        return [Check(name, "failed", f"it cannot be read ({type(error).__name__})")]


def _signature(folder: Path, signer: Path | None) -> Check:
    there = os.path.lexists(folder / SIGNATURE)
    if signer is None:
        told = (
            "signed, but by whom was not checked (--signer)" if there else "not signed: the hashes do not show who certified it"
        )
        return Check("signature", "note", told)
    public = load_public(signer)
    if not there:
        return Check("signature", "failed", "the certificate is not signed")
    try:
        signature, content = read_regular(folder / SIGNATURE, LENGTH), read_regular(folder / CERTIFICATE, MOST_BYTES)
    except InputError as error:
        return Check("signature", "failed", str(error))
    signed = is_signed(public, signature, content)
    return Check(
        "signature", "passed" if signed else "failed", f"{'made' if signed else 'NOT made'} by the owner of {plain(signer.name)}"
    )


def _listed(folder: Path, certificate: Certificate) -> Check:
    try:
        others = strangers(folder, certificate)
    except OSError:
        return Check("files", "failed", "the folder cannot be listed")
    if others:
        shown = ", ".join(repr(plain(name, 60)) for name in others[:3])
        return Check("files", "failed", f"{len(others)} in the folder that the certificate does not list: {shown}")
    there = [file for file in certificate.files if (folder / file.path).is_file()]  # no link or pipe, or it were a stranger
    if len(there) < len(certificate.files) or not there:
        return Check("files", "failed", f"{len(certificate.files) - len(there)} of {len(certificate.files)} listed are not there")
    return Check("files", "passed", f"{len(certificate.files)} listed, and nothing else in the folder")


def _bytes(contents: Contents, certificate: Certificate) -> Check:
    """Every listed file's size and hash; those that were counted have been read already."""
    wrong = []
    for file in certificate.files:
        try:
            same = contents.file(file.path) == file
        except InputError:
            same = False
        if not same:
            wrong.append(file.path)
    if wrong:
        return Check("bytes", "failed", f"{len(wrong)} files were changed or are missing: {plain(wrong[0])}")
    return Check("bytes", "passed", "every file is the one certified")


def _fitting(persons: np.ndarray | None, records: int) -> np.ndarray | None:
    if persons is not None and len(persons) != records:
        raise VerificationError(f"the key links {len(persons)} records, but the release has {records}")
    return persons


def _counts(found: Found, certificate: Certificate, with_persons: bool) -> list[Check]:
    """Counted on the bytes: the promise, and the certificate's own figures."""
    checks = []
    what = certificate.method.released
    if isinstance(certificate.promise, KAnonymity):
        asked, counted = certificate.promise.k, certificate.promise.counted
        if counted == "persons" and not with_persons:
            # rows are all the bytes can show; a class of at least k persons has at least k rows
            checks.append(
                _check("k", found.k >= asked, f"every class has at least {found.k} {what}; {asked} persons were promised")
            )
            checks.append(Check("persons", "unchecked", "not counted: whose record it is stands in the key alone (--key)"))
            return checks + _constraints(found, certificate)
        checks.append(_check("k", found.k >= asked, f"k = {found.k} found, {asked} promised, counted in {counted}"))
        if counted == "persons":
            checks.append(_check("persons", found.persons == certificate.found.persons, f"{found.persons} persons"))
    same = found.sizes == certificate.found.sizes and (found.k, found.rows, found.groups) == (
        certificate.found.k, certificate.found.rows, certificate.found.groups,
    )  # fmt: skip
    checks.append(_check("class sizes", same, f"{found.groups} classes" + ("" if same else ", not the sizes certified")))
    return checks + _constraints(found, certificate)


def _constraints(found: Found, certificate: Certificate) -> list[Check]:
    """The rules counted again; a certificate that lists a rule for fewer columns than are sensitive is not what we write."""
    if [(r.name, r.column) for r in found.constraints] != [(r.name, r.column) for r in certificate.found.constraints]:
        return [Check("constraints", "failed", "the certificate does not name every sensitive column")]
    checks = []
    for now, then in zip(found.constraints, certificate.found.constraints, strict=True):
        same = bool(np.isclose(now.found, then.found))
        detail = f"{now.found:.4g} found, {now.asked:g} promised" + ("" if same else f", {then.found:.4g} certified")
        checks.append(_check(f"{now.name} of {plain(now.column)}", now.holds and same, detail))
    return checks


def _check(name: str, passed: bool, detail: str) -> Check:
    return Check(name, "passed" if passed else "failed", detail)


def _readable(folder: Path, certificate: Certificate) -> Check:
    try:
        same = read_regular(folder / READABLE, MOST_BYTES) == readable(certificate).encode()
    except InputError:
        same = False
    return _check(READABLE, same, "says the same as the certificate" if same else "does not say what the certificate says")
