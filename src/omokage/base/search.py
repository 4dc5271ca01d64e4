"""Many strings searched in many bytes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

WINDOW = 6  # bytes that a string needs at least: shorter ones are found everywhere
_BITS = 22
_CHUNK = 1 << 22


class Strings:
    """Strings to look for.

    A table of 2²² flags, one for each hash of a string's first six bytes, passes over nearly all of the bytes; what is left is
    compared in full. So the time grows with the bytes searched and hardly with the number of strings.

    Examples
    --------
    >>> list(Strings([b"secret-1", b"secret-23", b"short"]).found_in(b"a secret-23, a secret-1"))
    [(2, b'secret-23'), (15, b'secret-1')]
    """

    def __init__(self, strings: Iterable[bytes]) -> None:
        self.strings = frozenset(each for each in strings if len(each) >= WINDOW)
        self._lengths: dict[int, set[int]] = {}
        for each in self.strings:
            self._lengths.setdefault(int.from_bytes(each[:WINDOW], "little"), set()).add(len(each))
        self._keys = np.sort(np.fromiter(self._lengths, np.uint64, len(self._lengths)))
        self._flags = np.zeros(1 << _BITS, np.bool_)
        self._flags[_hashed(self._keys)] = True

    def __len__(self) -> int:
        return len(self.strings)

    def found_in(self, content: bytes) -> Iterator[tuple[int, bytes]]:
        """Place and string of every occurrence, from the start."""
        if not self.strings:
            return
        data = np.frombuffer(content, np.uint8)
        for start in range(0, max(len(data) - WINDOW + 1, 0), _CHUNK):
            keys = _windows(data[start : start + _CHUNK + WINDOW - 1])
            places = np.flatnonzero(self._flags[_hashed(keys)])
            near = np.searchsorted(self._keys, keys[places])
            places = places[self._keys[np.minimum(near, len(self._keys) - 1)] == keys[places]]
            for place in places.tolist():
                for length in sorted(self._lengths[int(keys[place])]):
                    string = content[start + place : start + place + length]
                    if len(string) == length and string in self.strings:
                        yield start + place, string


def _windows(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Every six bytes in a row as one number."""
    n = len(data) - WINDOW + 1
    keys = np.zeros(n, np.uint64)
    for j in range(WINDOW):
        keys |= data[j : j + n].astype(np.uint64) << np.uint64(8 * j)
    return keys


def _hashed(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    with np.errstate(over="ignore"):
        return ((keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _BITS)).astype(np.int64)
