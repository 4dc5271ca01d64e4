"""What the commands print: progress on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Iterator
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
def shown() -> Iterator[Progress]:
    """Show what is being done: on a terminal a line that moves, with a bar where it can be counted; elsewhere a line as each
    stage begins, and as each that is counted ends."""
    begun = perf_counter()
    if not err.is_terminal:

        def line(stage: str, done: int = 0, total: int = 0, /) -> None:
            if done == total:
                err.print(f"{perf_counter() - begun:6.1f} s  {stage}" + (f": {done} of {total}" if total else ""))

        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TextColumn("{task.fields[rate]}"), TimeRemainingColumn())  # fmt: skip
    with Bars(*columns, console=err) as bars:
        tasks: dict[str, tuple[TaskID, float, int]] = {}
        uncounted: list[TaskID] = []

        def bar(stage: str, done: int = 0, total: int = 0, /) -> None:
            if stage not in tasks:
                while uncounted:  # a stage that cannot be counted ends when the next begins
                    bars.update(uncounted.pop(), total=1, completed=1)
                tasks[stage] = (bars.add_task(escape(plain(stage)), total=total or None, rate=""), perf_counter(), done)
                uncounted.extend([] if total else [tasks[stage][0]])
            task, since, at = tasks[stage]
            if total:
                speed = (done - at) / max(perf_counter() - since, 1e-9)
                bars.update(task, completed=done, total=total, rate=f"{speed:.1f} a second" if done > at else "")

        yield bar


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
