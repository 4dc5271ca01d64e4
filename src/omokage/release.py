"""A release: what leaves, its certificate, and the link to the originals, which leaves only if asked for.

It is written to a temporary folder beside its place, read back and counted there, and moved as a whole. An earlier
release stays untouched until then, and its place is taken in one step.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .certificate import Certificate, Column, Found, classes_of_frame, count, sensitive_columns, versions
from .errors import OutputError, VerificationError
from .grouping.constraints import Constraint
from .grouping.matrix import Labels
from .tables.table import Table
from .tables.write import data_name, read_written, reason_of, write_frame

CERTIFICATE, READABLE = "certificate.json", "CERTIFICATE.md"
KEY_FORMAT = "omokage-key/1"


@dataclass(frozen=True)
class Key:
    """The link between input and release: secret.

    groups : the group of each input row (−1 where there are no groups). rows : its row in the release. persons : whose
    row it is, as a number.
    """

    groups: Labels
    rows: Labels
    persons: Labels | None = None

    def persons_by_row(self) -> Labels | None:
        """Whose row each released row is."""
        if self.persons is None:
            return None
        by_row = np.empty_like(self.persons)
        by_row[self.rows] = self.persons
        return by_row


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

    @property
    def through_map(self) -> Callable[[Any], Any] | None:
        """Data sent through the synthesis map and back, as an analyst who knows the map can do; None without a map."""
        if self.synthesis is None:
            return None
        return lambda x: self.synthesis.inverse_transform(self.synthesis.transform(x))

    def write(self, path: str | Path, *, key: str | Path | None = None, overwrite: bool = False) -> Path:
        """Write data and certificate into the folder ``path``, whole or not at all; the key, if asked, elsewhere."""
        return publish(Path(path), None if key is None else Path(key), overwrite, self._fill)

    def _fill(self, stage: Path) -> dict[str, Any]:
        """Write the files, read them back, and certify what is there; gives what belongs into the key."""
        file = stage / data_name(self.table)
        write_frame(self.table.frame, file, self.table)
        written = read_written(file)
        found = recount(written, self.certificate.columns, self.constraints, self.key.persons_by_row())
        certificate = replace(self.certificate, found=found)
        require_promise(certificate)
        content = file.read_bytes()
        output: dict[str, Any] = {"file": file.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        write_certificate(replace(certificate, output=output, versions=versions()), stage)
        return key_content(self.key, output["sha256"])


def write_certificate(certificate: Certificate, stage: Path) -> None:
    """For machines and to show."""
    (stage / CERTIFICATE).write_text(certificate.to_json(), encoding="utf-8")
    (stage / READABLE).write_text(certificate.to_markdown(), encoding="utf-8")


def key_content(key: Key, release: str) -> dict[str, Any]:
    """What a key's file holds; ``release`` is the hash of what it belongs to."""
    content: dict[str, Any] = {
        "format": KEY_FORMAT,
        "release": release,
        "groups": key.groups.tolist(),
        "rows": key.rows.tolist(),
    }
    if key.persons is not None:
        content["persons"] = key.persons.tolist()
    return content


def publish(target: Path, key: Path | None, overwrite: bool, fill: Callable[[Path], dict[str, Any]]) -> Path:
    """Let ``fill`` write into a folder beside the target, and put that in the target's place in one step.

    ``fill`` returns the content of the key, which is written only if a place is given. Whatever fails, an earlier release
    stays as it was and nothing half-written is left.
    """
    require_places(target, key, overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_abandoned(target)
        stage = Path(tempfile.mkdtemp(prefix=_stage_prefix(target) + f"{os.getpid()}-", dir=target.parent))
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {reason_of(error)}") from None
    try:
        content = fill(stage)
        for each in stage.rglob("*"):
            if each.is_file():
                with each.open("rb") as opened:
                    os.fsync(opened.fileno())
        stage.chmod(0o755)
        key_stage = None if key is None else _stage_key(key, content)
        try:
            _move(stage, target)
            if key_stage is not None and key is not None:
                key_stage.replace(key)
        finally:
            if key_stage is not None:
                key_stage.unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{target} could not be written: {reason_of(error)}") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return target


def _stage_key(path: Path, content: dict[str, Any]) -> Path:
    """The key in a file beside its place, to be moved there once the release is in its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".omokage-", dir=path.parent)  # readable by the owner alone
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def shuffled(order: Labels, seed: int) -> Labels:
    """The order, shuffled. As it starts from released values alone, knowing the seed does not give the input's order."""
    shuffled: Labels = np.random.default_rng([seed, 0x6F6D6F6B]).permutation(order)
    return shuffled


def key_for(labels: Labels | None, order: Labels, persons: Labels | None) -> Key:
    """The key of rows released in ``order``; without ``labels`` there are no groups."""
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    return Key(np.full(len(order), -1) if labels is None else labels, rows, persons)


def recount(written: pl.DataFrame, columns: Sequence[Column], constraints: Sequence[Constraint], persons: Labels | None) -> Found:
    """Count a written frame's classes and constraints."""
    quasi = [column.name for column in columns if column.role == "quasi"]
    sensitive = sensitive_columns(written, columns) if constraints else []
    return count(classes_of_frame(written, quasi), constraints, sensitive, persons)


def require_promise(certificate: Certificate) -> None:
    """Refuse a certificate whose findings fall short of its promise."""
    if certificate.promise["kind"] == "noise":
        return
    asked, found = certificate.promise["k"], certificate.found
    if found.k < asked:
        raise VerificationError(f"k = {asked} was promised, but a class of {found.k} was found: nothing was released")
    for entry in found.constraints:
        close = entry["name"] == "t-closeness"
        if (entry["found"] > entry["asked"] + 1e-9) if close else (entry["found"] < entry["asked"] - 1e-9):
            raise VerificationError(
                f"{entry['name']} of {entry['asked']:g} was promised, but {entry['found']:.4g} was found: nothing was released"
            )


def require_places(target: Path, key: Path | None, overwrite: bool) -> None:
    """Refuse places that must not be written to, before any work is done."""
    _require_free(target, overwrite)
    if key is not None:
        _require_key_place(key, target, overwrite)


def _require_free(target: Path, overwrite: bool) -> None:
    """An earlier release may be replaced if asked; anything else that is there may not."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target.is_dir() and (target / CERTIFICATE).is_file()):
        raise OutputError(f"{target} exists and is not a release: choose another place")
    if not overwrite:
        raise OutputError(f"{target} holds an earlier release: give another place, or --overwrite")


def _require_key_place(key: Path, target: Path, overwrite: bool) -> None:
    if target.resolve() in key.resolve().parents:
        raise OutputError("the key undoes the release and must not lie in its folder: give it a place of its own")
    if key.exists() and not overwrite:
        raise OutputError(f"{key} exists: give the key another place, or --overwrite")


def _stage_prefix(target: Path) -> str:
    return f".{target.resolve().name}.omokage-"


def _clear_abandoned(target: Path) -> None:
    """Remove what a killed process has left beside the target."""
    for left in target.parent.glob(_stage_prefix(target) + "*"):
        number = left.name.removeprefix(_stage_prefix(target)).split("-")[0]
        if number.isdigit() and not _alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _move(stage: Path, target: Path) -> None:
    """Put the stage in the target's place in one step."""
    if not target.exists() or not any(target.iterdir()):
        stage.replace(target)
    elif not _exchange(stage, target):
        old = stage.with_name(stage.name + "-old")
        target.replace(old)
        stage.replace(target)
        shutil.rmtree(old, ignore_errors=True)
    handle = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(a: Path, b: Path) -> bool:
    """Exchange two folders at once where the system can (Linux); the stage then holds the old one."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    at_fdcwd, exchange = -100, 2
    return bool(call(at_fdcwd, os.fsencode(a), at_fdcwd, os.fsencode(b), exchange) == 0)
