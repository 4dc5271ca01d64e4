"""Publishing: a release is written to a stage beside its place, certified there, and moved as a whole.

The medium writes into the stage, reads back what it wrote, counts and searches it; an earlier release stays untouched until the
new one takes its place. All media are published here.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..base.files import claimed, publish_folder
from ..base.plain import plain
from ..errors import OutputError, VerificationError
from .certificate import CERTIFICATE, READABLE, SIGNATURE, Certificate, KAnonymity, versions
from .contents import Contents
from .key import KeyTransaction, fingerprint_of, new_fingerprint_key, require_key_place, written_key
from .leaks import files_of
from .medium import Filled
from .text import readable


def publish(
    target: Path,
    fill: Callable[[Path], Filled],
    *,
    key: Path | None = None,
    sign: Path | None = None,
    overwrite: bool = False,
) -> Certificate:
    """Let ``fill`` write into a stage, certify what is there, and put it in the target's place in one step.

    Gives the certificate as it was written. Whatever fails, an earlier release and its key stay as they were and nothing
    half-written is left.
    """
    require_places(target, key, overwrite)
    signer = _signer(sign)
    transaction = None if key is None else KeyTransaction(key)
    published: list[Certificate] = []

    def whole(stage: Path) -> None:
        filled = fill(stage)
        fingerprint_key = None if transaction is None or filled.key.source is None else new_fingerprint_key()
        content = _certify(stage, filled, fingerprint_key).encode()
        (stage / CERTIFICATE).write_bytes(content)
        published[:] = [Certificate.from_json(content)]
        (stage / READABLE).write_text(readable(published[0]), encoding="utf-8")
        if signer is not None:
            (stage / SIGNATURE).write_bytes(signer(content))
        require_nothing_else(stage)
        if transaction is not None:
            written = written_key(filled.key, hashlib.sha256(content).hexdigest(), fingerprint_key)
            transaction.begin(written, _standing(target))

    if transaction is None or key is None:
        publish_folder(target, whole, overwrite=overwrite, ours=require_nothing_else)
        return published[0]
    with claimed(key):
        publish_folder(
            target, whole, overwrite=overwrite, ours=require_nothing_else,
            before=transaction.before, after=transaction.after, undo=transaction.undo,
        )  # fmt: skip
    return published[0]


def _certify(stage: Path, filled: Filled, fingerprint_key: str | None) -> str:
    """The certificate of what lies in the stage, with every file's hash."""
    source = filled.certificate.source
    if fingerprint_key is not None and filled.key.source is not None:
        source = replace(source, fingerprint=fingerprint_of(fingerprint_key, filled.key.source))
    contents = filled.contents or Contents(stage)
    files = tuple(contents.file(name) for name, state in files_of(stage) if stat.S_ISREG(state.st_mode))
    certificate = replace(filled.certificate, source=source, files=files, versions=dict(versions()))
    require_promise(certificate)
    text = certificate.to_json()
    if Certificate.from_json(text) != certificate:
        raise VerificationError("the certificate cannot be written as it is meant: nothing was released")
    return text


def _signer(path: Path | None) -> Callable[[bytes], bytes] | None:
    if path is None:
        return None
    from .signing import load_signer

    return load_signer(path).sign


def _standing(target: Path) -> str | None:
    """The SHA-256 of the certificate that is in the target's place now."""
    try:
        return Certificate.read(target)[1]
    except VerificationError:
        return None


def require_promise(certificate: Certificate) -> None:
    """Refuse a certificate whose findings fall short of its promise."""
    if not isinstance(certificate.promise, KAnonymity):
        return
    asked, found = certificate.promise.k, certificate.found
    if found.k < asked:
        raise VerificationError(f"k = {asked} was promised, but a class of {found.k} was found: nothing was released")
    for rule in found.constraints:
        if not rule.holds:
            raise VerificationError(
                f"{rule.name} of {rule.asked:g} was promised, but {rule.found:.4g} was found: nothing was released"
            )


def require_places(target: Path, key: Path | None, overwrite: bool) -> None:
    """Refuse places that must not be written to, before any work is done."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise OutputError(f"{target} exists and is not a release: choose another place")
    if target.is_dir() and any(target.iterdir()):
        require_nothing_else(target)
        if not overwrite:
            raise OutputError(f"{target} holds an earlier release: give another place, or --overwrite")
    if key is not None:
        require_key_place(key, target, overwrite)


def require_nothing_else(folder: Path) -> None:
    """Refuse a folder that is not a release, or in which lies anything that its certificate does not list."""
    try:
        certificate, _ = Certificate.read(folder)
    except VerificationError:
        raise OutputError(f"{folder} exists and is not a release: choose another place") from None
    others = strangers(folder, certificate)
    if others:
        raise OutputError(
            f"{folder} holds {len(others)} files that its certificate does not list (the first is {plain(others[0])!r}): "
            "move them away, or choose another place"
        )


def strangers(folder: Path, certificate: Certificate) -> list[str]:
    """Everything in a release's folder that its certificate does not list; also links, pipes and empty folders."""
    listed = {file.path for file in certificate.files} | {CERTIFICATE, READABLE, SIGNATURE}
    folders = {path.split("/")[0] for path in listed if "/" in path}
    return [
        name
        for name, state in files_of(folder)
        if not (name in listed and stat.S_ISREG(state.st_mode)) and not (name in folders and stat.S_ISDIR(state.st_mode))
    ]
