"""One restricted unpickler for every foreign file: it makes what its reader allows, and runs nothing from the file.

A pickle is a program that can call whatever it names. Published weights are pickles all the same, so each reader says which
instructions its kind of file is made of, and answers each name it knows with a harmless stand-in of its own. Every other
instruction and every other name is refused before anything is made of it. A subclass of ``pickle.Unpickler`` exists nowhere
else in Omokage; a test looks.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError

# Instructions that all these files are made of: numbers, text, tuples, dicts, names, calls of what the names stand for, memory.
_BASE = frozenset({
    "PROTO", "STOP", "GLOBAL", "MARK", "REDUCE", "BUILD", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "TUPLE", "TUPLE1",
    "TUPLE2", "TUPLE3", "EMPTY_DICT", "SETITEM", "SETITEMS", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2",
    "BINUNICODE",
})  # fmt: skip

# What unpickling raises on bytes that make no sense; readers turn it into a sentence that names the file.
BROKEN = (
    pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, NotImplementedError,
    MemoryError, RecursionError, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """What a kind of file may hold.

    Parameters
    ----------
    names : for a module and a name in it, a function that makes the stand-in, or None for a name that is not known. It makes
        each stand-in anew, so that whatever the pickle attaches to it is gone with the pickle
    what : what is read, for the sentence that refuses a name: "only ... are read"
    instructions : what the file needs besides the instructions that all such files have
    storage : answers the pickle's references to records outside it; a file without such records leaves it out
    """

    names: Callable[[str, str], Callable[[], Any] | None]
    what: str
    instructions: frozenset[str] = frozenset()
    storage: Callable[[Any], Any] | None = None


def unpickle(program: bytes, allowed: Allowed) -> Any:
    """What a pickle describes, made of plain values and the stand-ins alone; InputError if it asks for anything else."""
    _require_known(program, allowed)
    return _Unpickler(program, allowed).load()


def _require_known(program: bytes, allowed: Allowed) -> None:
    known = _BASE | allowed.instructions | ({"BINPERSID"} if allowed.storage else set())
    for instruction, argument, _ in pickletools.genops(program):
        if instruction.name not in known:
            raise InputError(f"its pickle holds the instruction {instruction.name}, which such a file does not need")
        if instruction.name == "LONG_BINPUT" and int(argument or 0) > len(program):
            raise InputError("its pickle remembers more objects than it can hold")


class _Unpickler(pickle.Unpickler):
    """Makes plain values and stand-ins; see :func:`unpickle`."""

    def __init__(self, program: bytes, allowed: Allowed) -> None:
        super().__init__(io.BytesIO(program))
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        make = self._allowed.names(module, name)
        if make is None:
            raise InputError(f"it names {f'{module}.{name}'[:80]!r}, and only {self._allowed.what} are read")
        return make()

    def persistent_load(self, pid: Any) -> Any:
        if self._allowed.storage is None:  # its instruction was refused before
            raise InputError("its pickle refers to records that such a file does not have")
        return self._allowed.storage(pid)
