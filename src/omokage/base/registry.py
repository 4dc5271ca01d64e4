"""One registry per kind of part: name, class, options, abilities, and one line of help.

Command line choices, error messages, the tables in the docs and the contract tests all read it. An entry names its class by
``module:Class`` and imports it when it is first used, so listing the parts stays cheap however heavy they are. Adding a part is
one file and one entry; a part of your own needs neither: ``package.module:Class`` stands wherever a name does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..errors import InputError, OmokageError

_NUMBER = re.compile(r"[0-9]{1,18}")
_OWN = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)(?::(?P<options>.*))?")


@dataclass(frozen=True)
class Entry:
    """A part that you can ask for by name.

    Attributes
    ----------
    name : what the command line and the certificate call it
    where : its class, ``module:Class``
    help : one line
    argument : the option that a bare value sets: ``pca:50``
    required : whether that value must be given
    words : options that a single word sets: ``mondrian:variance``
    options : options that may be set as ``option=N``, with the constructor's name for each
    can : what the part is able to do, where not all of its kind are ("synthesize", "cache" …)
    title : its name in running text, if that is another
    files : endings of the files it is read from, where you bring one
    """

    name: str
    where: str
    help: str
    argument: str | None = None
    required: bool = False
    words: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    can: frozenset[str] = frozenset()
    title: str = ""
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name)

    def load(self) -> Any:
        """The class, imported now."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)

    @property
    def usage(self) -> str:
        """How to write it: ``pca:N``, ``mondrian[:variance,dims=N]``."""
        takes = [*self.words, *(f"{option}=N" for option in self.options)]
        if self.argument is not None and not self.required:
            takes.insert(0, "N")
        return self.name + (":N" if self.required else "") + (f"[:{','.join(takes)}]" if takes else "")


class Registry(Mapping[str, Any]):
    """The parts of one kind, by name.

    As a mapping it goes from names to classes.

    Parameters
    ----------
    kind : the word that messages use
    entries : the parts
    error : what a wrong name raises
    methods : what a class of the user's own must have
    own : whether the kind takes classes of the user's own

    Examples
    --------
    >>> registry = Registry("counter", Entry("counter", "collections:Counter", "Counts."), methods=("most_common",))
    >>> registry["counter"].__name__, registry.choices
    ('Counter', 'counter')
    >>> registry.make("collections:Counter:abba")
    Counter({'a': 2, 'b': 2})
    >>> registry.make("abacus")
    Traceback (most recent call last):
        ...
    omokage.errors.InputError: there is no counter 'abacus': choose counter, or give your own as package.module:Class
    """

    def __init__(
        self,
        kind: str,
        *entries: Entry,
        error: type[OmokageError] = InputError,
        methods: tuple[str, ...] = (),
        own: bool = True,
    ) -> None:
        self.kind = kind
        self.error = error
        self.methods = methods
        self.own = own
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
        """How to write each part, for help and messages."""
        return ", ".join(entry.usage for entry in self.entries)

    def able(self, ability: str) -> tuple[Entry, ...]:
        """The entries that can do it."""
        return tuple(entry for entry in self.entries if ability in entry.can)

    def entry(self, name: str) -> Entry:
        """The entry of that name."""
        if name not in self._entries:
            raise self._unknown(name)
        return self._entries[name]

    def name_of(self, part: Any) -> str:
        """The name of a part's class; ``module:Class`` if it is not listed."""
        kind = part if hasattr(part, "__qualname__") else type(part)  # a class or a function, or what was made by a class
        where = f"{kind.__module__}:{kind.__qualname__}"
        return next((entry.name for entry in self.entries if entry.where == where), where)

    def public(self, module: str) -> Callable[[str], Any]:
        """A ``__getattr__`` for the package that holds the parts: its classes by their own names, imported when asked for."""
        where = {entry.where.partition(":")[2]: entry for entry in self.entries}

        def attribute(name: str) -> Any:
            if name in where:
                return where[name].load()
            raise AttributeError(f"module {module!r} has no attribute {name!r}")

        return attribute

    def is_own(self, text: str) -> bool:
        """Whether the text names a class of the user's own, so that making it imports a module that is not Omokage's."""
        found = _OWN.fullmatch(text.strip())
        return self.own and found is not None and found["module"] not in self._entries

    def class_of(self, text: str) -> Any:
        """The class that ``text`` names: one that is listed, or the user's own, which must have this kind's methods.

        Where the kind asks for no methods, a function will do.
        """
        if not self.is_own(text):
            return self.entry(text.strip().partition(":")[0]).load()
        module, name = text.strip().split(":")[:2]
        found = self._imported(module, name)
        fits = all(callable(getattr(found, each, None)) for each in self.methods)
        if not callable(found) or (self.methods and not (fits and isinstance(found, type))):
            needs = f"a class that has {' and '.join(self.methods)}" if self.methods else "a class or a function"
            raise self.error(f"{module}:{name} is not a {self.kind}: give {needs}")
        return found

    def make(self, text: str, *first: Any, **given: Any) -> Any:
        """The part that ``text`` describes: ``NAME[:VALUE,WORD,OPTION=VALUE…]`` or ``package.module:Class[:…]``.

        ``first`` and ``given`` are arguments that the text does not set, such as k.
        """
        text = text.strip()
        if self.is_own(text):
            return self._own(text, first, given)
        name, _, rest = text.partition(":")
        entry = self.entry(name)
        if entry.required and not rest:
            raise self.error(f"the {self.kind} {name} needs a number: write {entry.usage}, for example {name}:50")
        chosen: dict[str, Any] = {}
        for each in filter(None, map(str.strip, rest.split(","))):
            option = self._option(entry, each)
            if any(chosen.get(key, value) != value for key, value in option.items()):
                raise self.error(f"the {self.kind} {name} has one option twice: give it once")
            chosen |= option
        return entry.load()(*first, **chosen, **given)

    def _unknown(self, name: str) -> OmokageError:
        own = ", or give your own as package.module:Class" if self.own else ""
        return self.error(f"there is no {self.kind} {name!r}: choose {self.choices}{own}")

    def _option(self, entry: Entry, text: str) -> Mapping[str, Any]:
        option, equals, value = text.partition("=")
        if not equals and text in entry.words:
            return entry.words[text]
        if equals and option in entry.options and _NUMBER.fullmatch(value):
            return {entry.options[option]: int(value)}
        if not equals and entry.argument is not None and _NUMBER.fullmatch(text):
            return {entry.argument: int(text)}
        numbers = ", where N is a whole number" if "N" in entry.usage else ""
        raise self.error(f"the {self.kind} {entry.name} does not take {text!r}: write {entry.usage}{numbers}")

    def _own(self, text: str, first: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
        """A part of the user's own class: imported, checked for its methods, and only then called."""
        made = self.class_of(text)
        module, name, *rest = text.split(":", 2)
        values, options = _arguments("".join(rest))
        try:
            return made(*first, *values, **options, **given)
        except Exception as error:  # whatever the user's own code raises
            raise self.error(f"the {self.kind} {module}:{name} does not take these options: {_reason(error)}") from error

    def _imported(self, module: str, name: str) -> Any:
        try:
            return getattr(import_module(module), name)
        except Exception as error:  # whatever the user's own code raises
            if isinstance(error, ModuleNotFoundError) and error.name == module and "." not in module:
                raise self._unknown(module) from None
            raise self.error(f"the {self.kind} {module}:{name} cannot be imported: {_reason(error)}") from error


def _arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """The values of ``50,option=3``, and the options."""
    values: list[Any] = []
    options: dict[str, Any] = {}
    for each in filter(None, text.split(",")):
        option, equals, value = each.partition("=")
        if equals:
            options[option] = _literal(value)
        else:
            values.append(_literal(each))
    return values, options


def _literal(text: str) -> Any:
    """A number, True, False or None where the text is one; else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _reason(error: BaseException) -> str:
    """What the user's own code said, in one line; no data have been read at that point, so none can be in it."""
    said = str(error).strip().splitlines()
    return type(error).__name__ + (f": {said[0]}" if said else "")
