"""A private folder for intermediate files that hold originals; what killed runs left of theirs is removed by the next."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import OutputError
from .claims import claimed, places_of_stages

_NAME = "omokage-scratch-"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in the system's place for temporary files, readable by its owner alone, for as long as the block runs."""
    place = Path(tempfile.gettempdir())
    for left in places_of_stages(place, f"{_NAME}*"):
        with suppress(OutputError), claimed(left):  # refused while its run is alive, and if another user made it
            pass
    with claimed(place / f"{_NAME}{secrets.token_hex(8)}") as claim:
        claim.new.mkdir(mode=0o700)
        yield claim.new
