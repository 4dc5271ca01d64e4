"""What the commands print: progress on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Say what is being done: a live line on a terminal, a line per stage elsewhere."""
    begun = perf_counter()
    if err.is_terminal:
        with err.status("starting") as status:
            yield lambda what: status.update(f"{what} …  {perf_counter() - begun:.0f} s")
    else:
        yield lambda what: err.print(f"{perf_counter() - begun:6.1f} s  {what}")


def names(text: list[str] | None) -> tuple[str, ...]:
    """Column names given once with commas or several times.

    Examples
    --------
    >>> names(["zip,age", "gender"])
    ('zip', 'age', 'gender')
    """
    return tuple(part.strip() for entry in text or [] for part in entry.split(",") if part.strip())


def pairs(text: list[str] | None, option: str) -> dict[str, str]:
    """``column=value`` entries.

    Examples
    --------
    >>> pairs(["zip=prefix,age=range"], "--unify")
    {'zip': 'prefix', 'age': 'range'}
    """
    from ..errors import InputError

    found = {}
    for part in names(text):
        name, equals, value = part.partition("=")
        if not (name and equals and value):
            raise InputError(f"{option} takes COLUMN=VALUE, but one entry is not of that form")
        found[name] = value
    return found
