"""A folder of faces released so that an interrupted run can resume: its work is kept beside the output until that is written."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

from ..base.files import claimed, write_whole
from ..base.progress import Progress, silent
from ..base.seeds import seed_from
from ..errors import OutputError
from ..release.certificate import Certificate
from ..release.publish import require_places
from .folder import FaceFolder
from .survey import LeftOut
from .work_folder import opened, remove, work_of


def release_folder(
    anonymizer: Any,
    photos: Path,
    output: Path,
    *,
    key: Path | None = None,
    sign: Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
    **about: Any,
) -> tuple[Certificate, tuple[LeftOut, ...]]:
    """``anonymizer.release(FaceFolder(photos, **about)).write(output)``, resumable.

    What was done before a run was interrupted is kept in a hidden folder beside ``output`` and not done again; it is removed
    when the release is written. Gives the certificate as it was written, and what could not be taken.
    """
    work = work_of(output)
    medium = FaceFolder(photos, work=work, **about)
    with claimed(output):
        require_places(output, key, overwrite)
        medium.check()
        _require_elsewhere(photos, output)
        with opened(work):
            seeded = copy(anonymizer)
            seeded.random_state = _settled(anonymizer.random_state, work)
            release = seeded.release(medium, progress=progress)
        certificate = release.publish(output, key=key, sign=sign, overwrite=overwrite)
        try:
            remove(work)
        except OutputError as error:
            raise OutputError(f"the release is written, but {error}") from None
    return certificate, tuple(LeftOut(*each) for each in release.key.faces.left_out)


def _require_elsewhere(folder: Path, output: Path) -> None:
    here, there = folder.resolve(), output.resolve()
    if there == here or here in there.parents:
        raise OutputError("the output must not lie in the folder of the photos: give another place")


def _settled(seed: int | None, work: Path) -> int:
    """The seed of this run, kept so that a resumed run makes the same groups."""
    kept = work / "seed"
    if seed is None and kept.is_file():
        text = kept.read_text(encoding="ascii", errors="replace")
        if text.isdigit():
            return int(text)
    chosen = seed_from(seed)
    write_whole(kept, str(chosen).encode(), private=True)
    return chosen
