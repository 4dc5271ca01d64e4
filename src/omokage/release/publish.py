"""A release: what leaves, its certificate, and the link to the originals, which leaves only if asked for.

It is written to a stage beside its place, read back, counted and searched there, and moved as a whole; an earlier release stays
untouched until then. Tables and faces are published by the same :func:`publish`.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..base.files import claimed, publish_folder
from ..base.matrix import Labels
from ..base.plain import plain
from ..errors import OutputError, VerificationError
from ..method.constraints import Constraint
from ..tables.table import Table
from ..tables.write import data_name, read_written, write_frame
from .certificate import CERTIFICATE, READABLE, SIGNATURE, Certificate, File, KAnonymity, versions
from .counting import recount
from .key import Faces, Key, KeyTransaction, fingerprint_of, new_fingerprint_key, require_key_place, written_key
from .leaks import Hidden, files_of, inspect_table
from .text import readable


@dataclass(frozen=True)
class Release:
    """What may leave, with its certificate.

    Attributes
    ----------
    data : array or frame, of the type that was given in, with its rows shuffled
    certificate : Certificate
        Counted in memory; :meth:`write` counts again on the bytes.
    key : Key
        The secret link to the originals; never written unless :meth:`write` is given a place for it.
    """

    data: Any
    certificate: Certificate
    key: Key = field(repr=False)
    table: Table = field(repr=False)  # how to write it; its frame is the released one
    constraints: tuple[Constraint, ...] = field(default=(), repr=False)
    synthesis: Any = field(default=None, repr=False)  # the fitted synthesis map; never written
    group_map: Any = field(default=None, repr=False)  # the fitted group map; never written
    hidden: Hidden = field(default=Hidden(pl.DataFrame()), repr=False)  # searched in what is written; never written

    @property
    def through_map(self) -> Callable[[Any], Any] | None:
        """Data sent through the synthesis map and back, as an analyst who knows the map can do; None without a map."""
        if self.synthesis is None:
            return None
        return lambda x: self.synthesis.inverse_transform(self.synthesis.transform(x))

    def write(
        self, path: str | Path, *, key: str | Path | None = None, sign: str | Path | None = None, overwrite: bool = False
    ) -> Path:
        """Write data and certificate into the folder ``path``, whole or not at all.

        Parameters
        ----------
        key : where to write the secret link too; outside of ``path``
        sign : file of a private key (``omokage keygen``) to sign the certificate with
        overwrite : replace an earlier release, and its key, if nothing else lies in its folder
        """
        return publish(
            Path(path), self._fill, key=None if key is None else Path(key), sign=None if sign is None else Path(sign),
            overwrite=overwrite,
        )  # fmt: skip

    def _fill(self, stage: Path) -> Filled:
        """Write the table, read it back, count it, and look at its bytes as an attacker."""
        file = stage / data_name(self.table)
        write_frame(self.table.frame, file, self.table)
        written = read_written(file)
        certificate = self.certificate
        found = recount(written, certificate.columns, self.constraints, self.key.persons_by_row())
        around = inspect_table(
            file, written, certificate.columns, self.hidden, self.key.rows, certificate.k or 2, certificate.notes
        )
        return Filled(replace(certificate, found=found, around=around), self.key)


@dataclass(frozen=True)
class Filled:
    """What a medium has written into a stage: its certificate, as far as it knows it, and the link to the originals."""

    certificate: Certificate
    key: Key
    faces: Faces | None = None


def publish(
    target: Path,
    fill: Callable[[Path], Filled],
    *,
    key: Path | None = None,
    sign: Path | None = None,
    overwrite: bool = False,
) -> Path:
    """Let ``fill`` write into a stage, certify what is there, and put it in the target's place in one step.

    Whatever fails, an earlier release and its key stay as they were and nothing half-written is left.
    """
    require_places(target, key, overwrite)
    signer = _signer(sign)
    transaction = None if key is None else KeyTransaction(key)

    def whole(stage: Path) -> None:
        filled = fill(stage)
        fingerprint_key = None if transaction is None or filled.key.source is None else new_fingerprint_key()
        content = _certify(stage, filled, fingerprint_key).encode()
        (stage / CERTIFICATE).write_bytes(content)
        (stage / READABLE).write_text(readable(Certificate.from_json(content)), encoding="utf-8", newline="\n")
        if signer is not None:
            (stage / SIGNATURE).write_bytes(signer(content))
        require_nothing_else(stage)
        if transaction is not None:
            written = written_key(filled.key, hashlib.sha256(content).hexdigest(), fingerprint_key, filled.faces)
            transaction.begin(written, _standing(target))

    if transaction is None or key is None:
        return publish_folder(target, whole, overwrite=overwrite, ours=require_nothing_else)
    with claimed(key):
        return publish_folder(
            target, whole, overwrite=overwrite, ours=require_nothing_else,
            before=transaction.before, after=transaction.after, undo=transaction.undo,
        )  # fmt: skip


def _certify(stage: Path, filled: Filled, fingerprint_key: str | None) -> str:
    """The certificate of what lies in the stage, with every file's hash."""
    source = filled.certificate.source
    if fingerprint_key is not None and filled.key.source is not None:
        source = replace(source, fingerprint=fingerprint_of(fingerprint_key, filled.key.source))
    files = tuple(File.of(name, (stage / name).read_bytes()) for name, state in files_of(stage) if stat.S_ISREG(state.st_mode))
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


def shuffled(order: Labels, seed: int) -> Labels:
    """The order, shuffled. It starts from released values alone, so the original row order cannot be recovered with the seed."""
    shuffled: Labels = np.random.default_rng([seed, 0x6F6D6F6B]).permutation(order)
    return shuffled
