"""The tensors of a TorchScript archive, read without running anything in it.

The archive is a zip: ``data.pkl`` holds the tree of modules, ``data/<n>`` the raw numbers. The tree is a pickle; this reader
allows a dozen names and the instructions that TorchScript writes (see :mod:`.unpickling`). Records must lie uncompressed, as
TorchScript writes them, so nothing unfolds to more than the size of the file.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .unpickling import BROKEN, Allowed, unpickle

_STORAGES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8", "IntStorage": "<i4",
    "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "?",
}  # fmt: skip
_LISTS = {"build_intlist", "build_doublelist", "build_boollist", "build_tensorlist", "restore_type_tag"}
_INSTRUCTIONS = frozenset({"NEWOBJ", "EMPTY_TUPLE", "EMPTY_LIST", "APPEND", "APPENDS", "LONG1", "BINFLOAT"})
# Bounds of a tree: a pickle may share its branches or loop, and then a small file has a tree without end.
_MOST, _LONGEST = 100_000, 1_000


class _Node:
    """Stands for an object of any scripted class; holds its attributes."""

    attributes: Mapping[Any, Any] = MappingProxyType({})

    def __new__(cls, *_: Any) -> _Node:
        return object.__new__(cls)

    def __setstate__(self, state: Any) -> None:
        self.attributes = dict(state)


class _Storages:
    """The numbers beside the tree: each record of the archive is read once, as the tree asks for it."""

    def __init__(self, records: zipfile.ZipFile, root: str) -> None:
        self._records, self._root = records, root
        self._read: dict[str, NDArray[Any]] = {}

    def __call__(self, reference: Any) -> NDArray[Any]:
        kind, storage, key, _, count = reference
        record = self._records.getinfo(f"{self._root}data/{key}")
        if kind != "storage" or storage not in _STORAGES.values() or record.file_size != count * np.dtype(storage).itemsize:
            raise InputError("a storage has not the type or the length that its tensor says")
        if record.filename not in self._read:
            self._read[record.filename] = np.frombuffer(_stored(self._records, record), np.uint8)
        return self._read[record.filename].view(storage)


def _stand_in(module: str, name: str) -> Callable[[], Any] | None:
    if module.split(".")[0] == "__torch__":
        return lambda: type("Node", (_Node,), {})
    if module == "torch" and name in _STORAGES:
        return lambda: _STORAGES[name]
    if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
        return lambda: lambda values, offset, size, stride, *_: _strided(values, offset, size, stride)
    if module == "torch.jit._pickle" and name in _LISTS:
        return lambda: lambda value, *_: value
    if (module, name) == ("collections", "OrderedDict"):
        return lambda: lambda *_: {}
    return None


def _stored(records: zipfile.ZipFile, record: zipfile.ZipInfo) -> bytes:
    if record.compress_type != zipfile.ZIP_STORED:
        raise InputError("a record is compressed, and TorchScript writes them uncompressed")
    return records.read(record)


def _strided(values: NDArray[Any], offset: Any, size: Any, stride: Any) -> NDArray[Any]:
    """The tensor that lies in a storage, read-only: every element within it, and no more elements than it has."""
    offset, size, stride = int(offset), [int(n) for n in size], [int(n) for n in stride]  # Python's own, which do not overflow
    count = math.prod(size)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    whole = isinstance(values, np.ndarray) and values.ndim == 1 and values.flags.c_contiguous
    if not whole or min((offset, *size, *stride)) < 0 or count > len(values) or (count and last >= len(values)):
        raise InputError("a tensor reaches outside its storage")
    if not count:
        return np.empty(size, values.dtype)
    steps = [step * values.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(values[offset:], size, steps, writeable=False)


def _tensors(tree: Any) -> dict[str, NDArray[Any]]:
    """Every array below a node, by its dotted name, in the order of the file."""
    found: dict[str, NDArray[Any]] = {}
    waiting = [("", tree)]
    for _ in range(_MOST):
        if not waiting:
            return found
        name, item = waiting.pop()
        if isinstance(item, np.ndarray):
            found[name[1:]] = item
        elif isinstance(item, (_Node, dict, list, tuple)):
            below = item.attributes if isinstance(item, _Node) else item
            pairs = list(below.items() if isinstance(below, Mapping) else enumerate(below))
            waiting += [(f"{name}.{str(key)[:_LONGEST]}", value) for key, value in reversed(pairs)]
        if len(name) > _LONGEST or len(waiting) > _MOST:
            break
    raise InputError(f"its tree has names over {_LONGEST} letters or more than {_MOST:,} attributes")


def read_torchscript(path: str | Path) -> dict[str, NDArray[Any]]:
    """All parameters and buffers of a TorchScript archive, by dotted name; InputError for anything else."""
    try:
        with zipfile.ZipFile(path) as records:
            if sum(record.compress_size for record in records.infolist()) > Path(path).stat().st_size:
                raise InputError("its records overlap")
            programs = [r for r in records.infolist() if r.filename.count("/") == 1 and r.filename.endswith("/data.pkl")]
            if len(programs) != 1:
                raise InputError("it has not exactly one data.pkl")
            root = programs[0].filename.removesuffix("data.pkl")
            order = f"{root}byteorder"
            if order in records.namelist() and _stored(records, records.getinfo(order)) != b"little":
                raise InputError("its numbers are not little-endian")
            allowed = Allowed(_stand_in, "tensors and scripted modules", _INSTRUCTIONS, _Storages(records, root))
            return _tensors(unpickle(_stored(records, programs[0]), allowed))
    except InputError as error:
        raise InputError(f"{path} is not read: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (zipfile.BadZipFile, *BROKEN) as error:
        raise InputError(f"{path} is not a whole TorchScript archive") from error
