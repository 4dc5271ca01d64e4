"""What the commands print: progress on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from ..base.plain import plain
from ..base.progress import Progress

if TYPE_CHECKING:
    from rich.progress import TaskID


class _Plain(Console):
    """Prints text as it is: names from outside can neither steer the terminal nor be taken for markup."""

    def print(self, *objects: Any, **options: Any) -> None:
        shown = [plain(each) if isinstance(each, str) else each for each in objects]
        super().print(*shown, **{"markup": False, "emoji": False, **options})


out = _Plain(highlight=False, soft_wrap=True)
err = _Plain(stderr=True, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Something to be careful with."""
    out.print("note      ", style="yellow", end="")
    out.print(text)


@contextmanager
def stages() -> Iterator[Progress]:
    """Say what is being done: a live line on a terminal, a line per stage elsewhere."""
    begun = perf_counter()
    if err.is_terminal:
        with err.status("starting") as status:
            yield lambda what, done=0, total=0: status.update(escape(plain(f"{what} …  {perf_counter() - begun:.0f} s")))
    else:
        yield lambda what, done=0, total=0: err.print(f"{perf_counter() - begun:6.1f} s  {what}")


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """Show how far each stage is, how fast it goes and how long it will take; elsewhere a line as each stage ends."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    begun = perf_counter()
    if err.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
                   TimeRemainingColumn())  # fmt: skip
        with Bars(*columns, console=err) as shown:
            tasks: dict[str, tuple[TaskID, float, int]] = {}

            def show(stage: str, done: int, total: int) -> None:
                if stage not in tasks:
                    tasks[stage] = (shown.add_task(escape(plain(stage)), total=total, rate=""), perf_counter(), done)
                task, since, at = tasks[stage]
                speed = (done - at) / max(perf_counter() - since, 1e-9)
                shown.update(task, completed=done, total=total, rate=f"{speed:.1f} a second" if done > at else "")

            yield show
    else:
        yield (
            lambda stage, done, total: (
                err.print(f"{perf_counter() - begun:6.1f} s  {stage}: {done} of {total}") if done == total else None
            )
        )


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
