"""The picture of a group photo and the report beside it: two files that are written as one output.

The report names the SHA-256 of its picture. An earlier picture is ours to replace only if the report beside it names it.

- A new picture: the report is written first, then the picture. Killed between the two, a run leaves a report without a
  picture, which the next run replaces.
- In place of an earlier picture: first a report that names the new picture and the one it replaces, then the picture, then
  the report with the new picture alone. Killed anywhere, a run leaves the old or the new picture, and a report that names it:
  the next run may replace both.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..base.files import claimed, require_file, write_new, write_whole
from ..errors import PhotoError
from .find import Face
from .group_photo import PhotoRelease
from .image import SUFFIXES, Picture, encode_picture

FORMAT = "omokage-photo/2"


def report_of(output: Path) -> Path:
    """Where the report of a picture lies."""
    return output.with_name(output.name + ".json")


def require_photo_place(output: Path, overwrite: bool) -> Path:
    """Refuse a place that must not be written to, before any work is done; gives the place of the report."""
    if output.suffix.lower() not in SUFFIXES:
        raise PhotoError(f"pictures are written as .png, .jpg, .webp or .tif, not as {output.suffix!r}")
    report = report_of(output)
    require_file(output, overwrite=overwrite, ours=lambda content: _digest(content) in _named(report))
    require_file(report, overwrite=True, ours=_is_report)
    return report


def write_photo(release: PhotoRelease, output: Path, overwrite: bool = False) -> Path:
    """The picture, without EXIF, and beside it what was promised and measured; gives the place of the report."""
    return _write(release.picture, release.to_dict(), output, overwrite)


def write_preview(picture: Picture, faces: list[Face], output: Path, overwrite: bool = False) -> Path:
    """A picture with numbered faces, and beside it what can become of each."""
    told = [{"number": number, "trouble": face.trouble} for number, face in enumerate(faces, 1)]
    return _write(picture, {"preview": "not anonymized", "faces": told}, output, overwrite)


def _write(picture: Picture, content: dict[str, Any], output: Path, overwrite: bool) -> Path:
    with claimed(output) as claim:
        report = require_photo_place(output, overwrite)
        encoded = encode_picture(picture, output.suffix)
        new = {"format": FORMAT, "sha256": _digest(encoded), **content}
        before = report.read_bytes() if report.exists() else None
        old = sorted(_named(report) - {new["sha256"]})  # also those that a killed run was replacing
        _write_report(report, {**new, "replaces": old} if old else new)
        try:
            write_new(output, encoded, overwrite=overwrite, ours=lambda existing: _digest(existing) in _named(report))
        except BaseException:
            if not claim.place.exists() or _digest(claim.place.read_bytes()) != new["sha256"]:
                _undo(report, before)
            raise
        if old:
            _write_report(report, new)
    return report


def _write_report(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_new(path, text.encode(), overwrite=True, ours=_is_report)


def _undo(report: Path, before: bytes | None) -> None:
    if before is None:
        report.unlink(missing_ok=True)
    else:
        write_whole(report, before)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(content: bytes) -> dict[str, Any]:
    """A report; empty if it is none."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def _is_report(content: bytes) -> bool:
    return bool(_read(content))


def _named(report: Path) -> set[str]:
    """The pictures that a report names: its own, and while that is written those that it replaces."""
    try:
        found = _read(report.read_bytes())
    except OSError:
        return set()
    replaced = found.get("replaces", [])
    return {str(found["sha256"]), *map(str, replaced if isinstance(replaced, list) else [])} if "sha256" in found else set()
