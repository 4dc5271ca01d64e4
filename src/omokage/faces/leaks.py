"""What written pictures say around their pixels: names in their bytes, and the order of inodes and change times."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..base.search import Strings
from ..release.certificate import Around
from ..release.leaks import followed, ranks, require_absent

_WINDOW = 8  # bytes of a name that is searched in compressed pictures, where six appear by chance


def inspect_pictures(
    folder: Path, names: Sequence[str], contents: Iterable[bytes], searched: int, hidden: Iterable[str]
) -> Around:
    """Look at written pictures as an attacker would.

    ``names`` are the files in the order of the photos they were made from, ``contents`` the different ones of their contents,
    ``searched`` the bytes of all.
    """
    strings = Strings(text.encode("utf-8", "replace") for text in set(hidden) if len(text.encode("utf-8", "replace")) >= _WINDOW)
    for content in contents:
        require_absent(strings, "a picture's bytes", content)
    states = [os.lstat(folder / name) for name in names]
    orders = []
    for what, values in (("inodes", [s.st_ino for s in states]), ("change times", [s.st_ctime_ns for s in states])):
        if followed(ranks(values), what):
            orders.append(what)
    return Around(len(strings), searched, tuple(orders))  # type: ignore[arg-type]
