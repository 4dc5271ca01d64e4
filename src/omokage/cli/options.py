"""What commands declare: options with a choice of values, options that name parts of the method, and an example.

What an option offers is declared once, next to the option: ``--help`` lists it, and a wrong value is one sentence and exit
code 2.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import typer

from ..base.registry import Registry
from ..errors import InputError

OWN = "or your own as package.module:Class"
JOINED = "; join several by +"


def one_of(names: Iterable[str] | dict[str, str], help: str) -> dict[str, Any]:
    """What ``typer.Option`` needs for an option that takes one of these names; for a list, several with commas between them.

    Examples
    --------
    >>> one_of(("png", "jpg", "webp"), "File format")["help"]
    'File format: png, jpg or webp.'
    >>> one_of({"hide": "never shown", "show": "shown"}, "Rare values")["help"]
    'Rare values: hide (never shown) or show (shown).'
    """
    known = tuple(names)
    told = [f"{name} ({text})" for name, text in names.items()] if isinstance(names, dict) else known

    def check(param: typer.CallbackParam, value: Any) -> Any:
        given = [name.strip() for text in value for name in text.split(",")] if isinstance(value, list | tuple) else [value]
        for name in given:
            if name is not None and name not in known:
                raise InputError(f"{param.opts[0]} does not take {name!r}: choose {listed(known)}")
        return value

    return {"help": f"{help}: {listed(told)}.", "callback": check, "metavar": "CHOICE"}


def part_of(registry: Registry, help: str, more: str = "", can: str = "") -> dict[str, Any]:
    """What ``typer.Option`` needs for an option that names parts of one kind, or classes of the user's own.

    ``can`` leaves only those with that ability in the help.
    """
    offered = registry.able(can) if can else registry.entries
    choices = re.sub(r",(?! )", ", ", ", ".join(each.usage for each in offered))  # so that a narrow terminal can break the line
    return {
        "help": f"{help}: {choices}, {OWN}{more}.",
        "callback": importing(registry),
        "metavar": "MAP" if "map" in registry.kind else "NAME",
    }


def example(command: str) -> str:
    """The end of a help page; the tests parse every example, and run those that are cheap."""
    return f"Example:\n{command}"


def listed(names: Iterable[str]) -> str:
    """Names in running text.

    Examples
    --------
    >>> listed(("hide", "show")), listed(["a"])
    ('hide or show', 'a')
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def importing(registry: Registry) -> Callable[[Any], Any]:
    """Let modules of the current folder be imported, if a class of the user's own is asked for and only then.

    The folder comes last on Python's path, so that no file in it is taken for a module that is installed.
    """

    def allow(value: Any) -> Any:
        texts = value if isinstance(value, list | tuple) else [value or ""]
        if any(registry.is_own(part) for text in texts for part in re.split(r"[+/,]", text)) and os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        return value

    return allow
