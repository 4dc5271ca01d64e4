"""One registry per kind of part: name, class, options, abilities, and one line of help.

Command line choices, error messages, the tables in the docs and the contract tests all read it. An entry names its class by
``module:Class`` and imports it when it is first used, so listing the parts stays cheap however heavy they are. Adding a part is
one file and one entry; a part of your own needs neither: ``package.module:Class`` stands wherever a name does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..errors import InputError, OmokageError


@dataclass(frozen=True)
class Entry:
    """A part that can be asked for by name.

    Attributes
    ----------
    name : what the command line and the certificate call it
    where : its class, ``module:Class``
    help : one line
    argument : the option that a bare value sets: ``pca:50``
    required : whether that value must be given
    words : options that a single word sets: ``mondrian:variance``
    options : options that may be set as ``option=value``
    can : what the part is able to do, where not all of its kind are ("synthesize", "cache" …)
    """

    name: str
    where: str
    help: str
    argument: str | None = None
    required: bool = False
    words: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    can: frozenset[str] = frozenset()

    def load(self) -> Any:
        """The class, imported now."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)

    @property
    def usage(self) -> str:
        """How it is written: ``pca:N``, ``mondrian[:variance,dims=N]``."""
        words = [*self.words, *(f"{option}=N" for option in self.options)]
        if self.argument is not None and self.required:
            return f"{self.name}:N"
        return f"{self.name}[:{','.join(words)}]" if words else self.name


class Registry(Mapping[str, Any]):
    """The parts of one kind, by name.

    As a mapping it goes from names to classes. ``kind`` is the word that messages use, ``error`` what a wrong name raises.

    Examples
    --------
    >>> registry = Registry("counter", Entry("counter", "collections:Counter", "Counts."))
    >>> registry["counter"].__name__, registry.choices
    ('Counter', 'counter')
    >>> registry.entry("abacus")
    Traceback (most recent call last):
        ...
    omokage.errors.InputError: there is no counter 'abacus': choose counter, or give your own as package.module:Class
    """

    def __init__(self, kind: str, *entries: Entry, error: type[OmokageError] = InputError) -> None:
        self.kind = kind
        self.error = error
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Any:
        return self._entries[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries.values())

    @property
    def choices(self) -> str:
        """How each part is written, for help and messages."""
        return ", ".join(entry.usage for entry in self.entries)

    def entry(self, name: str) -> Entry:
        """The entry of that name."""
        if name not in self._entries:
            raise self.error(f"there is no {self.kind} {name!r}: choose {self.choices}, or give your own as package.module:Class")
        return self._entries[name]

    def part(self, text: str) -> Any:
        """The class or function that ``text`` names, not made yet: a name, or ``package.module:Class``."""
        name, colon, rest = text.partition(":")
        return self._own(name, rest.partition(":")[0]) if "." in name and colon else self.entry(name).load()

    def name_of(self, part: Any) -> str:
        """The name of a part's class; ``module:Class`` if it is not listed."""
        kind = part if isinstance(part, type) else type(part)
        where = f"{kind.__module__}:{kind.__qualname__}"
        return next((entry.name for entry in self.entries if entry.where == where), where)

    def make(self, text: str, *first: Any, **given: Any) -> Any:
        """The part that ``text`` describes: ``NAME[:VALUE,WORD,OPTION=VALUE…]`` or ``package.module:Class[:…]``.

        ``first`` and ``given`` are arguments that the text cannot set, such as k.
        """
        name, colon, rest = text.partition(":")
        if "." in name and colon:
            class_name, colon, rest = rest.partition(":")
            return self._constructed(f"{name}:{class_name}", self._own(name, class_name), first, rest, given)
        entry = self.entry(name)
        if entry.required and not rest:
            raise self.error(f"the {self.kind} {name} needs a number, for example {name}:50")
        chosen: dict[str, Any] = {}
        for each in filter(None, rest.split(",")):
            chosen |= self._option(entry, each)
        return entry.load()(*first, **chosen, **given)

    def _option(self, entry: Entry, text: str) -> Mapping[str, Any]:
        option, equals, value = text.partition("=")
        if not equals and text in entry.words:
            return entry.words[text]
        if equals and option in entry.options and value.isdigit():
            return {entry.options[option]: int(value)}
        if not equals and entry.argument is not None and text.isdigit():
            return {entry.argument: int(text)}
        takes = [entry.argument] if entry.argument else []
        takes += [*entry.words, *(f"{each}=N" for each in entry.options)]
        raise self.error(f"the {self.kind} {entry.name} takes {', '.join(takes) or 'no options'}, not {text!r}")

    def _own(self, module: str, name: str) -> Any:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            why = type(error).__name__
            raise self.error(f"the {self.kind} {module}:{name} cannot be imported ({why}): check the path") from None

    def _constructed(self, where: str, made: Any, first: tuple[Any, ...], rest: str, given: Mapping[str, Any]) -> Any:
        values: list[Any] = []
        options: dict[str, Any] = {}
        for each in filter(None, rest.split(",")):
            option, equals, value = each.partition("=")
            if equals:
                options[option] = _literal(value)
            else:
                values.append(_literal(each))
        try:
            return made(*first, *values, **options, **given)
        except TypeError:
            raise self.error(f"the {self.kind} {where} does not take these options: {rest or 'none were given'}") from None


def _literal(text: str) -> Any:
    """A number, True, False or None where the text is one; else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
