"""Pickles that an attacker would write; every reader of foreign files has to refuse them all."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path


class Runs:
    """Pickled, it calls a function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def running(mark: Path) -> Iterator[bytes]:
    """Programs that leave a mark when they run, in every protocol, at the top and inside a tree."""
    attacks = (Runs(os.system, f"touch {mark}"), Runs(eval, f"open({str(mark)!r}, 'w')"), Runs(Path.touch, mark))
    for attack in attacks:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for content in (attack, {"a": attack}, {"a": [attack]}):
                yield pickle.dumps(content, protocol)


NAMES = (
    "os system", "posix system", "nt system", "subprocess Popen", "builtins eval", "builtins exec", "builtins getattr",
    "builtins __import__", "__builtin__ eval", "torch load", "torch.serialization load", "torch.hub load", "torch.jit load",
    "torch._utils _rebuild_tensor", "torch.nn.modules.linear Linear", "numpy load", "numpy.lib.npyio load", "numpy.f2py compile",
    "collections Counter", "functools partial", "operator attrgetter", "pickle loads", "shutil rmtree", "__torch__x y",
    "dnnlib.util open_url", "omokage.networks.unpickling unpickle", "types CodeType", "webbrowser open",
)  # fmt: skip


def naming(name: str) -> Iterator[bytes]:
    """Programs that only name something: by either instruction, with or without a call."""
    module, _, inside = name.partition(" ")
    short = (b"\x8c" + bytes([len(text)]) + text for text in (module.encode(), inside.encode()))
    for found in (b"c" + module.encode() + b"\n" + inside.encode() + b"\n", b"".join(short) + b"\x93"):
        yield b"\x80\x04" + found + b"."
        yield b"\x80\x04}X\x01\x00\x00\x00a" + found + b")Rs."


STRANGE = {
    "INST": b"(ios\nsystem\nN.",
    "OBJ": b"\x80\x02(cos\nsystem\no.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT2": b"\x80\x02\x83\x01\x00.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "PERSID": b"Pabc\n.",
    "NEWOBJ_EX": b"\x80\x04cos\nsystem\n)}\x92.",
    "BYTEARRAY8": b"\x80\x05\x96" + struct.pack("<Q", 1) + b"x.",
    "NEXT_BUFFER": b"\x80\x05\x97.",
    "INT": b"I" + b"9" * 100 + b"\n.",
    "LONG4": b"\x80\x02\x8b\x01\x00\x00\x00\x01.",
    "remembers too much": b"\x80\x02Nr" + struct.pack("<I", 1 << 31) + b".",
    "length beyond the end": b"\x80\x04X" + struct.pack("<I", 1 << 31) + b"x.",
    "memory that is empty": b"\x80\x02h\x07.",
    "stack that is empty": b"\x80\x020.",
    "state for a number": b"\x80\x02K\x01}b.",
    "call of a number": b"\x80\x02K\x01)R.",
    "no end": b"\x80\x02N",
    "nothing": b"",
    "a loop": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
}
